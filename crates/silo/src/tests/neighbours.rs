//! What a silo gives its network in rounds with noise follows from its noised vectors, and from nothing else
//! of its rows.

use std::sync::Arc;
use std::time::Duration;

use methods::Params;
use methods::learner::{
    Capabilities, Job, LearnError, Learner, Metrics, QuadraticLearner, Split, Training,
    UnitGradients, UnitRows, Update, Watch,
};
use methods::params::Layout;
use protocol::Hash;
use tokio::time::sleep;

use super::noised::noised;
use super::{TestSilos, kill};
use crate::Notice;
use crate::testing::{learner, virtually};

/// The silo whose rows are looked for.
const OWN: u16 = 2;
/// Enough for every silo to lead.
const ROUNDS: u64 = 8;
/// Its rows that say something.
const ROWS: u64 = 40;

/// The rows of another silo, and seven more whose gradients are zero: the integers of both are the same, and
/// all else that a learner can tell of its rows differs.
struct OtherRows(QuadraticLearner);

impl Learner for OtherRows {
    fn layout(&self) -> Arc<Layout> {
        self.0.layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.0.initial(seed)
    }

    fn initial_personal(&self, seed: u64) -> Params {
        self.0.initial_personal(seed)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        self.learn(Job::train(start, personal, training, seed), progress)
    }

    fn learn(&self, job: Job<'_>, progress: &mut Watch<'_>) -> Result<Update, LearnError> {
        let mut update = self.0.learn(job, progress)?;
        update.samples += 7;
        Ok(update)
    }

    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        let mut metrics = self.0.evaluate(model, personal, split)?;
        metrics.samples += 7;
        metrics.values.values_mut().for_each(|value| *value /= 3.0);
        Ok(metrics)
    }

    fn samples(&self) -> u64 {
        self.0.samples() + 7
    }

    fn domain(&self) -> Option<u32> {
        Some(3)
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            units: Some(self),
            ..self.0.capabilities()
        }
    }
}

impl UnitGradients for OtherRows {
    fn unit_gradients(
        &self,
        model: &Params,
        unit: UnitRows,
        with: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, LearnError> {
        let loss = self.0.unit_gradients(model, unit, with)?;
        (0..7).for_each(|_| with(&[0.0]));
        Ok(loss / 3.0)
    }
}

/// What is seen of silos when the rows of one are these.
struct SeenTraffic {
    /// All that silos told their network, with the time.
    told: Vec<String>,
    /// The blobs of that one, which others may ask for by hash, in the middle of a round and at the end.
    blobs: [Vec<Hash>; 2],
    /// What it told its institution of its training: rounds, losses and rows.
    trained: Vec<(u64, f64, u64)>,
}

fn traffic(rows: Arc<dyn Learner>, own_seed: u64) -> SeenTraffic {
    virtually(async {
        let mut epoch = (*noised(Some(50), 3)).clone();
        epoch.protocol.rounds = ROUNDS;
        let silos = TestSilos::of(Arc::new(epoch));
        let live = |i: u16| {
            silos.live_with(i, |config| {
                if i == OWN {
                    config.learner = rows.clone();
                    config.seed = own_seed;
                } else {
                    config.learner = Arc::new(learner(f64::from(i)).with_samples(ROWS));
                }
            })
        };
        let mut all: Vec<_> = (0..4).map(live).collect();
        silos.until(OWN, 3).await;
        // In the middle of a round.
        sleep(Duration::from_millis(170)).await;
        kill(&mut all[usize::from(OWN)]).await;
        let blobs = || silos.rigs[usize::from(OWN)].blobs.hashes();
        let within = blobs();
        sleep(Duration::from_millis(40)).await;
        all[usize::from(OWN)] = live(OWN);
        for i in 0..4 {
            silos.until(i, ROUNDS).await;
        }
        sleep(Duration::from_secs(30)).await;
        for silo in &mut all {
            kill(silo).await;
        }
        let notices = silos.rigs[usize::from(OWN)].notices.borrow();
        let trained = notices.iter().filter_map(|(_, notice)| match notice {
            Notice::Trained {
                round,
                loss,
                samples,
                ..
            } => Some((*round, *loss, *samples)),
            _ => None,
        });
        SeenTraffic {
            told: silos.hub.commands(),
            blobs: [within, blobs()],
            trained: trained.collect(),
        }
    })
}

#[test]
fn two_sets_of_rows_with_the_same_noised_vectors_look_the_same_to_the_network() {
    let rows = || learner(f64::from(OWN)).with_samples(ROWS);
    let one = traffic(Arc::new(rows()), 1);
    let other = traffic(Arc::new(OtherRows(rows())), 2);
    // The institution itself sees that its rows are others.
    assert!(one.trained.len() as u64 >= ROUNDS, "{:?}", one.trained);
    assert_eq!(one.trained.len(), other.trained.len());
    for (own, other) in one.trained.iter().zip(&other.trained) {
        assert!(
            own.0 == other.0 && own.1 != other.1 && own.2 + 7 == other.2,
            "{own:?} {other:?}"
        );
    }
    assert!(one.told.len() > 200, "{} commands", one.told.len());
    for (own, other) in one.told.iter().zip(&other.told) {
        assert_eq!(own, other);
    }
    assert_eq!(one.told.len(), other.told.len());
    assert_eq!(one.blobs, other.blobs);
    // Rows with other integers would be seen here.
    let moved = learner(f64::from(OWN) + 0.5).with_samples(ROWS);
    let moved = traffic(Arc::new(moved), 1);
    assert_ne!(moved.told, one.told);
    assert_ne!(moved.blobs, one.blobs);
}
