//! FedALA (Zhang et al. 2023): every silo starts a round from a mixture of its last model and the common one,
//! with a weight for every value of the upper layers that it learns from its own rows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::personal_model::PersonalModel;
use crate::learner::{
    Capability, Job, LearnError, Learner, Optimiser, Training, Update, Watch, Work,
};
use crate::params::{Attached, Layout, Params, Role};
use crate::strategy::options::{MethodSetting, at_least_one, positive};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::wrappers::learner_wrapper::{
    LearnerWrapper, MODIFIES_GRADIENTS, WrappedLearner, later,
};
use crate::strategy::wrappers::personal_layers::without_norms;
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{EquipError, Strategy, StrategyError};

/// Names in the personal state, see [`PersonalModel`].
const KEPT: [&str; 2] = ["fedala", "fedala-own"];
/// Name of the weights of the mixture in the personal state.
const WEIGHTS: &str = "fedala-weights";

/// Options of FedALA.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedAla {
    /// Weight of a silo's model in the mean.
    pub weight: WeightRule,
    /// Number p of layers that are mixed, counted from the output; the layers below are the global
    /// model's. Default 1, the paper's.
    #[schemars(range(min = 1))]
    pub layers: u32,
    /// Rate η of the steps of the weights. Default 1, the paper's.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub rate: f64,
    /// Number of these steps before a training, each with the gradient of all training rows. Default 5, a
    /// guess; the paper takes steps until the loss settles in the first round, and one pass later.
    #[schemars(range(min = 1))]
    pub steps: u32,
}

impl Default for FedAla {
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            layers: 1,
            rate: 1.0,
            steps: 5,
        }
    }
}

impl FedAla {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        at_least_one("layers", self.layers.into())?;
        at_least_one("steps", self.steps.into())?;
        positive("rate", self.rate)?;
        Ok(Box::new(WrappedStrategy {
            name: "fedala",
            inner: Arc::new(FedAvg::on(setting, self.weight)),
            by: LocalAggregation {
                layers: self.layers,
                rate: self.rate,
                steps: self.steps,
            },
        }))
    }
}

/// A silo with last model `o` and weights `W` in [0, 1] starts from `θ̂ = o + (θ − o)∘W` in the upper layers,
/// where `W ← clip(W − η·∇f(θ̂)∘(θ − o))`.
#[derive(Clone, Copy)]
struct LocalAggregation {
    layers: u32,
    rate: f64,
    steps: u32,
}

impl StrategyWrapper for LocalAggregation {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let model = inner.layout();
        let by_depth = without_norms(&model, "layers of fedala")?;
        let below = by_depth.len().saturating_sub(self.layers as usize);
        let above: Vec<usize> = by_depth[below..]
            .iter()
            .flat_map(|layer| layer.tensors.iter().copied())
            .collect();
        let names: Vec<_> = above.iter().map(|&at| &model.tensors()[at].name).collect();
        let upper = model.select(|tensor| {
            tensor.role != Role::Buffer && names.iter().any(|name| **name == tensor.name)
        });
        let models = PersonalModel::new(&*inner, KEPT)?;
        let inside = models.initial(&*inner, 0).layout().clone();
        let by = WithLocalAggregation {
            by: *self,
            weights: Attached::new(&inside, &[(WEIGHTS, &upper)])?,
            models,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }
}

/// A learner with `o` and `W` in its personal state.
struct WithLocalAggregation {
    by: LocalAggregation,
    models: PersonalModel,
    weights: Attached,
}

impl WithLocalAggregation {
    fn upper(&self) -> &Arc<Layout> {
        self.weights.part(0)
    }

    /// `θ̂`: the global model, with the upper layers mixed.
    fn mixed(&self, model: &Params, own: &Params, weights: &Params) -> Params {
        let [from, to] = [own, model].map(|of| self.of(of));
        let upper = Params::build(self.upper(), |into| {
            for (at, value) in into.iter_mut().enumerate() {
                let [o, theta, w] = [&from, &to, weights].map(|of| f64::from(of.values()[at]));
                *value = (o + (theta - o) * w) as f32;
            }
        });
        Params::gather(model.layout(), &[&upper, model]).expect("tensors of this model")
    }

    /// The upper layers of a model.
    fn of(&self, model: &Params) -> Params {
        Params::gather(self.upper(), &[model]).expect("layers of this model")
    }

    /// The weights after one step, given how far a plain step at rate 1 goes from the mixture.
    fn stepped(
        &self,
        weights: &Params,
        went: (&Params, &Params),
        apart: (&Params, &Params),
    ) -> Params {
        let [start, reached, own, common] =
            [went.0, went.1, apart.0, apart.1].map(|model| self.of(model));
        Params::build(self.upper(), |into| {
            for (at, value) in into.iter_mut().enumerate() {
                let of = |params: &Params| f64::from(params.values()[at]);
                let gradient = of(&start) - of(&reached);
                let slope = gradient * (of(&common) - of(&own));
                let next = of(weights) - self.by.rate * slope;
                // A gradient beyond all numbers must not leave a weight that is none.
                let next = if next.is_nan() { of(weights) } else { next };
                *value = next.clamp(0.0, 1.0) as f32;
            }
        })
    }
}

impl LearnerWrapper for WithLocalAggregation {
    fn needs(&self) -> &'static [Capability] {
        &[]
    }

    fn uses_up(&self) -> &'static [Capability] {
        MODIFIES_GRADIENTS
    }

    fn initial_personal(&self, inner: &dyn Learner, seed: u64) -> Params {
        let all_common = Params::build(self.upper(), |weights| weights.fill(1.0));
        self.weights
            .join(&self.models.initial(inner, seed), &[&all_common])
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        let (kept, _) = self.weights.split(personal);
        (model.clone(), self.models.rest(&kept))
    }

    fn used(&self, model: &Params, personal: &Params) -> (Params, Params) {
        let (kept, weights) = self.weights.split(personal);
        let kept = self.models.read(model, &kept);
        (self.mixed(model, &kept.own, &weights[0]), kept.rest)
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (kept, weights) = self.weights.split(job.personal);
        let kept = self.models.read(job.start, &kept);
        let mut weights = weights[0].clone();
        let one_step = Training {
            epochs: 1,
            batch: 0,
            optimiser: Optimiser::Sgd {
                rate: 1.0,
                momentum: 0.0,
                weight_decay: 0.0,
            },
            decay: None,
        };
        let before = u64::from(self.by.steps);
        let all = before + job.training()?.steps(inner.samples());
        let mut start = self.mixed(job.start, &kept.own, &weights);
        for step in 0..before {
            let look = Job {
                start: &start,
                personal: &kept.rest,
                work: Work::Train {
                    training: &one_step,
                    modifier: None,
                },
                ..job
            };
            let reached = look.run(inner, &mut later(progress, step, all))?.shared;
            weights = self.stepped(&weights, (&start, &reached), (&kept.own, job.start));
            start = self.mixed(job.start, &kept.own, &weights);
        }
        let trained = Job {
            start: &start,
            personal: &kept.rest,
            ..job
        };
        let update = trained.run(inner, &mut later(progress, before, all))?;
        let own = (&update.shared, &kept.beside);
        let models = self.models.write(&update.personal, own);
        Ok(Update {
            personal: self.weights.join(&models, &[&weights]),
            ..update
        })
    }
}
