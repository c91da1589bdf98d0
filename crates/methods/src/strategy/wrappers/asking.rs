//! Wraps a strategy to answer the questions of an agreement first, in rounds in which members share numbers
//! that add up.

use std::sync::Arc;

use crate::learner::{LearnError, Learner, Task, Update};
use crate::merging::MergeTree;
use crate::params::{Layout, Params, Role, TensorSpec};
use crate::strategy::{
    DecideError, Decision, EquipError, Kept, LoadedManifest, Memory, ModelEntry, Names, Newcomer,
    Objection, Outcome, OwnRadius, Participant, Plan, Scored, SettleError, State, Strategy, Watch,
};

/// Tensor of a contribution: the pseudonym of the silo, for this question.
const SITE: &str = "answer.site";
/// Tensor of a contribution: the silo's numbers.
const WORDS: &str = "answer.words";
/// Values of single precision in which a number of 64 bits travels: 16 bits each, which it holds exactly.
const DIGITS: usize = 4;
/// Value of a digit's place.
const PLACE: u64 = 1 << 16;
/// Rounds in a row without the same silos as before after which a question ends without an answer.
const PATIENCE: u64 = 3;
/// Begins the names of all that is kept of questions.
const KEPT: &str = "question.";
/// Name of the count of all rounds that questions took.
const ROUNDS: &str = "question.rounds";

/// Name of the count of rounds of the inner strategy.
const LEARNED: &str = "question.learned";

/// The rounds of a question, as a function of what they have opened.
pub trait QuestionRounds: Send + Sync {
    /// Length of the sum that the next round opens, after these; `None` once the question is over.
    fn next(&self, opened: &[Vec<u64>]) -> Option<usize>;

    /// No sum of it is longer.
    fn largest(&self) -> usize;
}

/// How far a question has come, read from what the strategy keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuestionState {
    /// The sums that its rounds opened, in order, modulo 2⁶⁴.
    pub opened: Vec<Vec<u64>>,
    /// The silos that answered its first round, by their pseudonyms, ascending.
    pub sites: Vec<u64>,
    /// Rounds in a row in which other silos answered.
    pub missed: u64,
}

impl QuestionState {
    /// Returns whether it ended because silos that had answered its first round stayed away.
    pub fn is_abandoned(&self) -> bool {
        self.missed >= PATIENCE
    }

    /// Reads what a strategy keeps of a question, counted from 0 as the agreement lists them.
    pub fn of(memory: &Memory, question: usize) -> Self {
        let counts = |name: String| match memory.get(&name) {
            Some(Kept::Counts(counts)) => Some(counts.clone()),
            _ => None,
        };
        let rounds = (0..).map_while(|round| counts(sum_name(question, round)));
        Self {
            opened: rounds.collect(),
            sites: counts(sites_name(question)).unwrap_or_default(),
            missed: memory.count(&missed_name(question)).unwrap_or(0),
        }
    }
}

fn sum_name(question: usize, round: usize) -> String {
    format!("{KEPT}{question}.sum.{round}")
}

fn sites_name(question: usize) -> String {
    format!("{KEPT}{question}.sites")
}

fn missed_name(question: usize) -> String {
    format!("{KEPT}{question}.missed")
}

/// Questions are answered in the order in which the agreement lists them, before the rounds of the inner
/// strategy go on. The sums are kept in the state, so that everybody can repeat every step.
///
/// Every round of a question has the same silos as its first; one that lacks some of them opens nothing and is
/// repeated. After three in a row the question ends without an answer.
pub struct QuestionsFirst {
    inner: Arc<dyn Strategy>,
    questions: Vec<Arc<dyn QuestionRounds>>,
    /// Rounds of the inner strategy.
    learning: u64,
}

/// A contribution, read.
struct ReadAnswer {
    site: u64,
    words: Vec<u64>,
}

impl ReadAnswer {
    /// Reads a contribution, or gives the reason why it is no answer in one sentence.
    fn read(model: &Params) -> Result<Self, String> {
        let numbers = |name: &str| {
            let digits = model.tensor(name);
            let digits = digits.ok_or_else(|| format!("the answer has no tensor {name:?}"))?;
            let whole = |digit: &&f32| digit.fract() == 0.0 && (0.0..PLACE as f32).contains(*digit);
            if !digits.iter().all(|digit| whole(&digit)) {
                return Err(
                    "the answer holds a digit that is no whole number of 16 bits".to_owned(),
                );
            }
            let number = |digits: &[f32]| {
                let places = digits.iter().rev();
                places.fold(0, |number: u64, &digit| {
                    number.wrapping_mul(PLACE).wrapping_add(digit as u64)
                })
            };
            Ok(digits.chunks(DIGITS).map(number).collect::<Vec<_>>())
        };
        let site = numbers(SITE)?;
        let &[site] = site.as_slice() else {
            return Err("the answer has not one pseudonym".into());
        };
        Ok(Self {
            site,
            words: numbers(WORDS)?,
        })
    }

    /// The contribution.
    fn write(&self) -> Params {
        let digits = |word: &u64| {
            let mut rest = *word;
            std::array::from_fn::<_, DIGITS, _>(|_| {
                let digit = rest % PLACE;
                rest /= PLACE;
                digit as f32
            })
        };
        let numbers = [self.site];
        let numbers = numbers.iter().chain(&self.words);
        let values: Vec<f32> = numbers.flat_map(digits).collect();
        Params::from_values(&layout(self.words.len()), &values)
    }
}

/// Layout of an answer of so many numbers.
fn layout(words: usize) -> Arc<Layout> {
    Layout::new(vec![
        TensorSpec::new(SITE, [1, DIGITS], Role::Buffer),
        TensorSpec::new(WORDS, [words, DIGITS], Role::Buffer),
    ])
    .expect("two tensors with different names")
}

/// Bytes of an answer of so many numbers.
pub fn answer_size(words: usize) -> u64 {
    layout(words).document_len() as u64
}

/// The round under way of a question.
struct AskedRound {
    question: usize,
    state: QuestionState,
    words: usize,
}

impl QuestionsFirst {
    /// Puts the rounds of questions before the `learning` rounds of `inner`, with which the federation ends.
    pub fn new(
        inner: Arc<dyn Strategy>,
        questions: Vec<Arc<dyn QuestionRounds>>,
        learning: u64,
    ) -> Self {
        Self {
            inner,
            questions,
            learning,
        }
    }

    /// The round of a question that comes next; `None` where the inner strategy goes on.
    fn asked(&self, state: &State) -> Option<AskedRound> {
        let rounds = self.questions.iter().enumerate();
        rounds
            .filter_map(|(question, rounds)| {
                let state = QuestionState::of(&state.memory, question);
                if state.is_abandoned() {
                    return None;
                }
                let words = rounds.next(&state.opened)?;
                Some(AskedRound {
                    question,
                    state,
                    words,
                })
            })
            .next()
    }

    /// The round of the inner strategy.
    fn inner_round(state: &State, round: u64) -> u64 {
        round.saturating_sub(state.memory.count(ROUNDS).unwrap_or(0))
    }
}

/// Every silo stays in the coalition that its entry names.
fn coalitions(manifest: &LoadedManifest) -> Vec<u32> {
    let entries = manifest.entries.iter();
    entries.map(|entry| entry.coalition.unwrap_or(0)).collect()
}

impl AskedRound {
    /// The answers of a manifest, or which entry is unusable and why.
    fn answers(&self, manifest: &LoadedManifest) -> Result<Vec<ReadAnswer>, DecideError> {
        manifest.not_empty()?;
        let mut answers = Vec::with_capacity(manifest.entries.len());
        for (entry, ModelEntry { model, .. }) in manifest.entries.iter().enumerate() {
            let answer = self.read(model);
            answers.push(answer.map_err(|reason| DecideError::Unusable { entry, reason })?);
        }
        Ok(answers)
    }

    fn read(&self, model: &Params) -> Result<ReadAnswer, String> {
        let answer = ReadAnswer::read(model)?;
        if answer.words.len() != self.words {
            return Err(format!(
                "the answer has {} numbers, the question asks for {}",
                answer.words.len(),
                self.words
            ));
        }
        Ok(answer)
    }

    /// The state after the round.
    fn settle(self, before: &State, answers: &[ReadAnswer]) -> State {
        let Self {
            question,
            state,
            words,
        } = self;
        let mut after = before.clone();
        let rounds = before.memory.count(ROUNDS).unwrap_or(0);
        after.memory.insert(ROUNDS, Kept::Count(rounds + 1));
        let mut sites: Vec<u64> = answers.iter().map(|answer| answer.site).collect();
        sites.sort_unstable();
        let first = state.opened.is_empty();
        if !first && sites != state.sites {
            let missed = Kept::Count(state.missed + 1);
            after.memory.insert(missed_name(question), missed);
            return after;
        }
        let mut sum = vec![0u64; words];
        for answer in answers {
            for (sum, word) in sum.iter_mut().zip(&answer.words) {
                *sum = sum.wrapping_add(*word);
            }
        }
        let name = sum_name(question, state.opened.len());
        after.memory.insert(name, Kept::Counts(sum));
        after.memory.remove(&missed_name(question));
        if first {
            after
                .memory
                .insert(sites_name(question), Kept::Counts(sites));
        }
        after
    }
}

impl Strategy for QuestionsFirst {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn names(&self) -> Names {
        self.inner.names()
    }

    fn draws_members(&self) -> bool {
        self.inner.draws_members()
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.inner.equip(learner)
    }

    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        self.inner.can_take_part(learner, radius)
    }

    fn initial_state(&self, learner: &dyn Learner, seed: u64) -> State {
        self.inner.initial_state(learner, seed)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        match self.asked(state) {
            Some(asked) => Plan::everyone(state, Task::Answer(asked.question as u32)),
            None => self.inner.plan(state, Self::inner_round(state, round)),
        }
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        let Some(asked) = self.asked(state) else {
            let round = Self::inner_round(state, round);
            return self
                .inner
                .contribute(state, plan, round, participant, progress);
        };
        let answers = participant.learner.answers()?;
        let answer = ReadAnswer {
            site: answers.pseudonym(asked.question),
            words: answers.answer(asked.question, &asked.state.opened)?,
        };
        let samples = participant.learner.samples();
        let update = Update::kept(&answer.write(), participant.personal, samples);
        Ok((participant.coalition, update))
    }

    fn score(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        scored: Scored<'_>,
    ) -> Result<f64, LearnError> {
        // Answers are not scored.
        let round = Self::inner_round(state, round);
        self.inner.score(state, plan, round, participant, scored)
    }

    /// Returns whether all rounds so far kept the numbers, because the number of a round alone does not say which of
    /// the inner strategy it is; rounds of questions keep them.
    fn keeps_numbers(&self, round: u64) -> bool {
        (1..=round).all(|round| self.inner.keeps_numbers(round))
    }

    fn expects(
        &self,
        state: &State,
        model: &Arc<Layout>,
        summary: Option<&Arc<Layout>>,
        round: u64,
    ) -> Arc<Layout> {
        match self.asked(state) {
            Some(asked) => layout(asked.words),
            None => {
                let round = Self::inner_round(state, round);
                self.inner.expects(state, model, summary, round)
            }
        }
    }

    fn layouts(&self, model: &Arc<Layout>, summary: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        let mut layouts = self.inner.layouts(model, summary);
        let largest = self.questions.iter().map(|rounds| rounds.largest());
        layouts.extend(largest.map(layout));
        layouts
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        self.inner.admit(entry, round)
    }

    fn admit_after(&self, state: &State, entry: &ModelEntry, round: u64) -> Result<(), String> {
        match self.asked(state) {
            Some(asked) => asked.read(&entry.model).map(drop),
            None => {
                let round = Self::inner_round(state, round);
                self.inner.admit(entry, round)
            }
        }
    }

    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError> {
        let Some(asked) = self.asked(state) else {
            let round = Self::inner_round(state, round);
            return self.inner.decide(state, manifest, round);
        };
        asked.answers(manifest)?;
        Ok(Decision::fixed(coalitions(manifest)))
    }

    fn merge_tree(
        &self,
        state: &State,
        manifest: &dyn Fn() -> Option<LoadedManifest>,
        round: u64,
    ) -> Option<MergeTree> {
        if self.asked(state).is_some() {
            return None;
        }
        let round = Self::inner_round(state, round);
        self.inner.merge_tree(state, manifest, round)
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        let Some(asked) = self.asked(state) else {
            let round = Self::inner_round(state, round);
            return self.inner.check(state, manifest, decision, round);
        };
        asked.answers(manifest)?;
        let rule = "every entry stays in its coalition while a question is answered";
        decision.must_be_fixed(&coalitions(manifest), rule)
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        let Some(asked) = self.asked(state) else {
            let round = Self::inner_round(state, round);
            let mut after = self.inner.settle(state, manifest, decision, round)?;
            // A method may begin its memory anew.
            let kept = state.memory.iter();
            for (name, value) in kept.filter(|(name, _)| name.starts_with(KEPT)) {
                after.state.memory.insert(name, value.clone());
            }
            after.state.memory.insert(LEARNED, Kept::Count(round));
            return Ok(after);
        };
        manifest.fits(&decision.assignment)?;
        let answers = asked.answers(manifest)?;
        let mut after = asked.settle(state, &answers);
        let learned = Self::inner_round(state, round).saturating_sub(1);
        after.memory.insert(LEARNED, Kept::Count(learned));
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: after,
        })
    }

    fn ends(&self, state: &State) -> bool {
        let learned = state.memory.count(LEARNED).unwrap_or(0);
        self.asked(state).is_none() && (learned >= self.learning || self.inner.ends(state))
    }

    fn unseen(
        &self,
        state: &State,
        round: u64,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        let round = Self::inner_round(state, round);
        self.inner.unseen(state, round, newcomer)
    }
}
