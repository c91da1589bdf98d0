//! pFedMe (Dinh, Tran & Nguyen 2020): the global model minimises the Moreau envelopes of the silos' losses,
//! and every silo uses the model of its own that attains its envelope.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::personal_model::{PersonalModel, between};
use crate::learner::{
    Capability, GradientModifier, Job, LearnError, Learner, Optimiser, Update, Watch,
};
use crate::params::Params;
use crate::strategy::options::{MethodSetting, at_least_one, positive, require};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::server::one_model::one_model;
use crate::strategy::wrappers::learner_wrapper::{
    LearnerWrapper, MODIFIES_GRADIENTS, WrappedLearner, later,
};
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{
    EquipError, LoadedManifest, Outcome, SettleError, State, Strategy, StrategyError,
};

/// Names in the personal state, see [`PersonalModel`].
const KEPT: [&str; 2] = ["pfedme", "pfedme-own"];

/// Options of pFedMe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PFedMe {
    /// Weight of a silo's model in the mean.
    pub weight: WeightRule,
    /// Strength λ of the proximal term that holds a silo's local model near its copy of the common one,
    /// above 0, and below 2 by the learning rate of `training`, beyond which training diverges. Default 1;
    /// the paper's is 15, with small rates.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub lambda: f64,
    /// Rate η of the steps of the copy towards the local model; ηλ must not exceed 1. Default 0.15, so that ηλ
    /// is about the paper's.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub rate: f64,
    /// Number R of these steps in a round; before each the local model is trained. Default 5; the paper has 20,
    /// with one batch before each.
    #[schemars(range(min = 1))]
    pub local_rounds: u32,
    /// Share β of the way from the global model to the mean of the copies, above 0; more than 1 goes
    /// beyond it. Default 1.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub beta: f64,
}

impl Default for PFedMe {
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            lambda: 1.0,
            rate: 0.15,
            local_rounds: 5,
            beta: 1.0,
        }
    }
}

impl PFedMe {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        positive("lambda", self.lambda)?;
        positive("rate", self.rate)?;
        let rate = match setting.training.optimiser {
            Optimiser::Sgd { rate, .. } => rate,
            Optimiser::Adam { .. } => 0.0,
        };
        let converges = rate * self.lambda < 2.0;
        require(
            converges,
            "lambda",
            "below 2/training.optimiser.rate",
            self.lambda,
        )?;
        let step = self.rate * self.lambda;
        require(step <= 1.0, "rate", "at most 1/lambda", self.rate)?;
        at_least_one("local-rounds", self.local_rounds.into())?;
        positive("beta", self.beta)?;
        Ok(Box::new(WrappedStrategy {
            name: "pfedme",
            inner: Arc::new(FedAvg::on(setting, self.weight)),
            by: Enveloped {
                lambda: self.lambda,
                step,
                local_rounds: self.local_rounds,
                beta: self.beta,
            },
        }))
    }
}

/// Algorithm 1 of the paper: R times a silo trains `θ` near its copy `w` with `λ/2·‖θ − w‖²` and sets
/// `w ← w − ηλ(w − θ)`; the global model becomes `(1 − β)·itself + β·mean of the copies`.
#[derive(Clone, Copy)]
struct Enveloped {
    lambda: f64,
    /// ηλ.
    step: f64,
    local_rounds: u32,
    beta: f64,
}

impl StrategyWrapper for Enveloped {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let by = WithEnvelope {
            by: *self,
            models: PersonalModel::new(&*inner, KEPT)?,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }

    fn adopt(
        &self,
        before: &State,
        _: &LoadedManifest,
        after: Outcome,
    ) -> Result<Outcome, SettleError> {
        if self.beta == 1.0 {
            return Ok(after);
        }
        let (start, mean) = one_model(&before.models, &after.state.models)?;
        let moved = between(start, mean, self.beta);
        let mut after = after;
        after.state.models = vec![moved];
        Ok(after)
    }
}

/// A learner with `θ` in its personal state.
struct WithEnvelope {
    by: Enveloped,
    models: PersonalModel,
}

impl LearnerWrapper for WithEnvelope {
    fn needs(&self) -> &'static [Capability] {
        &[Capability::ModifiedGradients]
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
        let mut kept = self.models.read(job.start, job.personal);
        let steps = job.training()?.steps(inner.samples());
        let all = steps * u64::from(self.by.local_rounds);
        let mut copy = job.start.clone();
        let mut last = None;
        for local in 0..u64::from(self.by.local_rounds) {
            let proximal = GradientModifier {
                mu: self.by.lambda,
                ..GradientModifier::none(&copy)
            };
            let near = Job {
                start: &kept.own,
                personal: &kept.beside,
                // Another order of rows each time.
                seed: job.seed.wrapping_add(local),
                ..job
            };
            let mut watch = later(progress, local * steps, all);
            let near = near.modified(&proximal).run(inner, &mut watch)?;
            copy = between(&copy, &near.shared, self.by.step);
            kept.own = near.shared.clone();
            kept.beside = near.personal.clone();
            last = Some(near);
        }
        let last = last.expect("there is at least one local round");
        Ok(Update {
            shared: copy,
            personal: self.models.write(&kept.beside, (&kept.own, &kept.beside)),
            ..last
        })
    }
}
