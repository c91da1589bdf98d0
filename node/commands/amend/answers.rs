//! `rota federation answers`: what the questions of the agreement have opened.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use agreement::{Agreement, QuestionStage};
use formatting::numbers;
use questions::kinds::trees::TreesOutcome;
use questions::outcome::PrintedTable;
use questions::{Outcome, QuestionMode};
use serde::Serialize;

use super::{NodeCommandError, failed, wrapped};
use crate::answers::{AnswerCertificate, FoundAnswer, FoundAnswers, texts};
use crate::commands::trees::TreesFile;

/// An answer as JSON.
#[derive(Serialize)]
struct AnswerDocument<'a> {
    number: usize,
    reason: &'a str,
    kind: &'a str,
    mode: &'a str,
    /// `open`, `answered` or `stopped`.
    state: &'a str,
    rounds: usize,
    /// Reason for which there is no answer.
    why: Option<&'a str>,
    /// Number of sites that refused, by rule.
    refused: &'a [String],
    answer: &'a [PrintedTable],
    numbers_opened: u64,
    bytes_per_site: u64,
    /// None without an answer.
    certificate: Option<&'a AnswerCertificate>,
    /// The trees themselves, where that is what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    trees: Option<&'a TreesOutcome>,
}

/// Writes the trees of an answered question, of this number or of the last one that has any.
pub(super) fn export(
    found: &FoundAnswers,
    file: &Path,
    question: Option<usize>,
) -> Result<(), NodeCommandError> {
    let file = TreesFile::new(file)?;
    let chosen = found.answers.iter().rev().find(|answer| match question {
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

/// The answers that a state folder holds.
pub(super) fn found(state: &Path, agreement: &Agreement) -> Result<FoundAnswers, NodeCommandError> {
    if agreement.questions.is_empty() {
        return Err(failed(
            "the agreement has no question: `rota federation ask FILE.toml` proposes one",
        ));
    }
    FoundAnswers::read(state, agreement).map_err(failed)
}

/// Prints answers.
pub(super) fn print(
    found: &FoundAnswers,
    (json, csv): (bool, bool),
) -> Result<(), NodeCommandError> {
    let answers = &found.answers;
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        let documents: Vec<AnswerDocument> = answers
            .iter()
            .map(|answer| document(answer, &found.certificate))
            .collect();
        let text = serde_json::to_string_pretty(&documents).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&text))?;
    } else if csv {
        let tables = answers.iter().flat_map(|answer| &answer.tables);
        let texts: Vec<String> = tables.map(PrintedTable::csv).collect();
        write!(out, "{}", texts.join("\n"))?;
    } else {
        for answer in answers {
            print_one(&mut out, answer)?;
        }
    }
    Ok(out.flush()?)
}

fn document<'a>(answer: &'a FoundAnswer, certificate: &'a AnswerCertificate) -> AnswerDocument<'a> {
    let (state, rounds, why) = match &answer.stage {
        QuestionStage::Open { rounds } => ("open", *rounds, None),
        QuestionStage::Done { rounds, .. } => ("answered", *rounds, None),
        QuestionStage::Stopped { rounds, why } => ("stopped", *rounds, Some(why.as_str())),
    };
    AnswerDocument {
        number: answer.number,
        reason: &answer.reason,
        kind: answer.kind,
        mode: answer.question.mode.name(),
        state,
        rounds,
        why,
        refused: &answer.refused,
        answer: &answer.tables,
        numbers_opened: answer.opened.numbers,
        bytes_per_site: answer.opened.bytes,
        certificate: Some(certificate).filter(|_| state == "answered"),
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
    let line = stage(answer);
    writeln!(out, "{}", wrapped(&format!("  {line}")))?;
    for refused in left_out(answer) {
        writeln!(out, "{}", wrapped(&format!("  left out: {refused}")))?;
    }
    write!(out, "{}", texts(&answer.tables, wrapped))?;
    writeln!(out)
}

/// Sentences about the sites that an answer is without.
pub(super) fn left_out(answer: &FoundAnswer) -> &[String] {
    match answer.stage {
        QuestionStage::Done { .. } => &answer.refused,
        QuestionStage::Open { .. } | QuestionStage::Stopped { .. } => &[],
    }
}

/// Stage of a question, in a sentence.
pub(super) fn stage(answer: &FoundAnswer) -> String {
    match &answer.stage {
        QuestionStage::Open { rounds } => {
            format!("no answer yet, after {}", numbers::plural(*rounds, "round"))
        }
        QuestionStage::Done { rounds, counts, .. } => format!(
            "answered by {} in {}; every member has checked each sum, and {}",
            numbers::plural(counts.sites as usize, "site"),
            numbers::plural(*rounds, "round"),
            seen(answer.question.mode)
        ),
        QuestionStage::Stopped { rounds, why } => format!(
            "it ended without an answer after {}: {}",
            numbers::plural(*rounds, "round"),
            numbers::plain(why)
        ),
    }
}

/// Returns what members see beside the answer.
fn seen(mode: QuestionMode) -> &'static str {
    match mode {
        QuestionMode::Clear => "sees the numbers of every site",
        QuestionMode::Masked => "sees the sums alone",
        QuestionMode::Noised => "sees the sums alone, with the noise of every site",
    }
}
