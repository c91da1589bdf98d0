//! Rounds in which members answer a question, before the rounds of a strategy and behind them.

use std::ops::ControlFlow;

use super::*;
use crate::learner::{
    Answers, Capabilities, LearnError, Learner, Metrics, OpenedSums, OwnAnswer, Split, Training,
    Update,
};

/// A silo that answers with its own number times the number of the round, and as far as 2⁶⁴.
struct AnsweringSite {
    own: u64,
    pseudonym: u64,
    /// The round of a question, from 0, from which on it refuses by the second rule.
    refuses: usize,
}

impl Learner for AnsweringSite {
    fn layout(&self) -> Arc<Layout> {
        layout()
    }

    fn initial(&self, _: u64) -> Params {
        model([0.0, 0.0])
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        _: &Training,
        _: u64,
        _: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let _ = start;
        Ok(Update::kept(&model([self.own as f32, 1.0]), personal, 1))
    }

    fn evaluate(&self, _: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        Err(LearnError::Failed("nothing is measured here".into()))
    }

    fn samples(&self) -> u64 {
        1
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            answers: Some(self),
            ..Capabilities::NONE
        }
    }
}

impl Answers for AnsweringSite {
    fn pseudonym(&self, question: usize) -> u64 {
        self.pseudonym.wrapping_mul(question as u64 + 1)
    }

    fn answer(&self, question: usize, opened: OpenedSums<'_>) -> Result<OwnAnswer, LearnError> {
        let opened = opened.sums;
        if opened.len() >= self.refuses {
            return Ok(OwnAnswer::Refused(1));
        }
        let round = opened.len() as u64 + 1;
        let first = self.own.wrapping_mul(round);
        // As the rounds of the question below ask for; the one at last is as the first.
        let place = question % LAST_QUESTION;
        Ok(OwnAnswer::Numbers(vec![first; place + opened.len() + 1]))
    }
}

/// A question of this many rounds, whose sums grow by one number a round.
struct GrowingRounds {
    question: usize,
    rounds: usize,
}

impl QuestionRounds for GrowingRounds {
    fn next(&self, opened: &[Vec<u64>]) -> Option<usize> {
        let whole = opened
            .iter()
            .enumerate()
            .all(|(round, sum)| sum.len() == self.question + round + 1);
        assert!(whole, "sums of other lengths");
        (opened.len() < self.rounds).then_some(self.question + opened.len() + 1)
    }

    fn largest(&self) -> usize {
        self.question + self.rounds
    }
}

fn asking(rounds: &[usize]) -> QuestionsFirst {
    let questions = rounds.iter().enumerate().map(|(question, &rounds)| {
        Arc::new(GrowingRounds { question, rounds }) as Arc<dyn QuestionRounds>
    });
    QuestionsFirst::new(Arc::new(fedavg(false)), questions.collect(), 2)
}

/// Returns what these silos contribute to a round, as a manifest.
fn contributed(
    strategy: &dyn Strategy,
    state: &State,
    nth: u64,
    sites: &[AnsweringSite],
) -> LoadedManifest {
    let plan = strategy.plan(state, nth);
    let entries = sites.iter().map(|site| {
        let participant = Participant {
            member: 0,
            coalition: 0,
            learner: site,
            personal: &Params::empty(),
            radius: &OwnRadius::default(),
            seed: 7,
        };
        let go = &mut |_: crate::learner::Progress| ControlFlow::Continue(());
        let (coalition, update) = strategy
            .contribute(state, &plan, nth, participant, go)
            .unwrap();
        let expected = strategy.expects(state, &layout(), None, nth);
        assert_eq!(*update.shared.layout(), expected, "round {nth}");
        let entry = ModelEntry {
            model: update.shared,
            coalition: Some(coalition),
            weight: None,
            member: None,
        };
        strategy.admit_after(state, &entry, nth).unwrap();
        entry
    });
    manifest(entries.collect(), None)
}

fn three() -> Vec<AnsweringSite> {
    [3, u64::MAX, 1 << 63]
        .map(|own| AnsweringSite {
            own,
            pseudonym: own ^ 0xabcd_0123_4567_89ef,
            refuses: usize::MAX,
        })
        .into()
}

#[test]
fn questions_are_answered_exactly_and_then_learning_begins() {
    let strategy = asking(&[2, 1]);
    let mut state = genesis();
    let mut assigned = Vec::new();
    for nth in 1..=5 {
        assert!(!strategy.ends(&state), "before round {nth}");
        let plan = strategy.plan(&state, nth);
        let expected = match nth {
            1 | 2 => Task::Answer(0),
            3 => Task::Answer(1),
            _ => Task::Train(training()),
        };
        assert_eq!(plan.task, expected, "round {nth}");
        let manifest = contributed(&strategy, &state, nth, &three());
        let outcome = round(&strategy, &state, &manifest, nth);
        assigned.push(outcome.assignment);
        state = outcome.state;
    }
    assert_eq!(assigned, vec![vec![0; 3]; 5]);
    // Modulo 2⁶⁴: 3 − 1 + 2⁶³, and twice that.
    let sum = 2 + (1u64 << 63);
    let first = QuestionState::of(&state.memory, 0);
    assert_eq!(first.opened, [vec![sum], vec![sum.wrapping_mul(2); 2]]);
    assert_eq!(first.sites.len(), 3);
    assert!(!first.is_abandoned());
    assert_eq!(QuestionState::of(&state.memory, 1).opened, [vec![sum; 2]]);
    assert_eq!(
        QuestionState::of(&state.memory, 2),
        QuestionState::default()
    );
    let model = weights(&state.models[0]);
    assert_eq!(model[1], 1.0, "the fourth round is the first of learning");
    assert!(strategy.ends(&state), "two rounds of learning are agreed");
}

#[test]
fn a_sum_is_never_silently_of_fewer_silos() {
    let strategy = asking(&[2]);
    let mut state = genesis();
    let all = contributed(&strategy, &state, 1, &three());
    state = round(&strategy, &state, &all, 1).state;
    let before = QuestionState::of(&state.memory, 0);
    // A silo is away, and then another one answers in its place.
    let other = |nth: u64, state: &State| {
        let mut sites = three();
        sites.pop();
        if nth == 3 {
            sites.push(AnsweringSite {
                own: 5,
                pseudonym: 11,
                refuses: usize::MAX,
            });
        }
        contributed(&strategy, state, nth, &sites)
    };
    for nth in 2..=3 {
        let manifest = other(nth, &state);
        state = round(&strategy, &state, &manifest, nth).state;
        let now = QuestionState::of(&state.memory, 0);
        assert_eq!((now.missed, &now.opened), (nth - 1, &before.opened));
    }
    // With the same silos it goes on where it was.
    let back = contributed(&strategy, &state, 4, &three());
    let answered = round(&strategy, &state, &back, 4).state;
    let now = QuestionState::of(&answered.memory, 0);
    assert_eq!((now.missed, now.opened.len()), (0, 2));
    assert_eq!(strategy.plan(&answered, 5).task, Task::Train(training()));
    // Without them it ends, and learning begins.
    let manifest = other(4, &state);
    let ended = round(&strategy, &state, &manifest, 4).state;
    assert!(QuestionState::of(&ended.memory, 0).is_abandoned());
    assert_eq!(strategy.plan(&ended, 5).task, Task::Train(training()));
}

#[test]
fn what_is_no_answer_is_refused_by_itself() {
    let strategy = asking(&[2]);
    let state = genesis();
    let good = contributed(&strategy, &state, 1, &three());
    let answer = &good.entries[0].model;
    for (value, why) in [
        (0.5, "16 bits"),
        (65536.0, "16 bits"),
        (-1.0, "16 bits"),
        (f32::NAN, "16 bits"),
    ] {
        let forged = ModelEntry {
            model: answer.map(|_| value),
            ..good.entries[0].clone()
        };
        let refused = strategy.admit_after(&state, &forged, 1).unwrap_err();
        assert!(refused.contains(why), "{refused}");
        let manifest = manifest(vec![forged], None);
        assert!(strategy.decide(&state, &manifest, 1).is_err());
    }
    let model = entry([1.0, 2.0], Some(0), 1);
    let refused = strategy.admit_after(&state, &model, 1).unwrap_err();
    assert!(refused.contains("no tensor"), "{refused}");
    // Nobody speaks for others, nor is as many as it likes that refuse.
    let mut several = AnswerWords::read(answer).unwrap();
    several.authors = u64::MAX;
    let forged = ModelEntry {
        model: several.write(),
        ..good.entries[0].clone()
    };
    let refused = strategy.admit_after(&state, &forged, 1).unwrap_err();
    assert!(refused.contains("silos, not of one"), "{refused}");
    // Another number of numbers than the round asks for.
    let after = round(&strategy, &state, &good, 1).state;
    let refused = strategy
        .admit_after(&after, &good.entries[0], 2)
        .unwrap_err();
    assert!(refused.contains("asks for 2"), "{refused}");
}

#[test]
fn a_silo_that_refuses_at_once_is_left_out_and_said() {
    let strategy = asking(&[2]);
    let mut state = genesis();
    let mut sites = three();
    sites[0].refuses = 0;
    for nth in 1..=2 {
        let manifest = contributed(&strategy, &state, nth, &sites);
        state = round(&strategy, &state, &manifest, nth).state;
    }
    let now = QuestionState::of(&state.memory, 0);
    let sum = u64::MAX.wrapping_add(1 << 63);
    assert_eq!(now.opened, [vec![sum], vec![sum.wrapping_mul(2); 2]]);
    assert_eq!((now.sites.len(), now.refused[1], now.ended), (2, 1, false));
    assert_eq!(strategy.plan(&state, 3).task, Task::Train(training()));
}

#[test]
fn a_silo_that_refuses_later_ends_the_question() {
    let strategy = asking(&[2, 1]);
    let mut state = genesis();
    let mut sites = three();
    sites[2].refuses = 1;
    for nth in 1..=2 {
        let manifest = contributed(&strategy, &state, nth, &sites);
        state = round(&strategy, &state, &manifest, nth).state;
    }
    let now = QuestionState::of(&state.memory, 0);
    assert_eq!((now.opened.len(), now.refused[1], now.ended), (1, 1, true));
    assert_eq!(strategy.plan(&state, 3).task, Task::Answer(1));
}

#[test]
fn one_entry_is_the_sum_of_all_where_only_sums_are_opened() {
    let strategy = asking(&[2]);
    let state = genesis();
    let all = contributed(&strategy, &state, 1, &three());
    let mut integers = vec![0i64; 1 + REFUSAL_RULES];
    for entry in &all.entries {
        let own = AnswerWords::read(&entry.model).unwrap().integers();
        let pairs = integers.iter_mut().zip(own);
        pairs.for_each(|(sum, own)| *sum = sum.wrapping_add(own));
    }
    let opened = |integers: &[i64]| {
        let sum = AnswerWords::of_integers((77, 3), integers);
        let entry = ModelEntry {
            model: sum.write(),
            coalition: Some(0),
            weight: None,
            member: None,
        };
        manifest(vec![entry], None)
    };
    let whole = round(&strategy, &state, &opened(&integers), 1).state;
    let single = round(&strategy, &state, &all, 1).state;
    let found = [&whole, &single].map(|state| QuestionState::of(&state.memory, 0));
    assert_eq!(found[0].opened, found[1].opened);
    assert_eq!(found[0].sites, [77]);
    // Somebody refuses: nothing of the sum is kept.
    integers[2] = 1;
    let refused = round(&strategy, &state, &opened(&integers), 1).state;
    let refused = QuestionState::of(&refused.memory, 0);
    assert_eq!((refused.opened.len(), refused.ended), (0, true));
    assert_eq!(refused.refused.iter().sum::<u64>(), 1);
}

/// A question that ends where the first sum of a group is below ten.
struct LimitedRounds(GrowingRounds);

impl QuestionRounds for LimitedRounds {
    fn next(&self, opened: &[Vec<u64>]) -> Option<usize> {
        self.0.next(opened)
    }

    fn largest(&self) -> usize {
        self.0.largest()
    }

    fn allows(&self, groups: &[(u64, Vec<u64>)]) -> bool {
        groups.iter().all(|(_, sum)| sum[0] >= 10)
    }
}

/// A manifest of the sums of groups: pseudonym and number of its authors, numbers, and how many of them refuse.
fn groups(of: &[(u64, u64, &[u64], u64)]) -> LoadedManifest {
    let entry = |(site, authors, words, refusing): &(u64, u64, &[u64], u64)| {
        let mut refused = vec![0; REFUSAL_RULES];
        refused[1] = *refusing;
        let answer = AnswerWords {
            site: *site,
            authors: *authors,
            words: words.to_vec(),
            refused,
        };
        ModelEntry {
            model: answer.write(),
            coalition: Some(0),
            weight: None,
            member: None,
        }
    };
    manifest(of.iter().map(entry).collect(), None)
}

#[test]
fn the_sums_of_groups_are_added_and_kept_by_authors() {
    let strategy = asking(&[2]);
    let both = groups(&[(77, 4, &[20], 0), (11, 3, &[u64::MAX], 0)]);
    let first = round(&strategy, &genesis(), &both, 1).state;
    let now = QuestionState::of(&first.memory, 0);
    assert_eq!(now.opened, [vec![19]]);
    assert_eq!(now.sites, [11, 77]);
    assert_eq!(now.groups, [(11, vec![u64::MAX]), (77, vec![20])]);
    // Without one of them nothing is opened; with both the numbers of the first round stay as they are.
    let one = groups(&[(77, 4, &[1, 2], 0)]);
    let missed = round(&strategy, &first, &one, 2).state;
    assert_eq!(QuestionState::of(&missed.memory, 0).missed, 1);
    let both = groups(&[(11, 3, &[5, 5], 0), (77, 4, &[1, 2], 0)]);
    let second = round(&strategy, &missed, &both, 3).state;
    let now = QuestionState::of(&second.memory, 0);
    assert_eq!(now.opened, [vec![19], vec![6, 7]]);
    assert_eq!(now.groups.len(), 2);
}

#[test]
fn a_group_that_refuses_at_once_is_left_out() {
    let strategy = asking(&[2]);
    let refused = groups(&[(77, 4, &[u64::MAX / 3], 2), (11, 3, &[9], 0)]);
    let first = round(&strategy, &genesis(), &refused, 1).state;
    let now = QuestionState::of(&first.memory, 0);
    assert_eq!(
        (now.opened, now.refused[1], now.ended),
        (vec![vec![9]], 2, false)
    );
    assert_eq!(now.groups, [(11, vec![9])]);
    // What it sends later is in no sum.
    let later = groups(&[(77, 4, &[1, 2], 0), (11, 3, &[3, 4], 0)]);
    let second = round(&strategy, &first, &later, 2).state;
    assert_eq!(QuestionState::of(&second.memory, 0).opened[1], [3, 4]);
}

#[test]
fn a_group_below_the_limits_ends_the_question() {
    let question = || {
        Arc::new(LimitedRounds(GrowingRounds {
            question: 0,
            rounds: 2,
        })) as Arc<dyn QuestionRounds>
    };
    let strategy = QuestionsFirst::new(Arc::new(fedavg(false)), vec![question()], 2);
    for (small, task) in [(10, Task::Answer(0)), (9, Task::Train(training()))] {
        let both = groups(&[(77, 4, &[20], 0), (11, 3, &[small], 0)]);
        let state = round(&strategy, &genesis(), &both, 1).state;
        assert_eq!(strategy.plan(&state, 2).task, task, "{small}");
    }
}

#[test]
fn rounds_that_tell_nothing_are_no_rounds_of_learning() {
    let strategy = asking(&[1]);
    let mut state = genesis();
    for nth in 1..=3 {
        assert_eq!(strategy.plan(&state, nth).task, Task::Answer(0));
        state = strategy.nothing_told(&state, nth);
        assert!(asked_in_vain(&state.memory, nth) && !asked_in_vain(&state.memory, nth - 1));
    }
    assert!(QuestionState::of(&state.memory, 0).is_abandoned());
    assert_eq!(strategy.plan(&state, 4).task, Task::Train(training()));
    // A round of learning that tells nothing leaves all as it was.
    assert_eq!(strategy.nothing_told(&state, 4), state);
}

/// So many rounds of learning, a question of one round before them, and one of two at last.
fn asking_at_last(inner: Arc<dyn Strategy>, learning: u64) -> QuestionsFirst {
    let growing = |rounds| -> Arc<dyn QuestionRounds> {
        Arc::new(GrowingRounds {
            question: 0,
            rounds,
        })
    };
    QuestionsFirst::new(inner, vec![growing(1)], learning).and_at_last(growing(2))
}

/// FedAvg that ends after its first round.
struct EndingEarly(Arc<dyn Strategy>);

impl Strategy for EndingEarly {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn inner(&self) -> Option<&dyn Strategy> {
        Some(&*self.0)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        self.0.plan(state, round)
    }

    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError> {
        self.0.decide(state, manifest, round)
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        self.0.check(state, manifest, decision, round)
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        let mut after = self.0.settle(state, manifest, decision, round)?;
        after.state.memory.insert("early", Kept::Count(1));
        Ok(after)
    }

    fn ends(&self, state: &State) -> bool {
        state.memory.count("early").is_some()
    }
}

/// The tasks of the rounds of a strategy until it ends, whether it had learned all before each, and the last state.
fn played(strategy: &QuestionsFirst) -> (Vec<(Task, bool)>, State) {
    let (mut state, mut tasks) = (genesis(), Vec::new());
    for nth in 1.. {
        if strategy.ends(&state) {
            break;
        }
        let task = strategy.plan(&state, nth).task;
        tasks.push((task, strategy.has_learned(&state)));
        let manifest = contributed(strategy, &state, nth, &three());
        state = round(strategy, &state, &manifest, nth).state;
    }
    (tasks, state)
}

#[test]
fn one_question_is_asked_once_all_has_been_learned() {
    let learning = || (Task::Train(training()), false);
    let first = || (Task::Answer(0), false);
    let last = || (Task::Answer(LAST_QUESTION as u32), true);
    let whole = asking_at_last(Arc::new(fedavg(false)), 2);
    let (tasks, state) = played(&whole);
    assert_eq!(tasks, [first(), learning(), learning(), last(), last()]);
    let sum = 2 + (1u64 << 63);
    let found = QuestionState::of(&state.memory, LAST_QUESTION);
    assert_eq!(found.opened, [vec![sum], vec![sum.wrapping_mul(2); 2]]);
    assert!(!found.ended);
    // The models stay as they were learned.
    let early = asking_at_last(Arc::new(EndingEarly(Arc::new(fedavg(false)))), 2);
    let (tasks, ended) = played(&early);
    assert_eq!(tasks, [first(), learning(), last(), last()]);
    assert_eq!(
        QuestionState::of(&ended.memory, LAST_QUESTION).opened,
        found.opened
    );
    assert_eq!(ended.models, state.models);
}

#[test]
fn learning_on_ends_the_question_that_is_asked_at_last() {
    let (_, state) = played(&asking_at_last(Arc::new(fedavg(false)), 2));
    // The agreement has one more round of learning now.
    let longer = asking_at_last(Arc::new(fedavg(false)), 3);
    assert!(!longer.ends(&state) && !longer.has_learned(&state));
    assert_eq!(longer.plan(&state, 6).task, Task::Train(training()));
    let manifest = contributed(&longer, &state, 6, &three());
    let after = round(&longer, &state, &manifest, 6).state;
    assert!(longer.ends(&after));
    let found = QuestionState::of(&after.memory, LAST_QUESTION);
    assert_eq!((found.opened.len(), found.ended), (2, true));
}
