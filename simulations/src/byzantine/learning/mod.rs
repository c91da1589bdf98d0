//! Members that follow the protocol and lie about what they learned: about their model, the labels of
//! their rows, or their losses. No check can find them; only the strategy can bear them.

use std::sync::Arc;

use learn::StudySilo;
use methods::learner::{
    Capabilities, Classifiers, Job, Outputs, RobustFits, RobustLosses, RowAccess, RowResults,
    Stochastic, StochasticModels, Summaries, Work, mixed_seed,
};
use methods::robust::RadiusGrid;
use methods::{Layout, LearnError, Learner, Metrics, Params, Role, Split, Training, Update, Watch};

use bare::Behaviour;
use bare::random::Random;

/// Length of a poisoned update, or of noise, in lengths of the update that was trained.
const LENGTH: f64 = 3.0;
/// Size of a false loss, in sizes of the true one.
const LOSS: f64 = 10.0;
/// Training rows that a member with false rows claims.
const ROWS: u64 = 9_000_000_000_000_000;

/// The learners of these silos, those of lying members with their lies: by position, and what each
/// does. Behaviours that are none of learning change nothing here.
///
/// # Errors
/// A clause: labels of a silo without a table cannot be shuffled.
pub fn lying(
    silos: &[StudySilo],
    lies: &[(usize, Behaviour)],
    seed: u64,
) -> Result<Vec<Arc<dyn Learner>>, String> {
    let mut learners: Vec<_> = silos.iter().map(|silo| silo.learner.clone()).collect();
    for &(at, behaviour) in lies {
        if behaviour == Behaviour::ShuffledLabels {
            let table = silos[at].table.as_ref().ok_or_else(|| {
                format!(
                    "the labels of silo {:?} cannot be shuffled: it has no table",
                    silos[at].name
                )
            })?;
            learners[at] = Arc::new(table.with_shuffled_targets(mixed_seed(seed, at as u64)));
        }
    }
    let first = lies
        .iter()
        .find(|(_, behaviour)| *behaviour == Behaviour::Collusion)
        .map(|&(at, _)| learners[at].clone());
    for &(at, behaviour) in lies {
        let lie = match behaviour {
            Behaviour::SignFlip => Lie::Reversed,
            Behaviour::Noise => Lie::Noise,
            Behaviour::FalseLosses => Lie::Losses,
            Behaviour::FalseRows => Lie::Rows,
            Behaviour::Collusion => Lie::Common(mixed_seed(seed, 0)),
            _ => continue,
        };
        let inner = learners[at].clone();
        let trains = first.clone().filter(|_| matches!(lie, Lie::Common(_)));
        learners[at] = Arc::new(Liar { trains, inner, lie });
    }
    Ok(learners)
}

/// Lie of a member.
#[derive(Debug, Clone, Copy)]
enum Lie {
    /// The update of the member is reversed.
    Reversed,
    /// The update of the member has noise.
    Noise,
    /// The losses that the member reports are too large.
    Losses,
    /// The rows that the member claims are too many.
    Rows,
    /// Another silo's update is reversed, and trained with this seed, as that of others.
    Common(u64),
}

/// A silo that lies. It passes on all capabilities.
struct Liar {
    inner: Arc<dyn Learner>,
    /// The silo that trains in its place.
    trains: Option<Arc<dyn Learner>>,
    lie: Lie,
}

impl Liar {
    fn around(&self, inner: Arc<dyn Learner>) -> Arc<dyn Learner> {
        let (trains, lie) = (self.trains.clone(), self.lie);
        Arc::new(Self { inner, trains, lie })
    }

    fn trainer(&self) -> &dyn Learner {
        self.trains.as_deref().unwrap_or(&*self.inner)
    }

    fn seed_of(&self, seed: u64) -> u64 {
        match self.lie {
            Lie::Common(common) => common,
            _ => seed,
        }
    }

    /// The contribution in place of what was trained. Buffers, such as a common scale, stay.
    fn poisoned(&self, start: &Params, update: Update, seed: u64) -> Update {
        let (from, to) = (start.values(), update.shared.values());
        let layout = update.shared.layout();
        let trained = layout.tensors().iter().enumerate();
        let trained: Vec<usize> = trained
            .filter(|(_, tensor)| tensor.role != Role::Buffer)
            .flat_map(|(at, _)| layout.range(at))
            .collect();
        let change = |at: usize| f64::from(to[at]) - f64::from(from[at]);
        let length = trained
            .iter()
            .map(|&at| change(at).powi(2))
            .sum::<f64>()
            .sqrt();
        let mut random = Random::new(seed, "noise of a lying member");
        let noise = LENGTH * length / (trained.len().max(1) as f64).sqrt();
        let shared = Params::build(layout, |into| {
            into.copy_from_slice(to);
            for &at in &trained {
                let value = match self.lie {
                    Lie::Reversed | Lie::Common(_) => f64::from(from[at]) - LENGTH * change(at),
                    Lie::Noise => {
                        f64::from(to[at]) + noise * methods::random::normal(random.words())
                    }
                    Lie::Losses | Lie::Rows => continue,
                };
                into[at] = value as f32;
            }
        });
        Update {
            shared,
            samples: match self.lie {
                Lie::Rows => ROWS,
                Lie::Common(_) => self.samples(),
                _ => update.samples,
            },
            ..update
        }
    }

    /// A loss as it is told.
    fn told(&self, loss: f64) -> f64 {
        match self.lie {
            Lie::Losses => LOSS * loss,
            _ => loss,
        }
    }
}

impl Learner for Liar {
    fn layout(&self) -> Arc<Layout> {
        self.inner.layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.inner.initial(seed)
    }

    fn initial_personal(&self, seed: u64) -> Params {
        self.inner.initial_personal(seed)
    }

    fn seed(&self, silo_seed: u64, round: u64) -> u64 {
        self.inner.seed(self.seed_of(silo_seed), round)
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
        let seed = match job.work {
            Work::Keep => return self.inner.learn(job, progress),
            Work::Train { .. } => job.seed,
            Work::RobustFit { .. } | Work::ExactFit(_) => self.seed_of(0),
        };
        let update = job.run(self.trainer(), progress)?;
        Ok(self.poisoned(job.start, update, seed))
    }

    fn evaluate(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Metrics, LearnError> {
        let mut metrics = self.inner.evaluate(model, personal, split)?;
        if let Some(loss) = metrics.values.get_mut("loss") {
            *loss = self.told(*loss);
        }
        Ok(metrics)
    }

    fn deployed(&self, model: &Params, personal: &Params) -> Option<Params> {
        self.inner.deployed(model, personal)
    }

    fn samples(&self) -> u64 {
        self.inner.samples()
    }

    fn domain(&self) -> Option<u32> {
        self.inner.domain()
    }

    fn row_domains(&self) -> Option<Vec<u32>> {
        self.inner.row_domains()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        let inner = self.inner.capabilities();
        Capabilities {
            summaries: inner.summaries.map(|_| self as _),
            robust: inner.robust.map(|_| self as _),
            robust_fits: inner.robust_fits.map(|_| self as _),
            exact_fits: inner.exact_fits,
            gradients: inner.gradients,
            row_access: inner.row_access.map(|_| self as _),
            outputs: inner.outputs.map(|_| self as _),
            classifiers: inner.classifiers.map(|_| self as _),
            stochastic: inner.stochastic.map(|_| self as _),
            units: inner.units,
            linear_rows: inner.linear_rows,
            answers: inner.answers,
        }
    }
}

impl Summaries for Liar {
    fn summary_layout(&self) -> Arc<Layout> {
        let inner = self.inner.summaries();
        inner.expect("passed on by `capabilities`").summary_layout()
    }

    fn summarise(&self) -> Result<Params, LearnError> {
        self.inner.summaries()?.summarise()
    }
}

impl RobustLosses for Liar {
    fn robust_loss(
        &self,
        model: &Params,
        personal: &Params,
        radius: f64,
        split: Split,
    ) -> Result<f64, LearnError> {
        let inner = self.inner.robust()?;
        Ok(self.told(inner.robust_loss(model, personal, radius, split)?))
    }
}

impl RobustFits for Liar {
    fn cross_validated_radius(
        &self,
        model: &Params,
        personal: &Params,
        search: &RadiusGrid,
    ) -> Result<f64, LearnError> {
        let inner = self.inner.robust_fits()?;
        inner.cross_validated_radius(model, personal, search)
    }
}

impl RowAccess for Liar {
    fn holding_out(&self, fold: usize, folds: usize, seed: u64) -> Option<Arc<dyn Learner>> {
        let inner = self.inner.row_access().ok()?;
        Some(self.around(inner.holding_out(fold, folds, seed)?))
    }

    fn batches(&self, training: &Training, seed: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        self.inner.row_access()?.batches(training, seed)
    }

    fn only(&self, split: Split, rows: &[u32]) -> Option<Arc<dyn Learner>> {
        let inner = self.inner.row_access().ok()?;
        Some(self.around(inner.only(split, rows)?))
    }
}

impl Outputs for Liar {
    fn outputs(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError> {
        self.inner.outputs()?.outputs(model, personal, split)
    }

    fn measure(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        self.inner
            .outputs()?
            .measure(model, personal, outputs, split)
    }

    fn row_results(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<RowResults, LearnError> {
        let inner = self.inner.outputs()?;
        inner.row_results(model, personal, outputs, split)
    }

    fn mean_target(&self, model: &Params, personal: &Params, width: usize) -> Option<Vec<f64>> {
        let inner = self.inner.outputs().ok()?;
        inner.mean_target(model, personal, width)
    }

    fn constant(&self, mean_target: &[f64]) -> Vec<f64> {
        let inner = self.inner.outputs();
        inner
            .expect("passed on by `capabilities`")
            .constant(mean_target)
    }

    fn output_layer(&self) -> Option<String> {
        self.inner.outputs().ok()?.output_layer()
    }
}

impl Classifiers for Liar {
    fn classifier(&self, labels: &[u32], classes: usize, hidden: &[usize]) -> Arc<dyn Learner> {
        let inner = self.inner.classifiers();
        let inner = inner.expect("passed on by `capabilities`");
        inner.classifier(labels, classes, hidden)
    }
}

impl StochasticModels for Liar {
    fn stochastic(&self, options: &Stochastic) -> Arc<dyn Learner> {
        let inner = self.inner.stochastic();
        let inner = inner.expect("passed on by `capabilities`");
        self.around(inner.stochastic(options))
    }
}

#[cfg(test)]
mod tests;
