//! Ditto (Li et al. 2021): a common model, and at every silo one of its own that stays near it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{Capability, GradientModifier, Job, LearnError, Learner, Update, Watch};
use crate::params::{Attached, Params};
use crate::strategy::options::{MethodSetting, not_negative};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::wrappers::learner_wrapper::{
    LearnerWrapper, MODIFIES_GRADIENTS, WrappedLearner, later,
};
use crate::strategy::wrappers::standardise::without_scale;
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{EquipError, Strategy, StrategyError};

/// Names in the personal state: the own model, and what the learner keeps beside it (personal
/// layers), which the training of the common model must not change.
const KEPT: [&str; 2] = ["ditto", "ditto-own"];

/// Options of Ditto.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ditto {
    /// Weight of a silo's model in the mean that becomes the global model.
    pub weight: WeightRule,
    /// Strength λ of the proximal term in the objective of a silo's own model `v`,
    /// `F_k(v) + λ/2·‖v − w‖²` around the global model `w`. At 0 the own model is trained alone.
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
        let rest = inner.initial_personal(0).layout().clone();
        let [own, beside] = KEPT;
        let kept = [(own, &without_scale(&inner.layout())), (beside, &rest)];
        let personal = Attached::new(&rest, &kept)?;
        let by = WithOwn {
            lambda: self.lambda,
            personal,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }
}

/// A learner with a whole model in its personal state, buffers such as running statistics
/// included. Only the scale that the federation agreed on is the common model's.
struct WithOwn {
    lambda: f64,
    personal: Attached,
}

/// A model and what the learner keeps beside it.
type ModelAndPersonal = (Params, Params);

impl WithOwn {
    /// What is kept beside the common model, and the own model with what is kept beside it.
    fn read(&self, model: &Params, personal: &Params) -> (Params, ModelAndPersonal) {
        let (rest, kept) = self.personal.split(personal);
        let own = Params::gather(model.layout(), &[&kept[0], model]);
        let own = own.expect("tensors of this model");
        (rest, (own, kept[1].clone()))
    }

    /// The personal state of these.
    fn write(&self, rest: &Params, (own, beside): (&Params, &Params)) -> Params {
        let own = Params::gather(self.personal.part(0), &[own]);
        let own = own.expect("tensors of this model");
        self.personal.join(rest, &[&own, beside])
    }
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
        let rest = inner.initial_personal(seed);
        self.write(&rest, (&inner.initial(seed), &rest))
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (model.clone(), self.personal.split(personal).0)
    }

    fn used(&self, model: &Params, personal: &Params) -> (Params, Params) {
        self.read(model, personal).1
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (rest, (own, beside)) = self.read(job.start, job.personal);
        let steps = job.training()?.steps(inner.samples());
        let common = Job {
            personal: &rest,
            ..job
        };
        let common = common.run(inner, &mut later(progress, 0, 2 * steps))?;
        let proximal = GradientModifier {
            mu: self.lambda,
            ..GradientModifier::none(job.start)
        };
        let near = Job {
            start: &own,
            personal: &beside,
            ..job
        };
        let mut watch = later(progress, steps, 2 * steps);
        let near = near.modified(&proximal).run(inner, &mut watch)?;
        Ok(Update {
            personal: self.write(&common.personal, (&near.shared, &near.personal)),
            ..common
        })
    }
}
