//! A comparison on the terminal.

use std::io::{self, Write};

use lab::compare::Comparison;

use super::super::numbers;
use super::super::pitfalls::PITFALLS;
use super::cells::TextTable;
use super::table::{failures, settings, tables, unfinished};

/// Columns of the terminal.
const WIDTH: usize = 100;

/// Writes the comparison.
///
/// # Errors
/// The error of the writer, for instance a closed pipe.
pub fn write(out: &mut impl Write, comparison: &Comparison) -> io::Result<()> {
    let runs = comparison
        .variants
        .iter()
        .map(|variant| variant.strategies.len());
    writeln!(
        out,
        "{}: {} compared over {}{}",
        numbers::plain(&comparison.experiment),
        numbers::plural(runs.max().unwrap_or(0), "strategy"),
        numbers::plural(comparison.seeds, "seed"),
        if comparison.quick {
            ", in its quick form: do not quote its numbers"
        } else {
            ""
        },
    )?;
    paragraph(out, 0, &comparison.description)?;
    paragraph(out, 0, &how(comparison))?;
    paragraph(out, 0, &trained(comparison))?;
    for variant in &comparison.variants {
        if !variant.name.is_empty() {
            writeln!(out, "\n== {} ==", numbers::plain(&variant.name))?;
        }
        for note in &variant.notes {
            paragraph(out, 0, &format!("note: {}", numbers::plain(note)))?;
        }
        for table in tables(comparison, variant) {
            writeln!(out)?;
            write_table(out, &table)?;
        }
        let settings = settings(variant);
        if !settings.is_empty() {
            writeln!(out, "\nchosen settings, and numbers that strategies report")?;
            for (label, text) in settings {
                paragraph(out, 2, &format!("{label}: {text}"))?;
            }
        }
        let unfinished = unfinished(variant);
        if !unfinished.is_empty() {
            writeln!(
                out,
                "\nNot finished, so a gain over it may be none ({PITFALLS})"
            )?;
            for line in unfinished {
                paragraph(out, 2, &line)?;
            }
        }
        let failures = failures(variant);
        if !failures.is_empty() {
            writeln!(out, "\nWhat went wrong")?;
            for line in failures {
                paragraph(out, 2, &line)?;
            }
        }
    }
    if !comparison.missing.is_empty() {
        let runs = numbers::plural(comparison.missing.len(), "run");
        writeln!(out, "\n{runs} not done yet, so the tables are not complete")?;
    }
    Ok(())
}

/// Over what federations were trained.
pub(super) fn trained(comparison: &Comparison) -> String {
    let [direct, network] = ["direct", "virtual"].map(|mesh| comparison.meshes.contains(mesh));
    match (direct, network) {
        (true, false) => "Federations were trained without messages (mesh direct), which gives bit by bit the same \
                          models as a network; bytes are those of models."
            .into(),
        (true, true) => "Federations were trained over the simulated network where the experiment has faults, \
                         links or costs, otherwise without messages (mesh direct), where bytes are those of models."
            .into(),
        (false, _) => "Federations were trained over the simulated network (mesh virtual).".into(),
    }
}

/// Returns how settings and rounds were chosen.
pub(super) fn how(comparison: &Comparison) -> String {
    let tune = &comparison.tune;
    if tune.validation == 0.0 {
        return "No validation rows were held out: every strategy has its first settings and its last round."
            .into();
    }
    let share = (100.0 * tune.validation).round();
    let who = if tune.every_seed {
        "in every seed"
    } else {
        "by the first seed"
    };
    let again = if tune.again {
        ", then models were trained again on all training rows"
    } else {
        ""
    };
    let widened = match tune.widen {
        0 => "The search was not widened where it ended at an edge (--widen)".into(),
        times => format!(
            "Where the best round was the last one, or a setting at the edge of what was tried, the search continued \
             with twice the rounds and the next value, {} at most",
            numbers::plural(times, "time"),
        ),
    };
    format!(
        "Settings (at most {} per strategy) and round were chosen {who} by the {} on {share} % of the rows as \
         validation rows{again}; test rows are used once. {widened}. ± is the standard deviation over seeds.",
        tune.points,
        tune.by.key(),
    )
}

fn write_table(out: &mut impl Write, table: &TextTable) -> io::Result<()> {
    let width = |at: usize| {
        let cells = table.rows.iter().map(|row| row[at].chars().count());
        cells
            .chain([table.columns[at].chars().count()])
            .max()
            .unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    // Columns without any value are left out, and names are cut where the table would be too wide.
    let columns = 0..table.columns.len();
    let shown: Vec<usize> = columns.filter(|&at| table.filled(at)).collect();
    let all: usize = shown.iter().map(|&at| widths[at] + 2).sum();
    if all > WIDTH + 2 {
        widths[0] = widths[0].saturating_sub(all - WIDTH - 2).max(12);
    }
    paragraph(out, 0, &table.title)?;
    let mut line = |cells: &[String]| {
        let mut text = String::new();
        for &at in &shown {
            let cell = numbers::plain(&cells[at]);
            match at {
                0 => {
                    let name = numbers::short(&cell, widths[0]);
                    text.push_str(&format!("  {name:<width$}", width = widths[0]));
                }
                _ => text.push_str(&format!("  {cell:>width$}", width = widths[at])),
            }
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(&table.columns)?;
    for row in &table.rows {
        line(row)?;
    }
    if table.note.is_empty() {
        Ok(())
    } else {
        paragraph(out, 2, &table.note)
    }
}

pub(super) fn paragraph(out: &mut impl Write, indent: usize, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let spaces = " ".repeat(indent);
    let rest = " ".repeat(indent + 2);
    let options = textwrap::Options::new(WIDTH)
        .initial_indent(&spaces)
        .subsequent_indent(if indent == 0 { "" } else { &rest })
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    writeln!(out, "{}", textwrap::fill(&numbers::plain(text), options))
}
