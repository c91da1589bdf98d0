//! A comparison in Markdown, to be put into a document.

use lab::compare::Comparison;

use super::super::numbers;
use super::super::pitfalls::PITFALLS;
use super::cells::TextTable;
use super::course;
use super::table::{failures, settings, tables, unfinished};
use super::text::{how, trained};

/// The comparison as Markdown: a paragraph about it, then a heading for every variant, its tables, the
/// settings that were chosen and what went wrong. Names of columns and words are those of the terminal.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::new();
    if comparison.quick {
        paragraph(&mut out, "In the quick form: do not quote its numbers.");
    }
    paragraph(&mut out, &text(&comparison.description));
    paragraph(&mut out, &text(&how(comparison)));
    paragraph(&mut out, &text(&trained(comparison)));
    for variant in &comparison.variants {
        if !variant.name.is_empty() {
            paragraph(&mut out, &format!("## {}", text(&variant.name)));
        }
        for note in &variant.notes {
            paragraph(&mut out, &format!("Note: {}.", text(note)));
        }
        for table in tables(comparison, variant) {
            add(&mut out, &table);
        }
        if let Some(table) = course::table(comparison, variant) {
            add(&mut out, &table);
        }
        list(
            &mut out,
            "Chosen settings, and numbers that strategies report",
            settings(variant)
                .into_iter()
                .map(|(label, text)| format!("{label}: {text}")),
        );
        list(
            &mut out,
            &format!("Not finished, so a gain over it may be none ({PITFALLS})"),
            unfinished(variant).into_iter(),
        );
        list(&mut out, "What went wrong", failures(variant).into_iter());
    }
    if !comparison.missing.is_empty() {
        let runs = numbers::plural(comparison.missing.len(), "run");
        paragraph(
            &mut out,
            &format!("{runs} not done yet, so the tables are not complete."),
        );
    }
    out
}

fn paragraph(out: &mut String, text: &str) {
    if !text.is_empty() {
        out.push_str(text);
        out.push_str("\n\n");
    }
}

fn list(out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.map(|line| format!("* {}\n", text(&line))).collect();
    if !lines.is_empty() {
        paragraph(out, &format!("**{title}**"));
        out.push_str(&lines.concat());
        out.push('\n');
    }
}

/// A table with its title and note, without columns that hold nothing.
fn add(out: &mut String, table: &TextTable) {
    paragraph(out, &format!("**{}**", text(&table.title)));
    let columns = 0..table.columns.len();
    let shown: Vec<usize> = columns.filter(|&at| table.filled(at)).collect();
    let line = |cells: &[String]| {
        let cells: Vec<String> = shown.iter().map(|&at| text(&cells[at])).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    if !table.rows.is_empty() {
        out.push_str(&line(&table.columns));
        out.push_str(&("|".to_owned() + &" --- |".repeat(shown.len()) + "\n"));
        table.rows.iter().for_each(|row| out.push_str(&line(row)));
        out.push('\n');
    }
    paragraph(out, &text(&table.note));
}

/// Text in which nothing is markup.
fn text(text: &str) -> String {
    let plain = numbers::plain(text);
    let mut out = String::with_capacity(plain.len());
    for letter in plain.chars() {
        if "\\`*_[]<>#|".contains(letter) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup_and_empty_columns_are_left_out() {
        let table = TextTable {
            title: "a <b>".into(),
            note: String::new(),
            columns: ["", "empty", "x|y"].map(str::to_owned).to_vec(),
            rows: vec![
                ["one_two", "", ".1"].map(str::to_owned).to_vec(),
                ["*", "", "[2]"].map(str::to_owned).to_vec(),
            ],
            ..TextTable::default()
        };
        let mut out = String::new();
        add(&mut out, &table);
        let expected = "**a \\<b\\>**\n\n|  | x\\|y |\n| --- | --- |\n| one\\_two | .1 |\n| \\* | \\[2\\] |\n\n";
        assert_eq!(out, expected);
    }
}
