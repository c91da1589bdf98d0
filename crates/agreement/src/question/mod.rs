//! The questions of an agreement: what members answer from their rows, in rounds of the federation.

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::Strategy;
use methods::strategy::{
    AnswerWords, QuestionRounds, QuestionState, QuestionsFirst, REFUSAL_RULES, answer_size,
};
use privacy::masks::CHECKS;
use protocol::parameters::{Release, RoundMode, Unit};
use protocol::privacy::{Group, Privacy};
use protocol::{Epoch, PublicKey};
use questions::table::Condition;
use questions::{
    AgreedColumns, FederatedQuestion, FirstCounts, Kind, Outcome, QuestionMode, QuestionProgress,
    QuestionReplay, QuestionRules, RefusalRule, Step, SumNoise,
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
        let (mut noise, mut groups) = (None, 1);
        let (mode, colluders) = match privacy.mode() {
            RoundMode::Clear | RoundMode::Named => (QuestionMode::Clear, 0),
            RoundMode::Masked(masked) => {
                groups = masked.groups().len();
                (QuestionMode::Masked, masked.colluders)
            }
            RoundMode::Noised(masked, agreed) => {
                noise = Some(SumNoise {
                    multiplier: agreed.z.value(),
                    min_authors: masked.smallest_sum,
                    colluders: masked.colluders,
                });
                (QuestionMode::Noised, masked.colluders)
            }
        };
        let rules = QuestionRules {
            colluders: self.rules.colluders.max(colluders.into()),
            ..self.rules
        };
        FederatedQuestion {
            filter: self.filter.clone(),
            rules,
            mode,
            noise,
            groups,
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
                let few_in_a_group = match &self.kind {
                    Kind::Trees(_) => Some("one of them may have few rows in a node of a tree"),
                    Kind::Baselines(_) => {
                        Some("few sites of one of them may have rows in every fold")
                    }
                    _ => None,
                };
                if let Some(few) = few_in_a_group.filter(|_| groups.len() > 1) {
                    return Some(format!(
                        "the sums of several groups would be opened, and {few}: ask in a federation with one group"
                    ));
                }
                let question = self.question(privacy);
                let mut few = groups.iter();
                few.find_map(|group| question.too_few_sites(group.authors.len() as u64))
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
                let undrawn = || self.question(privacy).check_noise().err();
                let why = why.map(str::to_owned);
                why.or_else(|| undrawn().map(|why| why.to_string()))
            }
        }
    }

    /// The most rounds that it takes where members see sums in this way, repeated ones included.
    pub fn most_rounds(&self, mode: QuestionMode) -> u64 {
        let question = FederatedQuestion {
            mode,
            ..self.plain()
        };
        question.most_rounds() + REPEATED
    }

    /// Bytes of its largest answer in a federation with this privacy: with noise some kinds have other sums.
    pub fn largest_answer(&self, privacy: &Privacy) -> u64 {
        answer_size(self.question(privacy).largest_sum())
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
        let question = self.question(privacy);
        let before = question.after(&opened[..opened.len().checked_sub(1)?]);
        let Ok(Step::Next(progress)) = before else {
            return None;
        };
        question.noise_of_round(&progress, sites)
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
        if let Some(why) = few_in_a_group(replay.question(), &state.groups) {
            return stopped(why);
        }
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
                    why.push("nothing follows from its last sum".into());
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

/// Why the sums of single groups, opened in the first round, allow no other round; `None` if they do.
fn few_in_a_group(question: &FederatedQuestion, groups: &[(u64, Vec<u64>)]) -> Option<String> {
    let mut few = groups
        .iter()
        .filter_map(|(_, sum)| question.check_group(sum).err());
    let why = few.next().filter(|_| question.groups > 1)?;
    Some(format!(
        "the sum of one of {} groups is too small. {why}",
        question.groups
    ))
}

// Every rule has its word in an answer.
const _: () = assert!(RefusalRule::ALL.len() <= REFUSAL_RULES);

/// Bytes of a word of a masked vector.
const WORD: usize = 8;

/// Returns the bytes that a site sends in a round of a question that opens so many numbers, where members see sums in this
/// way: its numbers in clear, or its masked vector without the keys and shares of the masks.
pub fn bytes_of_round(mode: QuestionMode, numbers: usize) -> u64 {
    let words = match mode {
        QuestionMode::Clear => return answer_size(numbers),
        QuestionMode::Masked => numbers + REFUSAL_RULES + CHECKS,
        QuestionMode::Noised => numbers + CHECKS,
    };
    (WORD * words) as u64
}

/// Rounds that may be repeated because a silo is away, beside those of the question.
pub(crate) const REPEATED: u64 = 5;

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

    fn allows(&self, groups: &[(u64, Vec<u64>)]) -> bool {
        few_in_a_group(self.replay.question(), groups).is_none()
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

/// Returns how members of a federation with this privacy see the sums of a question.
fn mode_of(privacy: &Privacy) -> QuestionMode {
    match privacy.mode() {
        RoundMode::Clear | RoundMode::Named => QuestionMode::Clear,
        RoundMode::Masked(_) => QuestionMode::Masked,
        RoundMode::Noised(..) => QuestionMode::Noised,
    }
}

/// Rounds of a federation that learn, beside those of its questions and so many at last; `None` where there are too few
/// rounds.
pub(crate) fn learning_rounds(
    rounds: u64,
    questions: &[AgreedQuestion],
    mode: QuestionMode,
    at_last: u64,
) -> Option<u64> {
    let asked = questions.iter().map(|one| one.most_rounds(mode));
    let asked = asked.sum::<u64>().saturating_add(at_last);
    rounds.checked_sub(asked).filter(|&left| left > 0)
}

/// The names of the members whose answers to a question are added up with those of the member with this key, its own
/// among them; none where there are no groups.
pub fn summed_with<'a>(epoch: &'a Epoch, key: &PublicKey) -> Vec<&'a str> {
    let mut members = epoch.roster.silos().iter();
    let own = members.find(|member| member.key == *key);
    let groups = match epoch.protocol.privacy.mode() {
        RoundMode::Masked(masked) => masked.groups(),
        RoundMode::Clear | RoundMode::Named | RoundMode::Noised(..) => &[],
    };
    let has = |group: &&Group| {
        let mut names = group.authors.iter();
        own.is_some_and(|own| names.any(|(name, _)| *name == own.name))
    };
    let group = groups.iter().find(has);
    let names = group.map_or(&[][..], |group| &group.authors);
    names.iter().map(|(name, _)| name.as_str()).collect()
}

/// The strategy of a federation whose members answer these questions first, and this one at last, which takes so many
/// rounds at most.
pub(crate) fn with_questions(
    strategy: Arc<dyn Strategy>,
    questions: &[AgreedQuestion],
    last: Option<(Arc<dyn QuestionRounds>, u64)>,
    (rounds, privacy): (u64, &Privacy),
) -> Arc<dyn Strategy> {
    if questions.is_empty() && last.is_none() {
        return strategy;
    }
    let of = |agreed: &AgreedQuestion| {
        let rounds = AgreedRounds {
            replay: QuestionReplay::new(agreed.question(privacy)),
            possible: agreed.impossible(privacy).is_none(),
        };
        Arc::new(rounds) as _
    };
    let at_last = last.as_ref().map_or(0, |(_, most)| *most);
    let learning = learning_rounds(rounds, questions, mode_of(privacy), at_last);
    let asking = QuestionsFirst::new(
        strategy,
        questions.iter().map(of).collect(),
        learning.unwrap_or(0),
    );
    Arc::new(match last {
        Some((last, _)) => asking.and_at_last(last),
        None => asking,
    })
}

#[cfg(test)]
mod tests;
