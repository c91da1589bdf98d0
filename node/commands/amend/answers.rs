//! `rota federation answers`: what the questions of the agreement have opened.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use agreement::{Agreement, QuestionStage};
use formatting::numbers;
use questions::kinds::trees::TreesOutcome;
use questions::outcome::PrintedTable;
use questions::{FederatedQuestion, Outcome, QuestionMode};
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
    /// Number of sites that refused.
    sites_refusing: u64,
    /// Number of sites that refused, by rule, as sentences.
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
        sites_refusing: answer.refusing,
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

/// Sentences about the sites that an answer is without, none of which is named. Where it has none because of them, its
/// stage says so.
pub(super) fn left_out(answer: &FoundAnswer) -> &[String] {
    match answer.stage {
        QuestionStage::Done { .. } | QuestionStage::Open { .. } => &answer.refused,
        QuestionStage::Stopped { .. } => &[],
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
            seen(&answer.question)
        ),
        QuestionStage::Stopped { rounds, why } => format!(
            "it ended without an answer after {}: {}",
            numbers::plural(*rounds, "round"),
            numbers::plain(why)
        ),
    }
}

/// Returns what members see beside the answer.
fn seen(question: &FederatedQuestion) -> &'static str {
    match question.mode {
        QuestionMode::Clear => "sees the numbers of every site",
        QuestionMode::Masked if question.groups > 1 => "sees the sum of each group of sites alone",
        QuestionMode::Masked => "sees the sums alone",
        QuestionMode::Noised => "sees the sums alone, with the noise of every site",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use agreement::AgreedQuestion;
    use methods::strategy::{QuestionState, REFUSAL_RULES};
    use protocol::privacy::Privacy;

    use super::*;
    use crate::answers::page::{AnswerCost, QuestionStory, page};

    const AGE: &str = "reason = \"how old\"\nkind = \"describe\"\ncolumns = [\"age\"]\n[ranges]\nage = [0, 120]\n";

    /// An answer that two sites have refused, by different rules.
    fn refused() -> FoundAnswer {
        let agreed: AgreedQuestion = toml::from_str(AGE).unwrap();
        let mut state = QuestionState {
            opened: vec![vec![4, 400, 400, 0], vec![400, 0, 100 << 30]],
            refused: vec![0; REFUSAL_RULES],
            ..QuestionState::default()
        };
        state.refused[3] = 1;
        state.refused[4] = 1;
        let question = agreed.question(&Privacy::Clear);
        FoundAnswer {
            number: 1,
            reason: agreed.reason.clone(),
            kind: question.kind.name(),
            opened: AnswerCost::of(question.mode, state.opened.iter().map(Vec::len)),
            question,
            refused: AgreedQuestion::refusals(&state),
            refusing: 2,
            stage: agreed.stage(&state, &Privacy::Clear),
            tables: Vec::new(),
        }
    }

    #[test]
    fn text_page_and_json_state_the_same_refusals() {
        let answer = refused();
        assert_eq!(left_out(&answer).len(), 2);
        let mut text = Vec::new();
        print_one(&mut text, &answer).unwrap();
        let text = String::from_utf8(text).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let story = QuestionStory {
            name: "question 1",
            lead: "",
            question: &answer.question,
            found: None,
            sheets: &[],
            left_out: left_out(&answer),
            opened: answer.opened,
            command: "",
        };
        let page = page(&story);
        let certificate = AnswerCertificate {
            federation: "wards".to_owned(),
            federation_id: String::new(),
            round: 7,
            block: String::new(),
            outcome: String::new(),
            certificate: None,
            quorum: 3,
            members: 4,
        };
        let json = serde_json::to_value(document(&answer, &certificate)).unwrap();
        assert_eq!(json["sites_refusing"], 2);
        for (at, rule) in ["rule pieces", "rule dominance"].into_iter().enumerate() {
            let said = json["refused"][at].as_str().unwrap();
            assert!(
                said.starts_with("1 site refused") && said.contains(rule),
                "{said}"
            );
            assert!(text.contains(&format!("left out: {said}")), "{text}");
            assert!(page.contains(&format!("<li>{said}</li>")), "{page}");
        }
    }
}
