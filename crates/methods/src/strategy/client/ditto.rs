//! Ditto (Li et al. 2021): a common model, and at every silo one of its own that stays near it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{Capability, GradientModifier, LearnError, Learner, Update, Watch};
use crate::params::{Attached, Params};
use crate::strategy::options::{Setting, not_negative};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::wrappers::learner_wrapper::{
    Job, LearnerWrapper, MODIFIES_GRADIENTS, WrappedLearner, later,
};
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{EquipError, Strategy, StrategyError};

/// Name under which the own model is kept in the personal state.
const OWN: &str = "ditto";

/// Options of Ditto.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ditto {
    /// Weight of a silo's model in the mean that becomes the common model.
    pub weight: WeightRule,
    /// Strength λ of the proximal term in the objective of a silo's own model `v`,
    /// `F_k(v) + λ/2·‖v − w‖²` around the common model `w`. At 0 the own model is trained alone.
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
    pub(crate) fn build(&self, setting: Setting) -> Result<Box<dyn Strategy>, StrategyError> {
        not_negative("lambda", self.lambda)?;
        Ok(Box::new(WrappedStrategy {
            name: "ditto",
            inner: Box::new(FedAvg::on(setting, self.weight)),
            by: Near {
                lambda: self.lambda,
            },
        }))
    }
}

struct Near {
    lambda: f64,
}

impl StrategyWrapper for Near {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let rest = inner.initial_personal(0).layout().clone();
        let personal = Attached::new(&rest, &[(OWN, &inner.layout().trained())])?;
        let by = WithOwn {
            lambda: self.lambda,
            personal,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }
}

/// A learner with a whole model in its personal state: the trained tensors; buffers are those of
/// the common model.
struct WithOwn {
    lambda: f64,
    personal: Attached,
}

impl WithOwn {
    /// The own model, and the rest of the personal state.
    fn own(&self, model: &Params, personal: &Params) -> (Params, Params) {
        let (rest, own) = self.personal.split(personal);
        let own = Params::gather(model.layout(), &[&own[0], model]);
        (own.expect("tensors of this model"), rest)
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
        let model = inner.initial(seed);
        let trained = model.layout().trained();
        let own = Params::gather(&trained, &[&model]).expect("tensors of this model");
        self.personal.join(&inner.initial_personal(seed), &[&own])
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (model.clone(), self.personal.split(personal).0)
    }

    fn used(&self, model: &Params, personal: &Params) -> (Params, Params) {
        self.own(model, personal)
    }

    fn train(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (own, rest) = self.own(job.start, job.personal);
        let steps = job.training.steps(inner.samples());
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
            personal: &common.personal,
            ..job
        };
        let mut watch = later(progress, steps, 2 * steps);
        let near = near.modified(&proximal).run(inner, &mut watch)?;
        let own = Params::gather(&job.start.layout().trained(), &[&near.shared]);
        let own = own.expect("tensors of this model");
        Ok(Update {
            personal: self.personal.join(&near.personal, &[&own]),
            ..common
        })
    }
}
