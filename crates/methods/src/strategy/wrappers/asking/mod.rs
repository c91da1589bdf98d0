//! Wraps a strategy to answer the questions of an agreement first, and one more at last, in rounds in which members
//! share numbers that add up.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::learner::{LearnError, OpenedSums, OwnAnswer, Task, Update};
use crate::merging::MergeTree;
use crate::params::{Layout, Params};
use crate::strategy::{
    DecideError, Decision, Kept, LoadedManifest, Memory, ModelEntry, Newcomer, Objection, Outcome,
    Participant, Plan, Scored, SettleError, State, StatisticsAccount, Strategy, Watch,
};

mod words;

use words::layout;
pub use words::{AnswerWords, LARGEST_WORD, REFUSAL_RULES, answer_size};

/// Rounds in a row without the same silos as before after which a question ends without an answer.
const PATIENCE: u64 = 3;
/// The number of the question that is asked at last. No question of an agreement has it, however many are added while
/// the federation runs.
pub const LAST_QUESTION: usize = 1_000_000;
/// Begins the names of all that is kept of questions.
const KEPT: &str = "question.";
/// Name of the count of all rounds that questions took.
const ROUNDS: &str = "question.rounds";
/// Name of the count of rounds of the inner strategy.
const LEARNED: &str = "question.learned";
/// Name of the last round of a question that told nothing.
const NOTHING: &str = "question.nothing";

/// The rounds of a question, as a function of what they have opened.
pub trait QuestionRounds: Send + Sync {
    /// Length of the sum that the next round opens, after these; `None` once the question is over.
    fn next(&self, opened: &[Vec<u64>]) -> Option<usize>;

    /// No sum of it is longer.
    fn largest(&self) -> usize;

    /// Returns whether the sums of single groups of silos, which are opened beside the others, allow another round: those
    /// of the first one, by the pseudonym of their authors.
    fn allows(&self, groups: &[(u64, Vec<u64>)]) -> bool {
        let _ = groups;
        true
    }

    /// The norm by which one row changes the sum of the next round at most, where silos add noise to it; `None` where
    /// they add none.
    fn row_norm(&self, opened: &[Vec<u64>]) -> Option<f64> {
        let _ = opened;
        None
    }

    /// The words of a sum of the next round that was opened with noise: `sum` has the bits of numbers of double
    /// precision. `None` if it is no such sum.
    fn noised(&self, opened: &[Vec<u64>], sum: &AnswerWords) -> Option<Vec<u64>> {
        let _ = (opened, sum);
        None
    }
}

/// Progress of a question, read from what the strategy keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QuestionState {
    /// The sums that its rounds opened, in order, modulo 2⁶⁴.
    pub opened: Vec<Vec<u64>>,
    /// The silos that answered its first round, by their pseudonyms, ascending; where sums alone are opened, for each
    /// group of silos that of all its authors together.
    pub sites: Vec<u64>,
    /// Where sums alone are opened, those of the first round, each with the pseudonym of its authors; none with noise.
    pub groups: Vec<(u64, Vec<u64>)>,
    /// Rounds in a row that some of these silos did not answer, or whose sum told nothing.
    pub missed: u64,
    /// Number of silos that refused, by the number of the rule; empty where none did.
    pub refused: Vec<u64>,
    /// True if a refusal ended it: of a silo that the sums cannot do without.
    pub ended: bool,
}

impl QuestionState {
    /// Returns whether it ended because silos that had answered its first round stayed away.
    pub fn is_abandoned(&self) -> bool {
        self.missed >= PATIENCE
    }

    /// Returns whether it has no further round, whatever its sums say.
    fn is_over(&self) -> bool {
        self.ended || self.is_abandoned()
    }

    /// Sums that a silo is told before it answers.
    fn opened(&self) -> OpenedSums<'_> {
        OpenedSums {
            sums: &self.opened,
            groups: &self.groups,
        }
    }

    /// Reads what a strategy keeps of a question, counted from 0 as the agreement lists them.
    pub fn of(memory: &Memory, question: usize) -> Self {
        let counts = |name: String| match memory.get(&name) {
            Some(Kept::Counts(counts)) => Some(counts.clone()),
            _ => None,
        };
        let rounds = (0..).map_while(|round| counts(sum_name(question, round)));
        let sites = counts(sites_name(question)).unwrap_or_default();
        // The sums of all groups, one behind the other.
        let groups = counts(groups_name(question)).unwrap_or_default();
        let each = groups.len() / sites.len().max(1);
        let sums = groups.chunks(each.max(1)).map(<[u64]>::to_vec);
        Self {
            opened: rounds.collect(),
            groups: sites.iter().copied().zip(sums).collect(),
            sites,
            missed: memory.count(&missed_name(question)).unwrap_or(0),
            refused: counts(refused_name(question)).unwrap_or_default(),
            ended: memory.count(&ended_name(question)).is_some(),
        }
    }
}

fn sum_name(question: usize, round: usize) -> String {
    format!("{KEPT}{question}.sum.{round}")
}

fn sites_name(question: usize) -> String {
    format!("{KEPT}{question}.sites")
}

fn groups_name(question: usize) -> String {
    format!("{KEPT}{question}.groups")
}

fn missed_name(question: usize) -> String {
    format!("{KEPT}{question}.missed")
}

fn refused_name(question: usize) -> String {
    format!("{KEPT}{question}.refused")
}

fn ended_name(question: usize) -> String {
    format!("{KEPT}{question}.ended")
}

/// Returns whether this round, after which a strategy keeps this memory, was one of a question and told nothing.
pub fn asked_in_vain(memory: &Memory, round: u64) -> bool {
    memory.count(NOTHING) == Some(round)
}

/// Questions are answered in the order in which the agreement lists them, before the rounds of the inner
/// strategy go on. One more, [`LAST_QUESTION`], may be asked at last, once these rounds are over, and only once: if
/// learning goes on afterwards, what it opened is of other models, and it counts as ended. The sums are kept in the
/// state, so that everybody can repeat every step.
///
/// Every round of a question has the same silos as its first; one that lacks some of them opens nothing and is
/// repeated. After three in a row the question ends without an answer. A silo that refuses says by which rule, and is
/// left out of the first sum; where it cannot be left out, because sums alone are opened or it answered the first
/// round, the question ends.
///
/// Where sums alone are opened, a round has one entry for each group of silos: its sum, with the pseudonym of its authors
/// together. A group in which a silo refuses is left out as a silo would be.
pub struct QuestionsFirst {
    inner: Arc<dyn Strategy>,
    questions: Vec<Arc<dyn QuestionRounds>>,
    /// Rounds of the inner strategy.
    learning: u64,
    /// The question that is asked once these are over.
    last: Option<Arc<dyn QuestionRounds>>,
}

/// The round under way of a question.
struct AskedRound<'a> {
    question: usize,
    rounds: &'a dyn QuestionRounds,
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
            last: None,
        }
    }

    /// Asks one more question once the rounds of the inner strategy are over; the federation ends with it.
    pub fn and_at_last(self, last: Arc<dyn QuestionRounds>) -> Self {
        Self {
            last: Some(last),
            ..self
        }
    }

    /// The round of a question that comes next; `None` where the inner strategy goes on.
    fn asked(&self, state: &State) -> Option<AskedRound<'_>> {
        let mut first = self.questions.iter().enumerate();
        let first = first.find_map(|(question, rounds)| AskedRound::of(state, question, &**rounds));
        first.or_else(|| {
            let last = self.last.as_ref().filter(|_| self.has_learned(state))?;
            AskedRound::of(state, LAST_QUESTION, &**last)
        })
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

impl<'a> AskedRound<'a> {
    /// The next round of a question; `None` where it is over.
    fn of(state: &State, question: usize, rounds: &'a dyn QuestionRounds) -> Option<Self> {
        let state = QuestionState::of(&state.memory, question);
        if state.is_over() || !rounds.allows(&state.groups) {
            return None;
        }
        let words = rounds.next(&state.opened)?;
        Some(Self {
            question,
            rounds,
            state,
            words,
        })
    }

    /// The answers of a manifest, or which entry is unusable and why.
    fn answers(&self, manifest: &LoadedManifest) -> Result<Vec<AnswerWords>, DecideError> {
        manifest.not_empty()?;
        let mut answers = Vec::with_capacity(manifest.entries.len());
        for (entry, ModelEntry { model, .. }) in manifest.entries.iter().enumerate() {
            let answer = self.read(model);
            answers.push(answer.map_err(|reason| DecideError::Unusable { entry, reason })?);
        }
        Ok(answers)
    }

    fn read(&self, model: &Params) -> Result<AnswerWords, String> {
        let answer = AnswerWords::read(model)?;
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
    fn settle(self, before: &State, answers: &[AnswerWords]) -> State {
        let Self {
            question,
            rounds,
            state,
            words,
        } = self;
        let mut after = counted(before);
        let first = state.opened.is_empty();
        // Whoever comes later is in none of the sums.
        let belongs = |answer: &&AnswerWords| first || state.sites.contains(&answer.site);
        let belonging = answers.iter().filter(belongs);
        let (refusals, answers): (Vec<_>, Vec<_>) = belonging.partition(|answer| answer.refuses());
        if !refusals.is_empty() {
            let mut refused = vec![0; REFUSAL_RULES];
            for answer in &refusals {
                // Whoever sends something else than 0 or 1 only makes the question end.
                let silos = answer
                    .refused
                    .iter()
                    .map(|silos| *silos.min(&answer.authors));
                add(&mut refused, &silos.collect::<Vec<_>>());
            }
            let name = refused_name(question);
            after.memory.insert(name, Kept::Counts(refused));
            if !first || answers.is_empty() {
                after.memory.insert(ended_name(question), Kept::Count(1));
                return after;
            }
        }
        let mut answers = answers;
        answers.sort_unstable_by_key(|answer| answer.site);
        let sites: Vec<u64> = answers.iter().map(|answer| answer.site).collect();
        if !first && sites != state.sites {
            miss(&mut after, question, state.missed);
            return after;
        }
        let noised = rounds.row_norm(&state.opened).is_some();
        let mut sum = vec![0u64; words];
        match &answers[..] {
            [one] if noised => match rounds.noised(&state.opened, one) {
                Some(words) => sum = words,
                None => {
                    after.memory.insert(ended_name(question), Kept::Count(1));
                    return after;
                }
            },
            _ => answers
                .iter()
                .for_each(|answer| add(&mut sum, &answer.words)),
        }
        let name = sum_name(question, state.opened.len());
        after.memory.insert(name, Kept::Counts(sum));
        after.memory.remove(&missed_name(question));
        if first {
            after
                .memory
                .insert(sites_name(question), Kept::Counts(sites));
            let grouped = !noised && answers.iter().any(|answer| answer.authors > 1);
            if grouped {
                let sums = answers
                    .iter()
                    .flat_map(|answer| answer.words.iter().copied());
                let sums = Kept::Counts(sums.collect());
                after.memory.insert(groups_name(question), sums);
            }
        }
        after
    }
}

/// Adds numbers to others, modulo 2⁶⁴.
fn add(sum: &mut [u64], words: &[u64]) {
    for (sum, word) in sum.iter_mut().zip(words) {
        *sum = sum.wrapping_add(*word);
    }
}

/// The state after one more round of a question.
fn counted(before: &State) -> State {
    let mut after = before.clone();
    let rounds = before.memory.count(ROUNDS).unwrap_or(0);
    after.memory.insert(ROUNDS, Kept::Count(rounds + 1));
    after
}

/// Counts a round in which silos of a question were missing, after so many in a row.
fn miss(after: &mut State, question: usize, before: u64) {
    let missed = Kept::Count(before + 1);
    after.memory.insert(missed_name(question), missed);
}

impl Strategy for QuestionsFirst {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn inner(&self) -> Option<&dyn Strategy> {
        Some(&*self.inner)
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
        let site = answers.pseudonym(asked.question);
        let answer = match answers.answer(asked.question, asked.state.opened())? {
            OwnAnswer::Numbers(words) => AnswerWords {
                site,
                authors: 1,
                words,
                refused: vec![0; REFUSAL_RULES],
            },
            OwnAnswer::Refused(rule) => AnswerWords::refusal(site, asked.words, rule),
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
        let questions = self.questions.iter().chain(&self.last);
        let largest = questions.map(|rounds| rounds.largest());
        layouts.extend(largest.map(layout));
        layouts
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        self.inner.admit(entry, round)
    }

    fn admit_after(&self, state: &State, entry: &ModelEntry, round: u64) -> Result<(), String> {
        match self.asked(state) {
            Some(asked) => asked.read(&entry.model)?.must_be_of_one(),
            None => {
                let round = Self::inner_round(state, round);
                self.inner.admit_after(state, entry, round)
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
            let memory = &mut after.state.memory;
            memory.insert(LEARNED, Kept::Count(round));
            if memory.get(&sum_name(LAST_QUESTION, 0)).is_some() {
                memory.insert(ended_name(LAST_QUESTION), Kept::Count(1));
            }
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

    fn row_norm(&self, state: &State) -> Option<f64> {
        let asked = self.asked(state)?;
        asked.rounds.row_norm(&asked.state.opened)
    }

    fn statistics(&self, state: &State, rounds: RangeInclusive<u64>) -> Option<StatisticsAccount> {
        let next = Self::inner_round(state, *rounds.start());
        let last = Self::inner_round(state, *rounds.end()).min(self.learning);
        self.inner.statistics(state, next..=last)
    }

    fn nothing_told(&self, state: &State, round: u64) -> State {
        let Some(asked) = self.asked(state) else {
            let round = Self::inner_round(state, round);
            return self.inner.nothing_told(state, round);
        };
        let mut after = counted(state);
        after.memory.insert(NOTHING, Kept::Count(round));
        miss(&mut after, asked.question, asked.state.missed);
        after
    }

    fn has_learned(&self, state: &State) -> bool {
        let learned = state.memory.count(LEARNED).unwrap_or(0);
        learned >= self.learning || self.inner.ends(state)
    }

    fn ends(&self, state: &State) -> bool {
        self.asked(state).is_none() && self.has_learned(state)
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
