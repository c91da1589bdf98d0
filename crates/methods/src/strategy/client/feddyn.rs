//! FedDyn (Acar et al. 2021): a regulariser of every silo's own, changed in every round, makes the optima of
//! the silos' objectives agree with that of their sum.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{Capability, GradientModifier, Job, LearnError, Learner, Update, Watch};
use crate::params::{Attached, Params};
use crate::strategy::options::{MethodSetting, positive};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::server::one_model::one_model;
use crate::strategy::wrappers::learner_wrapper::{
    LearnerWrapper, MODIFIES_GRADIENTS, WrappedLearner,
};
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{
    EquipError, LoadedManifest, Outcome, SettleError, State, Strategy, StrategyError,
};

/// Name of a silo's gradient of its own objective, in the personal state.
const GRADIENT: &str = "feddyn.gradient";
/// Name of the correction `−h/α` of the global model, in the state.
const CORRECTION: &str = "feddyn.correction";

/// Options of FedDyn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedDyn {
    /// Strength α of the regulariser in a silo's objective, above 0: the smaller, the more a silo follows
    /// its own rows in one round. Default 0.01; the paper chooses among 0.001, 0.01, 0.03 and 0.1.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub alpha: f64,
}

impl Default for FedDyn {
    fn default() -> Self {
        Self { alpha: 0.01 }
    }
}

impl FedDyn {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        positive("alpha", self.alpha)?;
        Ok(Box::new(WrappedStrategy {
            name: "feddyn",
            inner: Arc::new(FedAvg::new(setting.training, WeightRule::Equal)),
            by: Dynamic {
                alpha: self.alpha,
                members: setting.members,
            },
        }))
    }
}

/// Algorithm 1 of the paper. A silo with gradient `g_k` trains on `L_k(θ) − ⟨g_k, θ⟩ + α/2·‖θ − θᵗ‖²` and
/// then sets `g_k ← g_k − α(θ_k − θᵗ)`. With P contributors of K members `h ← h − α/K·Σ_P (θ_k − θᵗ)` and
/// `θᵗ⁺¹ = mean of θ_k − h/α`.
#[derive(Clone, Copy)]
struct Dynamic {
    alpha: f64,
    members: usize,
}

impl StrategyWrapper for Dynamic {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let own = inner.initial_personal(0).layout().clone();
        let by = Regularised {
            alpha: self.alpha,
            personal: Attached::new(&own, &[(GRADIENT, &inner.layout().trained())])?,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }

    fn adopt(
        &self,
        before: &State,
        manifest: &LoadedManifest,
        after: Outcome,
    ) -> Result<Outcome, SettleError> {
        let (start, mean) = one_model(&before.models, &after.state.models)?;
        let layout = start.layout();
        let share = manifest.entries.len() as f64 / self.members as f64;
        let former = before.tables.get(CORRECTION).and_then(|kept| kept.first());
        let (mut model, mut correction) = (mean.values().to_vec(), vec![0.0; layout.len()]);
        for at in layout.trained_ranges().flatten() {
            let [start, mean] = [start, mean].map(|of| f64::from(of.values()[at]));
            let former = former.map_or(0.0, |former| f64::from(former.values()[at]));
            let now = former + share * (mean - start);
            correction[at] = now as f32;
            model[at] = (mean + now) as f32;
        }
        let [model, correction] = [model, correction].map(|all| Params::from_values(layout, &all));
        let mut after = after.clone();
        after.state.models = vec![model];
        after
            .state
            .tables
            .insert(CORRECTION.into(), vec![correction]);
        Ok(after)
    }
}

/// A learner with `g_k` in its personal state.
struct Regularised {
    alpha: f64,
    personal: Attached,
}

impl LearnerWrapper for Regularised {
    fn needs(&self) -> &'static [Capability] {
        &[Capability::ModifiedGradients]
    }

    fn uses_up(&self) -> &'static [Capability] {
        MODIFIES_GRADIENTS
    }

    fn initial_personal(&self, inner: &dyn Learner, seed: u64) -> Params {
        let none = Params::zeros(self.personal.part(0));
        self.personal.join(&inner.initial_personal(seed), &[&none])
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (model.clone(), self.personal.split(personal).0)
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (rest, own) = self.personal.split(job.personal);
        let gradient = &own[0];
        let trained = gradient.layout();
        let shift = Params::build(trained, |into| {
            let negated = gradient.values().iter().map(|value| -value);
            into.iter_mut()
                .zip(negated)
                .for_each(|(to, from)| *to = from);
        });
        let modifier = GradientModifier {
            mu: self.alpha,
            shift: Some(&shift),
            ..GradientModifier::none(job.start)
        };
        let inside = Job {
            personal: &rest,
            ..job
        };
        let update = inside.modified(&modifier).run(inner, progress)?;
        let of = |model| Params::gather(trained, &[model]).expect("tensors of this model");
        let (start, reached) = (of(job.start), of(&update.shared));
        let next = Params::build(trained, |into| {
            for (at, to) in into.iter_mut().enumerate() {
                let [g, from, reached] =
                    [gradient, &start, &reached].map(|of| f64::from(of.values()[at]));
                *to = (g - self.alpha * (reached - from)) as f32;
            }
        });
        Ok(Update {
            personal: self.personal.join(&update.personal, &[&next]),
            ..update
        })
    }
}
