//! Rounds in which members answer a question, before the rounds of a strategy.

use std::ops::ControlFlow;

use super::*;
use crate::learner::{
    Answers, Capabilities, LearnError, Learner, Metrics, Split, Training, Update,
};

/// A silo that answers with its own number times the number of the round, and as far as 2⁶⁴.
struct AnsweringSite {
    own: u64,
    pseudonym: u64,
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

    fn answer(&self, question: usize, opened: &[Vec<u64>]) -> Result<Vec<u64>, LearnError> {
        let round = opened.len() as u64 + 1;
        let first = self.own.wrapping_mul(round);
        // As the rounds of the question below ask for.
        Ok(vec![first; question + opened.len() + 1])
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
    // Another number of numbers than the round asks for.
    let after = round(&strategy, &state, &good, 1).state;
    let refused = strategy
        .admit_after(&after, &good.entries[0], 2)
        .unwrap_err();
    assert!(refused.contains("asks for 2"), "{refused}");
}
