//! The tables of an answer as text.

use std::fmt::Write;

use formatting::numbers;
use questions::outcome::PrintedTable;

/// The tables as text, each with a line before it; `wrapped` breaks what is said of them into lines.
pub fn texts(tables: &[PrintedTable], wrapped: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for table in tables {
        text.push('\n');
        for line in table.text().lines() {
            let _ = writeln!(text, "{}", numbers::plain(line));
        }
        for note in &table.notes {
            let _ = writeln!(text, "{}", wrapped(&format!("  {note}")));
        }
    }
    text
}
