//! Text for people, the same on every page and in every line: [`numbers`] writes numbers, durations and
//! names, [`palette`] has the colours of charts and pages, [`svg`] the parts of drawings, and [`page`] an HTML
//! document that loads nothing.

pub mod numbers;
pub mod page;
pub mod palette;
pub mod svg;
