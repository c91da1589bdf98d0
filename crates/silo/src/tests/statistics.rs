//! The hierarchical model in rounds that open sums alone: its estimates are those of clear rounds to the last bit, a
//! silo that is killed changes nothing, and who must not send says by which rule.

use std::sync::Arc;
use std::time::Duration;

use methods::learner::{
    Capabilities, LinearRows, Metrics, Optimiser, Split, Training, Update, Watch,
};
use methods::matrix::Matrix;
use methods::mixed::Varying;
use methods::params::{Role, TensorSpec};
use methods::robust::Samples;
use methods::robust::ridge::PlainLoss;
use methods::strategy::{
    AnswerWords, Hierarchical, Kept, Memory, Method, REFUSAL_RULES, StrategyConfig, build,
};
use methods::{Layout, LearnError, Learner, Params, Strategy};
use protocol::{Epoch, ProtocolParameters};
use tokio::time::sleep;

use super::masked::{ALL, SiloFault, groups, secrets};
use super::{TestSilos, kill};
use crate::outcome::Document;
use crate::testing::*;
use crate::{Blobs, Checks, SiloConfig, SpawnError, genesis_outcome, spawn};

/// Rounds of a test federation, fewer than the estimates need.
const ROUNDS: u64 = 6;
/// Rows of a silo.
const ROWS: usize = 12;

/// A silo with rows of two columns.
struct FittingSilo {
    rows: Samples,
    loss: PlainLoss,
}

impl FittingSilo {
    /// Rows of a silo, with targets so many times as large.
    fn new(me: u16, loss: PlainLoss, times: f64) -> Self {
        let own = f64::from(me);
        let row = |at: usize| {
            let at = at as f64;
            let x = [
                (7.0 * at + 3.0 * own) % 11.0 / 5.0 - 1.0,
                (5.0 * at + own * own) % 7.0 / 3.0 - 1.0,
            ];
            let noise = (at * at + own) % 5.0 / 4.0 - 0.5;
            let output = 0.5 * own - 0.7 + x[0] - 0.3 * x[1] * (1.0 + own / 4.0) + noise;
            let target = match loss {
                PlainLoss::Logistic => output.signum(),
                PlainLoss::Squared | PlainLoss::Absolute => times * output,
            };
            (x, target)
        };
        let (features, targets): (Vec<_>, Vec<_>) = (0..ROWS).map(row).unzip();
        let features = Matrix::from_rows(&features).unwrap();
        Self {
            rows: Samples::new(features, targets).unwrap(),
            loss,
        }
    }
}

impl Learner for FittingSilo {
    fn layout(&self) -> Arc<Layout> {
        Layout::new(vec![
            TensorSpec::new("weight", [1, 2], Role::Weight),
            TensorSpec::new("bias", [1], Role::Bias),
        ])
        .unwrap()
    }

    fn initial(&self, _: u64) -> Params {
        Params::zeros(&self.layout())
    }

    fn train(
        &self,
        _: &Params,
        _: &Params,
        _: &Training,
        _: u64,
        _: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        Err(LearnError::Failed("silos fit".into()))
    }

    fn evaluate(&self, _: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        Ok(Metrics {
            samples: self.samples(),
            values: [("loss".to_owned(), 0.0)].into(),
        })
    }

    fn samples(&self) -> u64 {
        ROWS as u64
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            linear_rows: Some(self),
            ..Capabilities::NONE
        }
    }
}

impl LinearRows for FittingSilo {
    fn linear_rows(&self, _: &Params, _: &Params) -> Result<Samples, LearnError> {
        Ok(self.rows.clone())
    }

    fn linear_loss(&self) -> PlainLoss {
        self.loss
    }
}

/// A federation of four silos.
#[derive(Clone, Copy)]
struct Fitted {
    loss: PlainLoss,
    /// Targets of the last silo are so many times as large.
    times: f64,
    unknowns_per_number: f64,
}

/// Rounds that are not done, and open as much as they like.
const FITTED: Fitted = Fitted {
    loss: PlainLoss::Squared,
    times: 1.0,
    unknowns_per_number: 0.01,
};

impl Fitted {
    fn strategy(self) -> Arc<dyn Strategy> {
        let options = Hierarchical {
            varying: vec![Varying::Nothing, Varying::Slopes],
            tolerance: 1e-12,
            exponent: Some(0),
            unknowns_per_number: self.unknowns_per_number,
            ..Hierarchical::default()
        };
        let training = Training {
            epochs: 1,
            batch: 0,
            optimiser: Optimiser::Sgd {
                rate: 0.1,
                momentum: 0.0,
                weight_decay: 0.0,
            },
            decay: None,
        };
        let config = StrategyConfig::new(Method::Hierarchical(options), training);
        build(&config, 4).unwrap().into()
    }

    fn learner(self, me: u16) -> Arc<dyn Learner> {
        let times = if me == 3 { self.times } else { 1.0 };
        let silo = Arc::new(FittingSilo::new(me, self.loss, times));
        self.strategy().equip(silo).unwrap()
    }

    fn epoch(self, change: impl Fn(&mut ProtocolParameters)) -> Arc<Epoch> {
        epoch_with(4, ROUNDS, |protocol| {
            change(protocol);
            protocol.start = genesis_outcome(&*self.strategy(), &*self.learner(0), 0).0;
        })
    }

    fn configure(self, config: &mut SiloConfig) {
        config.strategy = self.strategy();
        config.learner = self.learner(config.member.me.0);
    }

    /// The state of the members after this round, the number of the last adopted round, and what silos keep.
    fn run(self, epoch: Arc<Epoch>, until: u64, fault: SiloFault) -> (Memory, u64, Vec<Rig>) {
        virtually(async {
            let silos = TestSilos::of(epoch);
            let live = |i: u16| silos.live_with(i, |config| self.configure(config));
            let mut all: Vec<_> = (0..4).map(live).collect();
            if let SiloFault::Killed { who, after, back } = fault {
                sleep(after).await;
                kill(&mut all[usize::from(who)]).await;
                sleep(back).await;
                all[usize::from(who)] = live(who);
            }
            for i in 0..4 {
                silos.until(i, until).await;
            }
            sleep(Duration::from_secs(60)).await;
            for silo in &mut all {
                kill(silo).await;
            }
            let ended = silos.rigs.iter().map(|rig| *rig.adopted().last().unwrap());
            let ended: Vec<_> = ended.collect();
            let (round, outcome, _) = ended[0];
            assert!(ended.iter().all(|(_, other, _)| *other == outcome));
            let document = silos.rigs[0].blobs.get(&outcome).unwrap();
            let memory = Document::read(&document).unwrap().memory;
            (memory, round, silos.rigs.clone())
        })
    }
}

fn refused(memory: &Memory) -> Vec<u64> {
    match memory.get("hierarchical.refused") {
        Some(Kept::Counts(silos)) => silos.clone(),
        None => vec![0; REFUSAL_RULES],
        other => panic!("{other:?}"),
    }
}

#[test]
fn masked_estimates_are_those_of_clear_rounds_bit_by_bit() {
    for loss in [PlainLoss::Squared, PlainLoss::Logistic] {
        let fitted = Fitted { loss, ..FITTED };
        let run = |epoch| fitted.run(epoch, ROUNDS, SiloFault::None);
        let (clear, last, _) = run(fitted.epoch(|_| {}));
        let (masked, _, rigs) = run(fitted.epoch(groups(ALL)));
        assert_eq!(last, ROUNDS);
        assert_eq!(masked, clear);
        assert_eq!(masked.number("hierarchical.rows"), Some(4.0 * ROWS as f64));
        assert_eq!(refused(&masked), [0; REFUSAL_RULES]);
        assert!(rigs.iter().all(|rig| secrets(rig) == 0));
    }
}

#[test]
fn a_silo_killed_in_mid_round_changes_no_estimate() {
    let epoch = || FITTED.epoch(groups(ALL));
    let whole = FITTED.run(epoch(), ROUNDS, SiloFault::None).0;
    for (who, millis) in (0..12).map(|at| (at % 4, 40 + 177 * u64::from(at))) {
        let (after, back) = (Duration::from_millis(millis), Duration::from_secs(20));
        let fault = SiloFault::Killed { who, after, back };
        let (found, _, rigs) = FITTED.run(epoch(), ROUNDS, fault);
        assert_eq!(found, whole, "{who} at {millis} ms");
        assert!(rigs.iter().all(|rig| secrets(rig) == 0));
    }
}

#[test]
fn a_number_beyond_reach_ends_masked_rounds_without_a_name() {
    let far = Fitted {
        times: 1e5,
        ..FITTED
    };
    let (memory, last, _) = far.run(far.epoch(groups(ALL)), 2, SiloFault::None);
    assert_eq!(last, 2, "rows, then the refusal");
    let mut expected = vec![0; REFUSAL_RULES];
    expected[AnswerWords::BEYOND_REACH] = 1;
    assert_eq!(refused(&memory), expected);
    // The numbers of rows alone.
    assert_eq!(memory.count("hierarchical.opened"), Some(2));
}

#[test]
fn too_many_numbers_are_refused_before_anything_is_opened() {
    let strict = Fitted {
        unknowns_per_number: 3.0,
        ..FITTED
    };
    virtually(async {
        let epoch = strict.epoch(groups(ALL));
        let start = |change: &dyn Fn(&mut SiloConfig)| {
            let mut config = config(&epoch, 0);
            change(&mut config);
            let rig = Rig::new(Checks::new(false));
            spawn(config, rig.environment().0).err()
        };
        let error = start(&|config| strict.configure(config));
        // Rows; 34 numbers with whole matrices in the first and third of five rounds, 28 in the others.
        let Some(SpawnError::Sums(why)) = error else {
            panic!("{error:?}");
        };
        assert!(
            why.contains("may open 154 numbers, and the 2 silos")
                && why.contains("have 18 unknowns, which allow 6 numbers"),
            "{why}"
        );
    });
    // What all know of classes is in the rows, of which the numbers are opened first.
    let classes = Fitted {
        loss: PlainLoss::Logistic,
        ..strict
    };
    let (memory, last, _) = classes.run(classes.epoch(groups(ALL)), 2, SiloFault::None);
    assert_eq!((last, memory.count("hierarchical.opened")), (2, Some(2)));
    let mut expected = vec![0; REFUSAL_RULES];
    expected[AnswerWords::TOO_MANY_OPENED] = 4;
    assert_eq!(refused(&memory), expected);
}
