//! FedAdam, FedYogi and FedAdagrad (Reddi et al. 2021, Adaptive Federated Optimization): the mean
//! change of a round is taken as a gradient, and an adaptive optimiser makes the step.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{Capability, Job, LearnError, Learner, Update, Watch};
use crate::params::{Attached, Layout, Params};
use crate::strategy::options::{MethodSetting, fraction, positive};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::wrappers::learner_wrapper::{LearnerWrapper, WrappedLearner};
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{
    EquipError, LoadedManifest, Outcome, SettleError, State, Strategy, StrategyError,
};

/// Names under which the moments travel with the model.
const MOMENTS: [&str; 2] = ["fedopt.first", "fedopt.second"];

/// Options of the three.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedOpt {
    /// Weight of a silo's change in the mean change.
    pub weight: WeightRule,
    /// Learning rate η of the global model: no weight moves by much more than this in a round.
    /// Default 0.1, a guess; it has to suit the size of the weights.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub rate: f64,
    /// Decay β₁ of the first moment. Default 0.9.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub beta1: f64,
    /// Decay β₂ of the second moment; FedAdagrad has none and ignores it. Default 0.99.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub beta2: f64,
    /// Degree of adaptivity τ, in the unit of the weights: mean changes much smaller than τ move the
    /// model proportionally less. Default 0.001.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub tau: f64,
}

impl Default for FedOpt {
    /// The paper's for Adam and Yogi, but for the rate; for Adagrad the paper has no first moment,
    /// β₁ = 0.
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            rate: 0.1,
            beta1: 0.9,
            beta2: 0.99,
            tau: 1e-3,
        }
    }
}

/// How the second moment is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecondMoment {
    /// `v ← β₂v + (1 − β₂)Δ²`.
    Adam,
    /// `v ← v − (1 − β₂)Δ²·sign(v − Δ²)`.
    Yogi,
    /// `v ← v + Δ²`.
    Adagrad,
}

impl FedOpt {
    pub(crate) fn build(
        &self,
        name: &'static str,
        second: SecondMoment,
        setting: MethodSetting,
    ) -> Result<Box<dyn Strategy>, StrategyError> {
        positive("rate", self.rate)?;
        positive("tau", self.tau)?;
        fraction("beta1", self.beta1)?;
        fraction("beta2", self.beta2)?;
        Ok(Box::new(WrappedStrategy {
            name,
            inner: Arc::new(FedAvg::on(setting, self.weight)),
            by: Adaptive {
                options: self.clone(),
                second,
            },
        }))
    }
}

#[derive(Clone)]
struct Adaptive {
    options: FedOpt,
    second: SecondMoment,
}

impl Adaptive {
    /// Moves one weight by the mean change Δ of a round (Algorithm 2 of the paper).
    fn step(&self, weight: &mut f32, first: &mut f32, second: &mut f32, change: f64) {
        let FedOpt {
            rate,
            beta1,
            beta2,
            tau,
            ..
        } = self.options;
        let square = change * change;
        let before = f64::from(*second);
        let now = match self.second {
            SecondMoment::Adam => beta2 * before + (1.0 - beta2) * square,
            SecondMoment::Yogi if before > square => before - (1.0 - beta2) * square,
            SecondMoment::Yogi if before < square => before + (1.0 - beta2) * square,
            SecondMoment::Yogi => before,
            SecondMoment::Adagrad => before + square,
        };
        let moment = beta1 * f64::from(*first) + (1.0 - beta1) * change;
        *weight = (f64::from(*weight) + rate * moment / (now.sqrt() + tau)) as f32;
        *first = moment as f32;
        *second = now as f32;
    }
}

impl StrategyWrapper for Adaptive {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let model = inner.layout();
        let trained = model.trained();
        let models = Attached::new(&model, &MOMENTS.map(|name| (name, &trained)))?;
        let by = WithMoments {
            models,
            // v₋₁ ≥ τ² in the paper.
            second: (self.options.tau * self.options.tau) as f32,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }

    fn contribution(&self, model: &Arc<Layout>) -> Arc<Layout> {
        Attached::find(model, &MOMENTS).base().clone()
    }

    fn adopt(
        &self,
        before: &State,
        _: &LoadedManifest,
        after: Outcome,
    ) -> Result<Outcome, SettleError> {
        let (Some(before), [mean]) = (before.models.first(), &after.state.models[..]) else {
            return Err(SettleError::Infeasible("there is one model for all".into()));
        };
        let attached = Attached::find(before.layout(), &MOMENTS);
        let (start, moments) = attached.split(before);
        let trained = moments[0].layout();
        let of = |model| Params::gather(trained, &[model]);
        let (Some(start), Some(reached)) = (of(&start), of(mean)) else {
            return Err(SettleError::Infeasible(
                "the models have other tensors".into(),
            ));
        };
        let mut weights = start.values().to_vec();
        let [mut first, mut second] = [0, 1].map(|part: usize| moments[part].values().to_vec());
        for (at, reached) in reached.values().iter().enumerate() {
            let change = f64::from(*reached) - f64::from(weights[at]);
            self.step(&mut weights[at], &mut first[at], &mut second[at], change);
        }
        let [weights, first, second] =
            [weights, first, second].map(|values| Params::from_values(trained, &values));
        // Buffers are the mean's.
        let base = Params::gather(attached.base(), &[&weights, mean]);
        let base = base.ok_or(SettleError::Infeasible(
            "the models have other tensors".into(),
        ))?;
        let mut after = after.clone();
        after.state.models = vec![attached.join(&base, &[&first, &second])];
        Ok(after)
    }
}

/// A learner of models that carry moments, which it does not look at.
struct WithMoments {
    models: Attached,
    /// The second moment before the first round.
    second: f32,
}

impl LearnerWrapper for WithMoments {
    fn needs(&self) -> &'static [Capability] {
        &[]
    }

    fn uses_up(&self) -> &'static [Capability] {
        &[]
    }

    fn layout(&self, _: &dyn Learner) -> Arc<Layout> {
        self.models.whole().clone()
    }

    fn initial(&self, inner: &dyn Learner, seed: u64) -> Params {
        let model = inner.initial(seed);
        let trained = model.layout().trained();
        let second = Params::build(&trained, |values| values.fill(self.second));
        self.models
            .join(&model, &[&Params::zeros(&trained), &second])
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (self.models.split(model).0, personal.clone())
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (start, _) = self.models.split(job.start);
        Job {
            start: &start,
            ..job
        }
        .run(inner, progress)
    }
}
