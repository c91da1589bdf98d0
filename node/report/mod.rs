//! Reports of a finished federation: the tables of the terminal and the page for a browser.
//!
//! Both tell the same [`Story`]: [`terminal::write`] as text of at most a hundred columns, [`page`]
//! as one HTML file that needs nothing else, no network and no script. Each drawing of the page is a
//! file of its own here and takes nothing but the story. [`diagram`] draws a topology of silos, as
//! a file of its own.

pub mod comparison;
pub mod diagram;
pub mod numbers;
pub mod story;
pub mod terminal;

mod agreement;
mod curves;
mod facts;
mod graph;
mod layout;
mod page;
mod palette;
mod svg;
mod table;
mod timeline;
mod traffic;

#[cfg(test)]
pub(crate) mod fixture;

pub use page::page;
pub use story::Story;

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
    fn letters_go_on_after_z() {
        let names = [0, 1, 25, 26, 51, 52, 701, 702].map(letter);
        assert_eq!(names, ["A", "B", "Z", "AA", "AZ", "BA", "ZZ", "AAA"]);
    }
}
