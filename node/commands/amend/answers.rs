//! `rota federation answers`: what the questions of the agreement have opened.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use agreement::{Agreement, QuestionStage};
use formatting::numbers;
use questions::Outcome;
use questions::kinds::trees::TreesOutcome;
use questions::outcome::PrintedTable;
use serde::Serialize;

use super::{NodeCommandError, failed, wrapped};
use crate::answers::{FoundAnswer, found};
use crate::commands::trees::TreesFile;

/// An answer as JSON.
#[derive(Serialize)]
struct AnswerDocument<'a> {
    number: usize,
    reason: &'a str,
    kind: &'a str,
    /// `open`, `answered` or `stopped`.
    state: &'a str,
    rounds: usize,
    /// Why there is no answer.
    why: Option<&'a str>,
    answer: &'a [PrintedTable],
    /// The trees themselves, where that is what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    trees: Option<&'a TreesOutcome>,
}

/// Writes the trees of an answered question, of this number or of the last one that has any.
pub(super) fn export(
    state: &Path,
    agreement: &Agreement,
    file: &Path,
    question: Option<usize>,
) -> Result<(), NodeCommandError> {
    let file = TreesFile::new(file)?;
    let answers = found(state, agreement).map_err(failed)?;
    let chosen = answers.iter().rev().find(|answer| match question {
        Some(number) => answer.number == number,
        None => trees(answer).is_some(),
    });
    match chosen.map(|answer| &answer.stage) {
        Some(QuestionStage::Done { outcome, .. }) => file.write(outcome),
        _ => Err(NodeCommandError::Usage(match question {
            Some(number) => format!("--export: question {number} has no answer"),
            None => "--export: no question is answered by trees".to_owned(),
        })),
    }
}

/// The trees of an answer, if it has any.
fn trees(answer: &FoundAnswer) -> Option<&TreesOutcome> {
    match &answer.stage {
        QuestionStage::Done { outcome, .. } => match &**outcome {
            Outcome::Trees(found) => Some(found),
            _ => None,
        },
        QuestionStage::Open { .. } | QuestionStage::Stopped { .. } => None,
    }
}

/// Prints the answers that a state folder holds.
pub(super) fn print(
    state: &Path,
    agreement: &Agreement,
    (json, csv): (bool, bool),
) -> Result<(), NodeCommandError> {
    if agreement.questions.is_empty() {
        return Err(failed(
            "the agreement has no question: `rota federation ask FILE.toml` proposes one",
        ));
    }
    let answers = found(state, agreement).map_err(failed)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        let documents: Vec<AnswerDocument> = answers.iter().map(document).collect();
        let text = serde_json::to_string_pretty(&documents).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&text))?;
    } else if csv {
        let tables = answers.iter().flat_map(|answer| &answer.tables);
        let texts: Vec<String> = tables.map(PrintedTable::csv).collect();
        write!(out, "{}", texts.join("\n"))?;
    } else {
        for answer in &answers {
            print_one(&mut out, answer)?;
        }
    }
    Ok(out.flush()?)
}

fn document(answer: &FoundAnswer) -> AnswerDocument<'_> {
    let (state, rounds, why) = match &answer.stage {
        QuestionStage::Open { rounds } => ("open", *rounds, None),
        QuestionStage::Done { rounds, .. } => ("answered", *rounds, None),
        QuestionStage::Stopped { rounds, why } => ("stopped", *rounds, Some(why.as_str())),
    };
    AnswerDocument {
        number: answer.number,
        reason: &answer.reason,
        kind: answer.kind,
        state,
        rounds,
        why,
        answer: &answer.tables,
        trees: trees(answer),
    }
}

fn print_one(out: &mut impl Write, answer: &FoundAnswer) -> io::Result<()> {
    let FoundAnswer {
        number,
        reason,
        kind,
        ..
    } = answer;
    let reason = numbers::plain(reason);
    writeln!(
        out,
        "{}",
        wrapped(&format!("question {number} ({kind}): {reason}"))
    )?;
    let line = match &answer.stage {
        QuestionStage::Open { rounds } => {
            format!("no answer yet, after {}", numbers::plural(*rounds, "round"))
        }
        QuestionStage::Done { rounds, counts, .. } => format!(
            "answered by {} in {}; every member has checked each sum, and sees the numbers of every site",
            numbers::plural(counts.sites as usize, "site"),
            numbers::plural(*rounds, "round")
        ),
        QuestionStage::Stopped { rounds, why } => format!(
            "it ended without an answer after {}: {}",
            numbers::plural(*rounds, "round"),
            numbers::plain(why)
        ),
    };
    writeln!(out, "{}", wrapped(&format!("  {line}")))?;
    for table in &answer.tables {
        writeln!(out)?;
        for line in table.text().lines() {
            writeln!(out, "{}", numbers::plain(line))?;
        }
        for note in &table.notes {
            writeln!(out, "{}", wrapped(&format!("  {note}")))?;
        }
    }
    writeln!(out)
}
