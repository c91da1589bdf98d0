//! Reports of a comparison: text for a terminal, a CSV file, and an HTML page that loads nothing.

mod advice;
mod csv;
mod curves;
mod graph;
mod page;
mod table;
mod text;

pub use advice::write_advice;
pub use csv::csv;
pub use page::page;
pub use text::write;
