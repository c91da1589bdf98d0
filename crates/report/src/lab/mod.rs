//! Experiments with rotating leads ([`lab::rotation`]) as text, CSV and one HTML page.

pub(super) mod chart;
mod csv;
mod page;
mod table;
mod text;
pub(super) mod timelines;

pub use csv::csv;
pub use page::page;
pub use text::write;
