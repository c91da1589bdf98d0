//! The questions of an agreement: what members answer from their rows, in rounds of the federation.

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::Strategy;
use methods::strategy::{QuestionRounds, QuestionState, QuestionsFirst, answer_size};
use questions::table::Condition;
use questions::{
    AgreedColumns, FederatedQuestion, FirstCounts, Kind, Outcome, QuestionMode, QuestionRules, Step,
};
use serde::{Deserialize, Serialize};

/// A question that the members agreed to answer. Every member sees the numbers of every site, so the limits of
/// counts hold for each site alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AgreedQuestion {
    /// Why it is asked, for people.
    pub reason: String,
    /// The rows that are asked for: all these conditions hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    filter: Vec<Condition>,
    /// Real numbers are encoded in steps of 2^(`exponent`−30).
    #[serde(default, skip_serializing_if = "is_zero")]
    exponent: i32,
    /// The limits of disclosure that members apply to opened counts.
    #[serde(default)]
    rules: QuestionRules,
    /// Agreed ranges of columns of numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    ranges: BTreeMap<String, [f64; 2]>,
    /// Agreed levels of columns of categories.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    levels: BTreeMap<String, Vec<String>>,
    /// The kind with its columns and options: all other keys.
    #[serde(flatten)]
    kind: Kind,
}

fn is_zero(exponent: &i32) -> bool {
    *exponent == 0
}

/// How far a question of an agreement has come.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionStage {
    /// Rounds are still to come.
    Open {
        /// Rounds so far.
        rounds: usize,
    },
    /// It has an answer.
    Done {
        /// Rounds that it took.
        rounds: usize,
        /// What is known since its first round.
        counts: FirstCounts,
        /// The answer.
        outcome: Box<Outcome>,
    },
    /// It has none.
    Stopped {
        /// Rounds that it took.
        rounds: usize,
        /// The reason, in a sentence.
        why: String,
    },
}

impl AgreedQuestion {
    /// A question as members of a federation in clear answer it.
    pub fn new(reason: &str, question: &FederatedQuestion) -> Self {
        let question = question.clone();
        Self {
            reason: reason.to_owned(),
            filter: question.filter,
            exponent: question.exponent,
            rules: question.rules,
            ranges: question.agreed.ranges,
            levels: question.agreed.levels,
            kind: question.kind,
        }
    }

    /// The question itself.
    pub fn question(&self) -> FederatedQuestion {
        let agreed = AgreedColumns {
            ranges: self.ranges.clone(),
            levels: self.levels.clone(),
        };
        FederatedQuestion {
            filter: self.filter.clone(),
            rules: self.rules,
            mode: QuestionMode::Clear,
            exponent: self.exponent,
            ..FederatedQuestion::new(self.kind.clone(), agreed)
        }
    }

    /// The most rounds that it takes, repeated ones included.
    pub fn most_rounds(&self) -> u64 {
        self.question().most_rounds() + REPEATED
    }

    /// Bytes of its largest answer.
    pub fn largest_answer(&self) -> u64 {
        answer_size(self.question().largest_sum())
    }

    /// Returns how far it has come, by what a state keeps of it.
    pub fn stage(&self, state: &QuestionState) -> QuestionStage {
        let question = self.question();
        let rounds = state.opened.len();
        let stopped = |why: String| QuestionStage::Stopped { rounds, why };
        let counts = match question.after(&state.opened[..rounds.min(1)]) {
            Ok(Step::Next(progress)) => progress.counts().cloned().unwrap_or_default(),
            Ok(Step::Done(_) | Step::Stopped(_)) | Err(_) => FirstCounts::default(),
        };
        match question.after(&state.opened) {
            Ok(Step::Done(outcome)) => QuestionStage::Done {
                rounds,
                counts,
                outcome: Box::new(outcome),
            },
            Ok(Step::Stopped(why)) => stopped(why.to_string()),
            Err(why) => stopped(why.to_string()),
            Ok(Step::Next(_)) if state.is_abandoned() => stopped(
                "silos that answered its first round did not answer three rounds in a row: ask again when \
                 they are back"
                    .into(),
            ),
            Ok(Step::Next(_)) => QuestionStage::Open { rounds },
        }
    }
}

/// Rounds that may be repeated because a silo is away, beside those of the question.
const REPEATED: u64 = 5;

/// The rounds of a question, for the strategy.
struct AgreedRounds(FederatedQuestion);

impl QuestionRounds for AgreedRounds {
    fn next(&self, opened: &[Vec<u64>]) -> Option<usize> {
        match self.0.after(opened).ok()? {
            Step::Next(progress) => self.0.layout(&progress).ok().map(|layout| layout.len()),
            Step::Done(_) | Step::Stopped(_) => None,
        }
    }

    fn largest(&self) -> usize {
        self.0.largest_sum()
    }
}

/// Rounds of a federation that learn, beside those of its questions; `None` where there are too few rounds.
pub(crate) fn learning_rounds(rounds: u64, questions: &[AgreedQuestion]) -> Option<u64> {
    let asked = questions.iter().map(AgreedQuestion::most_rounds);
    rounds.checked_sub(asked.sum()).filter(|&left| left > 0)
}

/// The strategy of a federation whose members answer these questions first.
pub(crate) fn with_questions(
    strategy: Arc<dyn Strategy>,
    questions: &[AgreedQuestion],
    rounds: u64,
) -> Arc<dyn Strategy> {
    if questions.is_empty() {
        return strategy;
    }
    let of = |agreed: &AgreedQuestion| Arc::new(AgreedRounds(agreed.question())) as _;
    let learning = learning_rounds(rounds, questions).unwrap_or(0);
    Arc::new(QuestionsFirst::new(
        strategy,
        questions.iter().map(of).collect(),
        learning,
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::{Agreement, AmendError, Routine};

    use super::*;

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");
    const AGE: &str = "\n[[question]]\nreason = \"how old the patients are\"\nkind = \"describe\"\ncolumns = [\"age\"]\n\
                       [question.ranges]\nage = [0, 120]\n";

    fn agreement() -> Agreement {
        Agreement::parse("federation.toml", EXAMPLE).unwrap()
    }

    fn asked(text: &str) -> AgreedQuestion {
        let table: toml::Table = toml::from_str(text).unwrap();
        let list = table["question"].as_array().unwrap();
        list[0].clone().try_into().unwrap()
    }

    #[test]
    fn a_question_comes_with_its_rounds_and_reads_as_it_was_written() {
        let old = agreement();
        let text = old.asking(asked(AGE)).unwrap();
        let new = Agreement::parse("new", &text).unwrap();
        assert_eq!(new.questions, [asked(AGE)]);
        let rounds = |of: &Agreement| of.epoch.protocol.rounds;
        assert_eq!(rounds(&new), rounds(&old) + new.questions[0].most_rounds());
        assert_eq!(
            Agreement::parse("again", &new.to_toml().unwrap())
                .unwrap()
                .questions,
            new.questions
        );
        assert_ne!(new.contents(), old.contents());
        // One without questions has the bytes that it had before there were any.
        assert_eq!(
            Agreement::parse("old", &old.to_toml().unwrap())
                .unwrap()
                .contents(),
            old.contents()
        );
    }

    #[test]
    fn questions_are_only_added_behind_those_that_there_are() {
        let old = agreement();
        let one = Agreement::parse("one", &old.asking(asked(AGE)).unwrap()).unwrap();
        let other = AGE
            .replace("\"age\"]", "\"bmi\"]")
            .replace("age = [", "bmi = [");
        let two = one.asking(asked(&other)).unwrap();
        assert!(one.amended("two.toml", &two, learn::stand_in).is_ok());
        for wrong in [old.to_toml().unwrap(), old.asking(asked(&other)).unwrap()] {
            let why = one
                .amended("wrong.toml", &wrong, learn::stand_in)
                .unwrap_err();
            assert!(matches!(why, AmendError::Fixed { .. }), "{why}");
            assert!(
                why.to_string().contains("the questions that there are"),
                "{why}"
            );
        }
    }

    #[test]
    fn nobody_answers_in_silence_unless_its_policy_says_so() {
        let old = agreement();
        let new = Agreement::parse("new", &old.asking(asked(AGE)).unwrap()).unwrap();
        let why = old.needs_signature(&new, &Routine::ALL).unwrap();
        assert!(why.contains("question"), "{why}");
        let mut standing = Routine::ALL.to_vec();
        standing.push(Routine::Questions);
        assert_eq!(old.needs_signature(&new, &standing), None);
        let without_rounds = [Routine::Questions];
        assert!(old.needs_signature(&new, &without_rounds).is_some());
    }

    #[test]
    fn a_question_that_cannot_be_answered_is_refused() {
        let text = agreement().asking(asked(AGE)).unwrap();
        let wrong = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}: {text}");
            let why = Agreement::parse("new.toml", &text.replace(from, to)).err();
            why.unwrap().to_string()
        };
        let rounds = agreement().epoch.protocol.rounds + asked(AGE).most_rounds();
        let few = wrong(&format!("rounds = {rounds}"), "rounds = 3");
        assert!(few.contains("`rounds` must be more than"), "{few}");
        let kind = wrong("\"describe\"", "\"descrieb\"");
        assert!(kind.contains("descrieb"), "{kind}");
        let range = wrong("age = [", "bmi = [");
        assert!(range.contains("is not agreed"), "{range}");
    }
}
