//! SCAFFOLD (Karimireddy et al. 2020): control variates correct the drift of silos whose data differ.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learner::{
    Capability, GradientModifier, Job, LearnError, Learner, Optimiser, Update, Watch,
};
use crate::params::{Attached, Layout, Params};
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

/// Name under which a control variate travels: `c` with the model, `c_k` with what is personal.
const CONTROL: &str = "scaffold.control";

/// Options of SCAFFOLD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scaffold {
    /// Step size η_g of the global model, as a factor of the mean change of a round. Default 1.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub rate: f64,
}

impl Default for Scaffold {
    fn default() -> Self {
        Self { rate: 1.0 }
    }
}

impl Scaffold {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        positive("rate", self.rate)?;
        // The new control variate is the mean gradient, read off from how far plain steps went.
        let Optimiser::Sgd { momentum: 0.0, .. } = setting.training.optimiser else {
            return Err(StrategyError::Option {
                option: "training.optimiser",
                allowed: "sgd without momentum for scaffold",
                got: "another".into(),
            });
        };
        Ok(Box::new(WrappedStrategy {
            name: "scaffold",
            inner: Arc::new(FedAvg::new(setting.training, WeightRule::Equal)),
            by: Controlled {
                server: self.rate,
                members: setting.members,
            },
        }))
    }
}

/// Option II of the paper. A silo trains with `g ← g − c_k + c`, contributes its model `y` and, in
/// the place of `c`, the change `c_k⁺ − c_k` with `c_k⁺ = c_k − c + (x − y)/(τη)`. Then
/// `x ← x + η_g·mean(y − x)` and `c ← c + |S|/K·mean(c_k⁺ − c_k)`, all silos alike.
#[derive(Clone, Copy)]
struct Controlled {
    server: f64,
    members: usize,
}

impl StrategyWrapper for Controlled {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let (model, own) = (inner.layout(), inner.initial_personal(0).layout().clone());
        let control = [(CONTROL, &model.trained())];
        let by = WithControl {
            models: Attached::new(&model, &control)?,
            personal: Attached::new(&own, &control)?,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }

    fn adopt(
        &self,
        before: &State,
        manifest: &LoadedManifest,
        after: Outcome,
    ) -> Result<Outcome, SettleError> {
        let (before, mean) = one_model(&before.models, &after.state.models)?;
        let attached = Attached::find(before.layout(), &[CONTROL]);
        let ((start, controls), (reached, changes)) =
            (attached.split(before), attached.split(mean));
        let share = manifest.entries.len() as f64 / self.members as f64;
        let trained = changes[0].layout();
        let of = |model| Params::gather(trained, &[model]).expect("tensors of this model");
        let weights = zip(&of(&start), &of(&reached), |x, y| x + self.server * (y - x));
        let control = zip(&controls[0], &changes[0], |c, change| c + share * change);
        let base = Params::gather(attached.base(), &[&weights, &reached]);
        let base = base.expect("trained tensors and buffers are all");
        let mut after = after.clone();
        after.state.models = vec![attached.join(&base, &[&control])];
        Ok(after)
    }
}

/// Value by value, in `f64`, over two models of one layout.
fn zip(a: &Params, b: &Params, combine: impl Fn(f64, f64) -> f64) -> Params {
    Params::build(a.layout(), |into| {
        for ((into, &a), &b) in into.iter_mut().zip(a.values()).zip(b.values()) {
            *into = combine(a.into(), b.into()) as f32;
        }
    })
}

/// A learner of models that carry `c`, with `c_k` in its personal state.
struct WithControl {
    models: Attached,
    personal: Attached,
}

impl LearnerWrapper for WithControl {
    fn needs(&self) -> &'static [Capability] {
        &[Capability::ModifiedGradients]
    }

    fn uses_up(&self) -> &'static [Capability] {
        MODIFIES_GRADIENTS
    }

    fn layout(&self, _: &dyn Learner) -> Arc<Layout> {
        self.models.whole().clone()
    }

    fn initial(&self, inner: &dyn Learner, seed: u64) -> Params {
        let model = inner.initial(seed);
        let none = Params::zeros(&model.layout().trained());
        self.models.join(&model, &[&none])
    }

    fn initial_personal(&self, inner: &dyn Learner, seed: u64) -> Params {
        let none = Params::zeros(&inner.layout().trained());
        self.personal.join(&inner.initial_personal(seed), &[&none])
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (self.models.split(model).0, self.personal.split(personal).0)
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let ((start, common), (rest, own)) = (
            self.models.split(job.start),
            self.personal.split(job.personal),
        );
        let shift = zip(&common[0], &own[0], |c, own| c - own);
        let shifted = GradientModifier {
            shift: Some(&shift),
            ..GradientModifier::none(&start)
        };
        let training = job.training()?;
        let steps = training.steps(inner.samples()) as f64;
        let rate = training.optimiser.rate();
        let inside = Job {
            start: &start,
            personal: &rest,
            ..job
        };
        let update = inside.modified(&shifted).run(inner, progress)?;
        let trained = shift.layout();
        let of = |model| Params::gather(trained, &[model]).expect("tensors of this model");
        let went = zip(&of(&start), &of(&update.shared), |x, y| x - y);
        // c_k⁺ = (c_k − c) + (x − y)/(τη)
        let next = zip(&shift, &went, |shift, went| went / (steps * rate) - shift);
        let change = zip(&next, &own[0], |next, own| next - own);
        Ok(Update {
            shared: self.models.join(&update.shared, &[&change]),
            personal: self.personal.join(&update.personal, &[&next]),
            ..update
        })
    }
}
