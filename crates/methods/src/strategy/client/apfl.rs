//! APFL (Deng, Kamani & Mahdavi 2020): every silo uses a mixture of a model of its own and the common one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::personal_model::{PersonalModel, between};
use crate::learner::{
    Capability, Job, LearnError, Learner, Optimiser, Training, Update, Watch, Work,
};
use crate::params::Params;
use crate::strategy::options::{MethodSetting, require, share};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::wrappers::learner_wrapper::{
    LearnerWrapper, MODIFIES_GRADIENTS, WrappedLearner, later,
};
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{EquipError, Strategy, StrategyError};

/// Names in the personal state, see [`PersonalModel`].
const KEPT: [&str; 2] = ["apfl", "apfl-own"];

/// Options of APFL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Apfl {
    /// Weight of a silo's model in the mean that becomes the global model.
    pub weight: WeightRule,
    /// Share α of the silo's local model in the mixture that it uses, above 0 and at most 1. Default 0.5;
    /// the paper tries 0.25, 0.5 and 0.75.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub alpha: f64,
}

impl Default for Apfl {
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            alpha: 0.5,
        }
    }
}

impl Apfl {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        share("alpha", self.alpha)?;
        require(
            self.alpha > 0.0,
            "alpha",
            "above 0 and at most 1",
            self.alpha,
        )?;
        if !matches!(setting.training.optimiser, Optimiser::Sgd { .. }) {
            // The step of the local model is the mixture's times α, which only SGD scales with its rate.
            return Err(StrategyError::Option {
                option: "training.optimiser",
                allowed: "sgd for apfl",
                got: "another".into(),
            });
        }
        Ok(Box::new(WrappedStrategy {
            name: "apfl",
            inner: Arc::new(FedAvg::on(setting, self.weight)),
            by: MixedModels { alpha: self.alpha },
        }))
    }
}

/// A silo trains `w` as in FedAvg, and then its own `v` by the gradient of the loss of
/// `v̄ = αv + (1 − α)w`: `v ← v − ηα∇f(v̄)`, so that `v̄ ← v̄ − ηα²∇f(v̄)` while `w` stays.
#[derive(Clone, Copy)]
struct MixedModels {
    alpha: f64,
}

impl StrategyWrapper for MixedModels {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let by = WithMixture {
            alpha: self.alpha,
            models: PersonalModel::new(&*inner, KEPT)?,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }
}

/// A learner with `v` in its personal state.
struct WithMixture {
    alpha: f64,
    models: PersonalModel,
}

impl WithMixture {
    /// The training of the mixture.
    fn slower(&self, training: &Training) -> Training {
        let mut training = training.clone();
        let (Optimiser::Sgd { rate, .. } | Optimiser::Adam { rate, .. }) = &mut training.optimiser;
        *rate *= self.alpha * self.alpha;
        training
    }
}

impl LearnerWrapper for WithMixture {
    fn needs(&self) -> &'static [Capability] {
        &[]
    }

    fn uses_up(&self) -> &'static [Capability] {
        MODIFIES_GRADIENTS
    }

    fn initial_personal(&self, inner: &dyn Learner, seed: u64) -> Params {
        self.models.initial(inner, seed)
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (model.clone(), self.models.rest(personal))
    }

    fn used(&self, model: &Params, personal: &Params) -> (Params, Params) {
        let kept = self.models.read(model, personal);
        (between(model, &kept.own, self.alpha), kept.beside)
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let kept = self.models.read(job.start, job.personal);
        let training = job.training()?;
        let steps = training.steps(inner.samples());
        let common = Job {
            personal: &kept.rest,
            ..job
        };
        let common = common.run(inner, &mut later(progress, 0, 2 * steps))?;
        let mixture = between(&common.shared, &kept.own, self.alpha);
        let slower = self.slower(training);
        let mixed = Job {
            start: &mixture,
            personal: &kept.beside,
            work: Work::Train {
                training: &slower,
                modifier: None,
            },
            ..job
        };
        let mixed = mixed.run(inner, &mut later(progress, steps, 2 * steps))?;
        let own = between(&common.shared, &mixed.shared, 1.0 / self.alpha);
        Ok(Update {
            personal: self.models.write(&common.personal, (&own, &mixed.personal)),
            ..common
        })
    }
}
