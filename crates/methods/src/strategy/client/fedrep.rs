//! FedRep (Collins et al. 2021): a common body, and a head of its own at every silo; head and body
//! are trained in turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{
    Capability, GradientModifier, Job, LearnError, Learner, Training, Update, Watch,
};
use crate::params::Layout;
use crate::strategy::options::{Built, MethodSetting, at_least_one};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::wrappers::learner_wrapper::{
    LearnerWrapper, MODIFIES_GRADIENTS, WrappedLearner, later,
};
use crate::strategy::wrappers::personal_layers::{LAST_LAYER, select};
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{EquipError, Strategy, StrategyError};

/// Options of FedRep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedRep {
    /// Weight of a silo's shared layers (the body) in the mean.
    pub weight: WeightRule,
    /// Epochs for which a silo trains its last layer (the head) in a round, before it trains the
    /// body for `training.epochs`. Default 5, a guess.
    #[schemars(range(min = 1), extend("x-unit" = "epochs"))]
    pub head_epochs: u32,
}

impl Default for FedRep {
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            head_epochs: 5,
        }
    }
}

impl FedRep {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Built, StrategyError> {
        at_least_one("head-epochs", self.head_epochs.into())?;
        let strategy: Box<dyn Strategy> = Box::new(FedAvg::on(setting, self.weight));
        let head_epochs = self.head_epochs;
        Ok(Built::from(strategy)
            .with_personal(LAST_LAYER)
            .within(move |inner| in_turn(inner, head_epochs)))
    }
}

/// Makes silos train head and body in turn.
fn in_turn(inner: Box<dyn Strategy>, head_epochs: u32) -> Box<dyn Strategy> {
    Box::new(WrappedStrategy {
        name: inner.name(),
        inner: inner.into(),
        by: InTurn { head_epochs },
    })
}

struct InTurn {
    head_epochs: u32,
}

impl StrategyWrapper for InTurn {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let model = inner.layout();
        let head = select(&model, &[LAST_LAYER.into()])?;
        let body = model.select(|tensor| head.position(&tensor.name).is_none());
        let by = HeadThenBody {
            head,
            body,
            head_epochs: self.head_epochs,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }
}

/// A learner that trains its head with the body fixed, then the body with the head fixed.
struct HeadThenBody {
    head: Arc<Layout>,
    body: Arc<Layout>,
    head_epochs: u32,
}

impl LearnerWrapper for HeadThenBody {
    fn needs(&self) -> &'static [Capability] {
        &[Capability::ModifiedGradients]
    }

    fn uses_up(&self) -> &'static [Capability] {
        MODIFIES_GRADIENTS
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let training = job.training()?;
        let head_training = Training {
            epochs: self.head_epochs,
            ..training.clone()
        };
        let rows = inner.samples();
        let (first, second) = (head_training.steps(rows), training.steps(rows));
        let frozen = |tensors| GradientModifier {
            frozen: Some(tensors),
            ..GradientModifier::none(job.start)
        };
        let head = Job::train(job.start, job.personal, &head_training, job.seed);
        let mut watch = later(progress, 0, first + second);
        let head = head.modified(&frozen(&self.body)).run(inner, &mut watch)?;
        drop(watch);
        let body = Job {
            start: &head.shared,
            personal: &head.personal,
            ..job
        };
        let mut watch = later(progress, first, first + second);
        body.modified(&frozen(&self.head)).run(inner, &mut watch)
    }
}
