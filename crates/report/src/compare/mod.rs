//! Reports of a comparison: text for a terminal, a CSV file, tables in Markdown, and an HTML page that
//! loads nothing.

mod advice;
mod cells;
mod costs;
mod course;
mod csv;
mod curves;
#[cfg(test)]
pub(crate) mod fixture;
mod graph;
mod markdown;
mod noise;
mod noise_advice;
mod page;
mod papers;
mod served;
mod subgroups;
mod table;
mod text;
mod together;

pub use advice::write_advice;
pub use csv::csv;
pub use markdown::markdown;
pub use noise_advice::write_noise_advice;
pub use page::page;
pub use text::write;
