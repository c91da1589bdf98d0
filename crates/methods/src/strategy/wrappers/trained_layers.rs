//! Partial training: only named layers are trained and travel. All others stay at every silo as they
//! are in the model that the federation starts from, so that a large model can be tuned for the bytes
//! of a small part of it. Goes with every strategy.

use std::sync::Arc;

use crate::learner::{Capability, GradientModifier, Job, LearnError, Learner, Update, Watch, Work};
use crate::params::{Attached, Layout, Params};
use crate::strategy::EquipError;
use crate::strategy::wrappers::learner_wrapper::{LearnerWrapper, WrappedLearner};
use crate::strategy::wrappers::personal_layers::{choose, part};
use crate::strategy::wrappers::standardise::SCALE;
use crate::strategy::wrappers::strategy_wrapper::StrategyWrapper;

/// Name under which frozen tensors are kept in the personal state.
const FROZEN: &str = "frozen";

/// The wrapper that trains and sends the named tensors only, and the federation's common scale.
pub(crate) struct TrainedLayers(pub(crate) Vec<String>);

impl StrategyWrapper for TrainedLayers {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let full = inner.layout();
        let named = choose(&full, &self.0, "trained")?;
        if named.trained().is_empty() {
            return Err(EquipError::NothingTrained(self.0.join(", ")));
        }
        let travels = |name: &str| named.position(name).is_some() || SCALE.contains(&name);
        let shared = full.select(|tensor| travels(&tensor.name));
        let frozen = full.select(|tensor| !travels(&tensor.name));
        let rest = inner.initial_personal(0).layout().clone();
        let by = Partial {
            personal: Attached::new(&rest, &[(FROZEN, &frozen)])?,
            full,
            shared,
            frozen,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }
}

/// A learner of the part of its model that is not frozen.
struct Partial {
    full: Arc<Layout>,
    shared: Arc<Layout>,
    frozen: Arc<Layout>,
    personal: Attached,
}

impl Partial {
    /// Returns what others see of an update of the whole model. The frozen part, running statistics in it too,
    /// stays as it was in `before`, the personal state.
    fn parted(&self, update: Update, before: &Params) -> Update {
        let (_, frozen) = self.personal.split(before);
        Update {
            shared: part(&self.shared, &update.shared),
            personal: self.personal.join(&update.personal, &[&frozen[0]]),
            ..update
        }
    }

    /// All that is not trained, where a wrapper further out freezes tensors too.
    fn all_frozen(&self, more: Option<&Layout>) -> Arc<Layout> {
        let more = more.into_iter().flat_map(Layout::tensors);
        let more = more.filter(|tensor| self.frozen.position(&tensor.name).is_none());
        let all = self.frozen.tensors().iter().chain(more).cloned();
        Layout::new(all.collect()).expect("names of one model, each once")
    }
}

impl LearnerWrapper for Partial {
    fn needs(&self) -> &'static [Capability] {
        &[Capability::ModifiedGradients]
    }

    // They train all layers.
    fn uses_up(&self) -> &'static [Capability] {
        &[
            Capability::RobustFits,
            Capability::ExactFits,
            Capability::RowAccess,
            Capability::Classifiers,
            Capability::StochasticModels,
        ]
    }

    fn layout(&self, _: &dyn Learner) -> Arc<Layout> {
        self.shared.clone()
    }

    fn initial(&self, inner: &dyn Learner, seed: u64) -> Params {
        part(&self.shared, &inner.initial(seed))
    }

    fn initial_personal(&self, inner: &dyn Learner, seed: u64) -> Params {
        let frozen = part(&self.frozen, &inner.initial(seed));
        self.personal
            .join(&inner.initial_personal(seed), &[&frozen])
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        let (rest, frozen) = self.personal.split(personal);
        let full = Params::gather(&self.full, &[model, &frozen[0]]);
        (full.expect("trained and frozen tensors are all"), rest)
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (start, rest) = self.inside(job.start, job.personal);
        let none = GradientModifier::none(&start);
        let given = *job.work.modifier().unwrap_or(&none);
        let frozen = self.all_frozen(given.frozen);
        let modifier = GradientModifier {
            frozen: Some(&frozen),
            ..given
        };
        let work = match job.work {
            Work::Train { training, .. } => Work::Train {
                training,
                modifier: Some(&modifier),
            },
            other => other,
        };
        let inside = Job {
            start: &start,
            personal: &rest,
            work,
            ..job
        };
        Ok(self.parted(inside.run(inner, progress)?, job.personal))
    }
}
