#![allow(clippy::unwrap_used)]
use std::sync::{Arc, Mutex};

use agreement::Agreement;
use methods::learner::{Capabilities, Metrics, Split, Training, Update, Watch};
use methods::{Layout, Params, Role, TensorSpec};

use super::*;

const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

/// A learner by whose clock every step takes as long.
struct Slow {
    layout: Arc<Layout>,
    steps: u64,
    step: Duration,
    /// True if the learner reports how far it has come.
    says: bool,
    clock: Mutex<Duration>,
}

impl Slow {
    fn new(steps: u64, seconds: u64, says: bool) -> Self {
        Self {
            layout: Layout::new(vec![TensorSpec::new("w", [1], Role::Weight)]).unwrap(),
            steps,
            step: Duration::from_secs(seconds),
            says,
            clock: Mutex::default(),
        }
    }

    fn pace(&self, patience: u64) -> Option<TrainingPace> {
        let patience = Duration::from_secs(patience);
        let clock = || *self.clock.lock().unwrap();
        timed(self, &training(), 1, patience, &clock).unwrap()
    }
}

impl Learner for Slow {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn initial(&self, _seed: u64) -> Params {
        Params::zeros(&self.layout)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        _training: &Training,
        _seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        for step in 1..=self.steps {
            *self.clock.lock().unwrap() += self.step;
            let at = Progress {
                step: if self.says { step } else { 0 },
                steps: if self.says { self.steps } else { 0 },
                loss: 1.0,
            };
            if progress(at).is_break() {
                return Err(LearnError::Stopped);
            }
        }
        Ok(Update::kept(start, personal, 1))
    }

    fn evaluate(&self, _: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        Err(LearnError::NoRows("test"))
    }

    fn samples(&self) -> u64 {
        1
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }
}

fn epoch(patience: u32) -> Arc<Epoch> {
    let agreement = Agreement::parse("federation.toml", EXAMPLE).unwrap();
    let mut epoch = Epoch::clone(&agreement.epoch);
    epoch.protocol.patience = patience;
    Arc::new(epoch)
}

fn training() -> Task {
    let agreement = Agreement::parse("federation.toml", EXAMPLE).unwrap();
    Task::Train(agreement.strategy_config.training.clone())
}

#[test]
fn a_training_is_measured_and_a_long_one_is_estimated_by_its_first_steps() {
    let seconds = Duration::from_secs;
    // To the end where it is short, or where its steps are not known.
    assert_eq!(
        Slow::new(3, 2, true).pace(60),
        Some(TrainingPace::Takes(seconds(6)))
    );
    assert_eq!(
        Slow::new(40, 2, false).pace(60),
        Some(TrainingPace::Takes(seconds(80)))
    );
    // 45 steps of 2 seconds: ended after ten.
    let long = Slow::new(45, 2, true);
    assert_eq!(long.pace(60), Some(TrainingPace::Takes(seconds(90))));
    assert_eq!(*long.clock.lock().unwrap(), seconds(10));
    // One that says nothing is ended after one and a half times the patience.
    let silent = Slow::new(1_000, 2, false);
    assert_eq!(silent.pace(60), Some(TrainingPace::Longer(seconds(90))));
    assert_eq!(pace(&silent, &Task::Keep, 1, seconds(60)).unwrap(), None);
}

#[test]
fn a_patience_that_is_too_short_is_named_with_one_that_is_enough() {
    let epoch = epoch(12);
    let heartbeat = epoch.heartbeat();
    let enough = TrainingPace::Takes(heartbeat * 8);
    assert_eq!(
        (enough.heartbeats(heartbeat), enough.against(&epoch)),
        (12, None)
    );
    let (text, remedy) = TrainingPace::Takes(heartbeat * 10).against(&epoch).unwrap();
    assert!(
        text.contains("as soon as the machine does other work"),
        "{text}"
    );
    assert!(
        remedy.contains("agree on `straggler-timeout = 15` under [protocol]"),
        "{remedy}"
    );
    let (text, remedy) = TrainingPace::Takes(heartbeat * 18).against(&epoch).unwrap();
    assert!(
        text.ends_with("would come too late for every round"),
        "{text}"
    );
    assert!(
        remedy.contains("`straggler-timeout = 27`") && remedy.contains("12 now"),
        "{remedy}"
    );
    let (text, _) = TrainingPace::Longer(heartbeat * 12)
        .against(&epoch)
        .unwrap();
    assert!(text.starts_with("one training takes more than"), "{text}");
}
