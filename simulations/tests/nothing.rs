//! Members that cannot contribute, and members that are late: what the others wait for.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use methods::learner::{Capabilities, QuadraticLearner, Split, Watch};
use methods::{Layout, LearnError, Learner, Metrics, Params, Role, TensorSpec, Training, Update};
use simulations::{Options, Scenario, Summary, run_study, toy};

const ROUNDS: u64 = 12;

/// How a silo learns.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Well,
    /// No training of its program ends well.
    Fails,
    /// Each takes longer than the others wait.
    Late,
}

struct Own {
    how: How,
    inner: QuadraticLearner,
}

impl Learner for Own {
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
        match self.how {
            How::Late => 200_000,
            _ => self.inner.samples(),
        }
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }
}

/// Four silos, of which the last one learns so.
fn play(last: How) -> Summary {
    let text = format!(
        "name = \"toy\"
        rounds = {ROUNDS}
        task = {{ constant = {{ parameters = 1 }} }}
        [charter]
        beat = \"1s\"
        patience = 20
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
    study.silos[3].learner = Arc::new(Own {
        how: last,
        inner: (*learners[3]).clone(),
    });
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

#[test]
fn who_is_late_is_named_with_the_time_that_is_missing() {
    let late = play(How::Late);
    let said = late
        .notes
        .iter()
        .find(|note| note.contains("came too late"));
    let said = said.unwrap_or_else(|| panic!("{:?}", late.notes));
    assert!(
        said.starts_with("toy 3 came too late for ")
            && said.ends_with("and the others wait for 20.0 s (`patience`)"),
        "{said}"
    );
    assert!(
        play(How::Well)
            .notes
            .iter()
            .all(|note| !note.contains("too late"))
    );
}
