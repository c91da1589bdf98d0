//! Reports of a finished federation, as text for a terminal and as an HTML page.
//!
//! Both are made from a [`Story`]: [`terminal::write`] writes text of at most a hundred columns,
//! [`page()`] gives one HTML file that loads nothing and runs no script. Each section of the page has
//! a file here, which takes the story and returns HTML. [`leads_svg`] draws who led when, and [`diagram`] a
//! topology of silos, as SVG files of their own.

pub mod attack;
pub mod compare;
pub mod comparison;
pub mod diagram;
pub mod history;
pub mod lab;
pub mod story;
pub mod terminal;
pub mod verdict;

mod agreement;
mod band;
mod classes;
mod clock;
mod curves;
mod download;
mod facts;
mod graph;
mod heat;
mod layout;
mod many;
mod page;
mod pictures;
mod pitfalls;
mod program_metrics;
mod references;
mod settings;
mod table;
mod timeline;
mod traffic;

#[cfg(test)]
mod fixture;

use formatting::{numbers, palette, svg};

pub use page::page;
pub use story::Story;
pub use timeline::leads_svg;

/// The name of a coalition for people: `A`, `B`, … `Z`, `AA`, ….
pub fn letter(index: usize) -> String {
    let last = char::from(b'A' + (index % 26) as u8);
    match index / 26 {
        0 => last.to_string(),
        rest => letter(rest - 1) + &last.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::letter;

    #[test]
    fn letters_continue_after_z() {
        let names = [0, 1, 25, 26, 51, 52, 701, 702].map(letter);
        assert_eq!(names, ["A", "B", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]);
    }
}
