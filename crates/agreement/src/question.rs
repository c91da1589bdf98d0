//! The questions of an agreement: what members answer from their rows, in rounds of the federation.

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::Strategy;
use methods::strategy::{
    AnswerWords, QuestionRounds, QuestionState, QuestionsFirst, REFUSAL_RULES, answer_size,
};
use privacy::noise::{Authors, Multiplier};
use privacy::sensitivity::Sensitivity;
use protocol::parameters::{Release, RoundMode, Unit};
use protocol::privacy::Privacy;
use questions::table::Condition;
use questions::{
    AgreedColumns, FederatedQuestion, FirstCounts, Kind, Outcome, QuestionMode, QuestionProgress,
    QuestionReplay, QuestionRules, RefusalRule, Step,
};
use serde::{Deserialize, Serialize};

/// A question that the members agreed to answer. In clear rounds every member sees the numbers of every site, so the
/// limits of counts hold for each site alone; otherwise sums alone are opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AgreedQuestion {
    /// Purpose of the question, human-readable.
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

/// Progress of a question of an agreement.
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
        /// Counts known since its first round.
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
    /// A question for the members of a federation.
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

    /// The question itself, as the members of a federation with this privacy answer it.
    pub fn question(&self, privacy: &Privacy) -> FederatedQuestion {
        let agreed = AgreedColumns {
            ranges: self.ranges.clone(),
            levels: self.levels.clone(),
        };
        let (mode, colluders) = match privacy.mode() {
            RoundMode::Clear | RoundMode::Named => (QuestionMode::Clear, 0),
            RoundMode::Masked(masked) => (QuestionMode::Masked, masked.colluders),
            RoundMode::Noised(masked, _) => (QuestionMode::Noised, masked.colluders),
        };
        let rules = QuestionRules {
            colluders: self.rules.colluders.max(colluders.into()),
            ..self.rules
        };
        FederatedQuestion {
            filter: self.filter.clone(),
            rules,
            mode,
            exponent: self.exponent,
            ..FederatedQuestion::new(self.kind.clone(), agreed)
        }
    }

    /// The question without regard to who sees what.
    pub(crate) fn plain(&self) -> FederatedQuestion {
        self.question(&Privacy::Clear)
    }

    /// Its name in questions.
    pub fn kind(&self) -> &'static str {
        self.kind.name()
    }

    /// Why the members of a federation with this privacy cannot answer it, in a sentence; `None` if they can.
    pub fn impossible(&self, privacy: &Privacy) -> Option<String> {
        match privacy.mode() {
            RoundMode::Clear | RoundMode::Named => None,
            RoundMode::Masked(masked) => {
                let groups = masked.groups();
                let [group] = groups else {
                    return Some(format!(
                        "sums of {} groups would be opened, and the rules of disclosure are those of one sum: ask in \
                         a federation with one group",
                        groups.len()
                    ));
                };
                self.question(privacy)
                    .too_few_sites(group.authors.len() as u64)
            }
            RoundMode::Noised(_, noise) => {
                let why = match (&noise.release, &noise.unit) {
                    (Release::Once { .. }, _) => Some(
                        "the model of this federation is solved from one sum, and it has no other round",
                    ),
                    (Release::Steps, Unit::Person(_)) => Some(
                        "noise protects persons here, and what all rows of one change has no small bound in a question",
                    ),
                    (Release::Steps, Unit::Row) => self.plain().without_noise(),
                };
                why.map(str::to_owned)
            }
        }
    }

    /// The most rounds that it takes, repeated ones included.
    pub fn most_rounds(&self) -> u64 {
        self.plain().most_rounds() + REPEATED
    }

    /// Bytes of its largest answer.
    pub fn largest_answer(&self) -> u64 {
        answer_size(self.plain().largest_sum())
    }

    /// Returns how many sites refused it by each rule, as sentences.
    pub fn refusals(state: &QuestionState) -> Vec<String> {
        let sites = RefusalRule::ALL.iter().zip(&state.refused);
        let refused = sites.filter(|(_, sites)| **sites > 0);
        let said = |(rule, sites): (&RefusalRule, &u64)| match sites {
            1 => format!("1 site refused ({rule})"),
            sites => format!("{sites} sites refused ({rule})"),
        };
        refused.map(said).collect()
    }

    /// Standard deviation of the noise in each number of the last opened round, which `sites` sites answered; `None`
    /// without noise.
    pub fn noise(&self, privacy: &Privacy, opened: &[Vec<u64>], sites: f64) -> Option<f64> {
        let (masked, noise) = match privacy.mode() {
            RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => return None,
            RoundMode::Noised(masked, noise) => (masked, noise),
        };
        let question = self.question(privacy);
        let before = question.after(&opened[..opened.len().checked_sub(1)?]);
        let Ok(Step::Next(progress)) = before else {
            return None;
        };
        let numbers = question.layout(&progress).ok()?.len() as u64;
        let sensitivity = Sensitivity::new(numbers).ok()?;
        let z = Multiplier::new(noise.z.value()).ok()?;
        let authors = Authors::new(masked.smallest_sum, masked.colluders).ok()?;
        let sigma = authors.gaussian(z, sensitivity).ok()?.sigma() as f64;
        let norm = question.row_norm(&progress).ok()?;
        Some(sigma * sites.sqrt() / sensitivity.whole_steps(norm))
    }

    /// Returns how far it has come, by what a state keeps of it under this privacy.
    pub fn stage(&self, state: &QuestionState, privacy: &Privacy) -> QuestionStage {
        let replay = QuestionReplay::new(self.question(privacy));
        let rounds = state.opened.len();
        let stopped = |why: String| QuestionStage::Stopped { rounds, why };
        let counts = match replay.after(&state.opened[..rounds.min(1)]) {
            Ok(Step::Next(progress)) => progress.counts().cloned().unwrap_or_default(),
            Ok(Step::Done(_) | Step::Stopped(_)) | Err(_) => FirstCounts::default(),
        };
        match replay.after(&state.opened) {
            Ok(Step::Done(outcome)) => QuestionStage::Done {
                rounds,
                counts,
                outcome: Box::new(outcome),
            },
            Ok(Step::Stopped(why)) => stopped(why.to_string()),
            Err(why) => stopped(why.to_string()),
            Ok(Step::Next(_)) if state.ended => {
                let mut why = Self::refusals(state);
                if why.is_empty() {
                    why.push("a site refused".into());
                }
                stopped(why.join("; "))
            }
            Ok(Step::Next(_)) if state.is_abandoned() => stopped(
                "silos that answered its first round did not answer three rounds in a row, or the sums told nothing: \
                 ask again when they are back"
                    .into(),
            ),
            Ok(Step::Next(_)) => match self.impossible(privacy) {
                Some(why) => stopped(why),
                None => QuestionStage::Open { rounds },
            },
        }
    }
}

// Every rule has its word in an answer.
const _: () = assert!(RefusalRule::ALL.len() <= REFUSAL_RULES);

/// Rounds that may be repeated because a silo is away, beside those of the question.
const REPEATED: u64 = 5;

/// The rounds of a question, for the strategy.
struct AgreedRounds {
    replay: QuestionReplay,
    possible: bool,
}

impl AgreedRounds {
    /// Returns what all know before the next round; `None` if there is none.
    fn progress(&self, opened: &[Vec<u64>]) -> Option<QuestionProgress> {
        let after = self.replay.after(opened).ok().filter(|_| self.possible);
        match after? {
            Step::Next(progress) => Some(progress),
            Step::Done(_) | Step::Stopped(_) => None,
        }
    }
}

impl QuestionRounds for AgreedRounds {
    fn next(&self, opened: &[Vec<u64>]) -> Option<usize> {
        let progress = self.progress(opened)?;
        let layout = self.replay.question().layout(&progress).ok()?;
        Some(layout.len())
    }

    fn largest(&self) -> usize {
        self.replay.question().largest_sum()
    }

    fn row_norm(&self, opened: &[Vec<u64>]) -> Option<f64> {
        self.progress(opened)
            .filter(|_| self.replay.question().mode == QuestionMode::Noised)
            .and_then(|progress| self.replay.question().row_norm(&progress).ok())
    }

    fn noised(&self, opened: &[Vec<u64>], sum: &AnswerWords) -> Option<Vec<u64>> {
        let progress = self.progress(opened)?;
        let numbers = sum.words.iter().map(|word| f64::from_bits(*word));
        let numbers: Vec<_> = numbers.collect();
        let question = self.replay.question();
        question.noised_words(&progress, &numbers, sum.authors).ok()
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
    (rounds, privacy): (u64, &Privacy),
) -> Arc<dyn Strategy> {
    if questions.is_empty() {
        return strategy;
    }
    let of = |agreed: &AgreedQuestion| {
        let rounds = AgreedRounds {
            replay: QuestionReplay::new(agreed.question(privacy)),
            possible: agreed.impossible(privacy).is_none(),
        };
        Arc::new(rounds) as _
    };
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
    use protocol::parameters::{Noise, Real};
    use protocol::privacy::{Group, Masked, Sums};

    use super::*;

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");
    const AGE: &str = "\n[[question]]\nreason = \"how old the patients are\"\nkind = \"describe\"\ncolumns = [\"age\"]\n\
                       [question.ranges]\nage = [0, 120]\n";

    const TREES: &str = "\n[[question]]\nreason = \"a score\"\nkind = \"trees\"\noutcome = \"ill = 1\"\n\
                         columns = [\"age\", \"bmi\"]\ntrees = 20\ndepth = 3\nlambda = 1\nedges = { bmi = [20, 25] }\n\
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
        for question in [TREES, AGE] {
            let text = old.asking(asked(question)).unwrap();
            let new = Agreement::parse("new", &text).unwrap();
            assert_eq!(new.questions, [asked(question)]);
            let rounds = |of: &Agreement| of.epoch.protocol.rounds;
            assert_eq!(rounds(&new), rounds(&old) + new.questions[0].most_rounds());
            let again = Agreement::parse("again", &new.to_toml().unwrap()).unwrap();
            assert_eq!(again.questions, new.questions);
            assert_ne!(new.contents(), old.contents());
        }
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
    fn nobody_answers_in_silence_unless_its_policy_allows_it() {
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

    /// Secure aggregation in groups of these sizes, with two colluders.
    fn masked(groups: &[usize]) -> Privacy {
        let group = |(at, size): (usize, &usize)| {
            let authors = (0..*size).map(|member| (format!("{at} {member:02}"), 1));
            Group {
                authors: authors.collect(),
            }
        };
        Privacy::Masked(Masked {
            colluders: 2,
            smallest_sum: 4,
            shows: Vec::new(),
            sums: Sums::Groups(groups.iter().enumerate().map(group).collect()),
        })
    }

    fn noised(unit: Unit) -> Privacy {
        Privacy::Masked(Masked {
            colluders: 1,
            smallest_sum: 3,
            shows: Vec::new(),
            sums: Sums::Noised(Noise {
                release: Release::Steps,
                unit,
                clip: Real::new(1.0),
                z: Real::new(20.0),
                delta: Real::new(1e-5),
            }),
        })
    }

    fn kind(text: &str) -> AgreedQuestion {
        let text = format!("reason = \"how\"\n{text}\n[ranges]\nage = [0, 120]\n");
        toml::from_str(&text).unwrap()
    }

    #[test]
    fn the_mode_and_the_colluders_are_those_of_the_agreement() {
        let age = asked(AGE);
        for (privacy, mode, colluders) in [
            (Privacy::Clear, QuestionMode::Clear, 1),
            (masked(&[9]), QuestionMode::Masked, 2),
            (noised(Unit::Row), QuestionMode::Noised, 1),
        ] {
            let question = age.question(&privacy);
            assert_eq!((question.mode, question.rules.colluders), (mode, colluders));
            assert_eq!(age.impossible(&privacy), None);
        }
        let two = age.impossible(&masked(&[9, 9])).unwrap();
        assert!(two.contains("sums of 2 groups"), "{two}");
        let stage = age.stage(&QuestionState::default(), &masked(&[9, 9]));
        assert!(matches!(stage, QuestionStage::Stopped { rounds: 0, .. }));
    }

    #[test]
    fn sums_that_would_tell_single_sites_are_not_asked_for() {
        let meta = |more: &str| {
            kind(&format!(
                "kind = \"meta\"\neffect = {{ mean = {{ column = \"age\" }} }}\n{more}"
            ))
        };
        let few = meta("").impossible(&masked(&[14])).unwrap();
        assert!(few.contains("needs 15 sites or more"), "{few}");
        assert_eq!(meta("").impossible(&masked(&[15])), None);
        let reml = meta("reml = true").impossible(&masked(&[99])).unwrap();
        assert!(reml.contains("REML"), "{reml}");
        assert_eq!(meta("reml = true").impossible(&Privacy::Clear), None);
    }

    #[test]
    fn noise_goes_with_counts_of_rows_only() {
        let describe = asked(AGE);
        let persons = describe.impossible(&noised(Unit::Person("id".into())));
        assert!(persons.unwrap().contains("persons"));
        let quantiles =
            kind("kind = \"quantiles\"\ncolumns = [\"age\"]\nprobabilities = [0.5]\nwidth = 1.0");
        let why = quantiles.impossible(&noised(Unit::Row)).unwrap();
        assert!(why.contains("every round would need noise"), "{why}");
        // One row of 20 Δ, shared by two of three authors, in the sum of four.
        let sums = [vec![4, 400, 400, 0], vec![400, 0, 0]];
        let noise = describe.noise(&noised(Unit::Row), &sums, 4.0).unwrap();
        let expected = 20.0 * 3f64.sqrt() * (4.0f64 / 2.0).sqrt();
        assert!((noise / expected - 1.0).abs() < 0.01, "{noise}, {expected}");
    }
}
