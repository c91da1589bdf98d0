//! Ditto (Li et al. 2021): a global model, and at every silo one of its own that stays near it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{Capability, GradientModifier, Job, LearnError, Learner, Update, Watch};
use crate::params::Params;
use crate::strategy::client::personal_model::PersonalModel;
use crate::strategy::options::{MethodSetting, not_negative};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::wrappers::learner_wrapper::{
    LearnerWrapper, MODIFIES_GRADIENTS, WrappedLearner, later,
};
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{EquipError, Strategy, StrategyError};

/// Names in the personal state, see [`PersonalModel`].
const KEPT: [&str; 2] = ["ditto", "ditto-own"];

/// Options of Ditto.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ditto {
    /// Weight of a silo's model in the mean that becomes the global model.
    pub weight: WeightRule,
    /// Strength λ of the proximal term in the objective of a silo's local model `v`,
    /// `F_k(v) + λ/2·‖v − w‖²` around the global model `w`. At 0 the local model is trained alone.
    /// Default 0.1; the paper chooses among 0.05, 0.1, 0.2, 1 and 2.
    #[schemars(range(min = 0))]
    pub lambda: f64,
}

impl Default for Ditto {
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            lambda: 0.1,
        }
    }
}

impl Ditto {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        not_negative("lambda", self.lambda)?;
        Ok(Box::new(WrappedStrategy {
            name: "ditto",
            inner: Arc::new(FedAvg::on(setting, self.weight)),
            by: ProximalLearner {
                lambda: self.lambda,
            },
        }))
    }
}

struct ProximalLearner {
    lambda: f64,
}

impl StrategyWrapper for ProximalLearner {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let by = WithOwn {
            lambda: self.lambda,
            models: PersonalModel::new(&*inner, KEPT)?,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }
}

/// A learner that trains the global model, and one of its own near it.
struct WithOwn {
    lambda: f64,
    models: PersonalModel,
}

impl LearnerWrapper for WithOwn {
    fn needs(&self) -> &'static [Capability] {
        match self.lambda {
            0.0 => &[],
            _ => &[Capability::ModifiedGradients],
        }
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
        (kept.own, kept.beside)
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let kept = self.models.read(job.start, job.personal);
        let steps = job.training()?.steps(inner.samples());
        let common = Job {
            personal: &kept.rest,
            ..job
        };
        let common = common.run(inner, &mut later(progress, 0, 2 * steps))?;
        let proximal = GradientModifier {
            mu: self.lambda,
            ..GradientModifier::none(job.start)
        };
        let near = Job {
            start: &kept.own,
            personal: &kept.beside,
            ..job
        };
        let mut watch = later(progress, steps, 2 * steps);
        let near = near.modified(&proximal).run(inner, &mut watch)?;
        let own = (&near.shared, &near.personal);
        Ok(Update {
            personal: self.models.write(&common.personal, own),
            ..common
        })
    }
}
