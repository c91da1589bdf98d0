//! An experiment on the terminal.

use std::io::{self, Write};

use lab::rotation::Laboratory;

use super::super::numbers;
use super::table::{LabTable, tables};

/// Columns of the terminal.
const WIDTH: usize = 100;

/// Writes the experiment.
///
/// # Errors
/// The error of the writer, for instance a closed pipe.
pub fn write(out: &mut impl Write, all: &Laboratory) -> io::Result<()> {
    writeln!(
        out,
        "{}: {} under {}, {}, {}",
        numbers::plain(&all.scenario),
        numbers::plural(all.silos.len(), "silo"),
        numbers::plural(all.policies.len(), "rotation"),
        numbers::plural(all.rounds as usize, "round"),
        numbers::plural(all.seeds, "seed"),
    )?;
    paragraph(out, 0, &all.description)?;
    if let Some(deployed) = &all.deployment {
        writeln!(out, "\nWith real processes")?;
        for line in [&deployed.network].into_iter().chain(&deployed.notes) {
            paragraph(out, 2, line)?;
        }
    }
    writeln!(out, "\nWhat goes wrong")?;
    if all.faults.is_empty() {
        paragraph(out, 2, "nothing")?;
    }
    for fault in &all.faults {
        paragraph(out, 2, fault)?;
    }
    for table in tables(all) {
        writeln!(out)?;
        write_table(out, &table)?;
    }
    Ok(())
}

fn write_table(out: &mut impl Write, table: &LabTable) -> io::Result<()> {
    let width = |at: usize| {
        let cells = table.rows.iter().map(|row| row[at].chars().count());
        cells
            .chain([table.columns[at].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    writeln!(out, "{}", table.title)?;
    for row in [&table.columns].into_iter().chain(&table.rows) {
        let mut text = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let cell = numbers::plain(cell);
            match at {
                0 => text.push_str(&format!("  {cell:<width$}")),
                _ => text.push_str(&format!("  {cell:>width$}")),
            }
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    paragraph(out, 2, &table.note)
}

fn paragraph(out: &mut impl Write, indent: usize, text: &str) -> io::Result<()> {
    let spaces = " ".repeat(indent);
    let options = textwrap::Options::new(WIDTH)
        .initial_indent(&spaces)
        .subsequent_indent(&spaces)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    match text {
        "" => Ok(()),
        text => writeln!(out, "{}", textwrap::fill(&numbers::plain(text), options)),
    }
}
