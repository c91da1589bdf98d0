//! Text for people, the same on every page and in every line: [`numbers`] writes numbers, durations and
//! names, and [`palette`] has the colours of charts and pages.

pub mod numbers;
pub mod palette;
