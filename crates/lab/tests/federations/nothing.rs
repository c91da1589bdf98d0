//! Members that cannot contribute, and members that are late: what the others wait for.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use lab::{Summary, run_study};
use methods::learner::{Capabilities, QuadraticLearner, Split, Watch};
use methods::{Layout, LearnError, Learner, Metrics, Params, Role, TensorSpec, Training, Update};
use simulations::{Options, Scenario, toy};

const ROUNDS: u64 = 12;

/// Way in which a silo's training goes.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Well,
    /// No training of its program ends well.
    Fails,
    /// Each takes longer than the others wait.
    Late,
}

struct NothingLearner {
    how: How,
    /// Time that a training takes, in virtual seconds.
    seconds: u64,
    inner: QuadraticLearner,
}

impl Learner for NothingLearner {
    fn layout(&self) -> Arc<Layout> {
        self.inner.layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.inner.initial(seed)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        match self.how {
            How::Fails => Err(LearnError::Failed("no memory is left".into())),
            _ => self.inner.train(start, personal, training, seed, watch),
        }
    }

    fn evaluate(&self, model: &Params, own: &Params, split: Split) -> Result<Metrics, LearnError> {
        self.inner.evaluate(model, own, split)
    }

    /// In virtual time a row of training takes 200 µs.
    fn samples(&self) -> u64 {
        5_000 * self.seconds
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }
}

/// Four silos, of which the last one learns so.
fn play(last: How) -> Summary {
    let seconds = if last == How::Late { 40 } else { 1 };
    long(last, ROUNDS, [1, seconds])
}

/// Four silos that learn for `rounds` rounds, where a training takes the first three `others` seconds and the
/// last one `own` seconds.
fn long(last: How, rounds: u64, [others, own]: [u64; 2]) -> Summary {
    let text = format!(
        "name = \"toy\"
        rounds = {rounds}
        task = {{ constant = {{ parameters = 1 }} }}
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 20
        [strategy]
        name = \"fedavg\"
        training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.25 }} }}"
    );
    let scenario = Scenario::parse("toy.toml", &text).unwrap();
    let tensor = TensorSpec::new("x", [1], Role::Weight);
    let layout = Layout::new(vec![tensor]).unwrap();
    let learner = |at: u8| Arc::new(QuadraticLearner::with_layout(&layout, &[f64::from(at)]));
    let learners: Vec<_> = (0..4).map(learner).collect();
    let mut study = toy::study(&learners);
    for (at, silo) in study.silos.iter_mut().enumerate() {
        let (how, seconds) = if at == 3 {
            (last, own)
        } else {
            (How::Well, others)
        };
        silo.learner = Arc::new(NothingLearner {
            how,
            seconds,
            inner: (*learners[at]).clone(),
        });
    }
    let options = Options {
        references: false,
        ..Options::default()
    };
    run_study(&scenario, &study, options).unwrap()
}

#[test]
fn nobody_waits_for_a_member_whose_training_fails() {
    let (well, fails) = (play(How::Well), play(How::Fails));
    assert_eq!(fails.rounds.len() as u64, ROUNDS);
    assert_eq!(fails.training_failed.len() as u64, ROUNDS);
    let (with, without) = (
        fails.virtual_seconds.unwrap(),
        well.virtual_seconds.unwrap(),
    );
    assert!(
        with < 1.1 * without,
        "{with} s, and {without} s where all train"
    );
    assert!(fails.notes.iter().all(|note| !note.contains("too late")));
}

/// Training takes the others ten seconds, the last one thirty, and patience is twenty: over 120 rounds the
/// others wait for it so rarely that their pace is nearly that of a federation without it.
#[test]
fn a_late_member_costs_others_less_than_a_tenth_of_their_pace() {
    let rounds = 120;
    let (late, well) = (
        long(How::Late, rounds, [10, 30]),
        long(How::Well, rounds, [10, 10]),
    );
    assert_eq!(late.rounds.len() as u64, rounds);
    let pace = |summary: &Summary| rounds as f64 * 60.0 / summary.virtual_seconds.unwrap();
    let (with, without) = (pace(&late), pace(&well));
    assert!(
        with > 0.9 * without && with < without,
        "{with} rounds a minute, and {without} where all are in time"
    );
    let said = late.notes.iter().any(|note| note.contains("was too late"));
    assert!(said, "{:?}", late.notes);
}

#[test]
fn who_is_late_is_named_with_the_time_that_is_missing() {
    let late = play(How::Late);
    let said = late.notes.iter().find(|note| note.contains("was too late"));
    let said = said.unwrap_or_else(|| panic!("{:?}", late.notes));
    assert!(
        said.starts_with("toy 3 was too late for ")
            && said.ends_with("and the others wait for 20.0 s (`straggler-timeout`)"),
        "{said}"
    );
    assert!(
        play(How::Well)
            .notes
            .iter()
            .all(|note| !note.contains("too late"))
    );
}
