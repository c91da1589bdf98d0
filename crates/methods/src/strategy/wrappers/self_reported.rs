//! What silos say of themselves with their contributions, from what they measure and remember.

use std::sync::Arc;

use crate::learner::{Capability, LearnError, Learner, Update, Watch};
use crate::params::{Attached, Layout, Params, Role, TensorSpec};
use crate::strategy::EquipError;
use crate::strategy::wrappers::learner_wrapper::{Job, LearnerWrapper, WrappedLearner};
use crate::strategy::wrappers::report::Reported;

/// Name under which a silo keeps what it remembers in its personal state.
const KEPT: &str = "word";

/// What a silo measures of itself, beyond the model that it starts from.
pub(crate) trait Word: Send + Sync + 'static {
    /// Names of the numbers that are said, ascending.
    fn said(&self) -> Reported;

    /// Names of the numbers that the silo remembers, ascending; zeros at first.
    fn kept(&self) -> &'static [&'static str];

    /// The numbers said, after a training from `start` to `reached`, and what is remembered from
    /// then on.
    fn say(
        &self,
        learner: &dyn Learner,
        start: &Params,
        personal: &Params,
        reached: &Update,
        kept: &mut [f32],
    ) -> Result<Vec<f64>, LearnError>;
}

/// A learner that says this.
pub(crate) fn equip(
    word: impl Word,
    inner: Arc<dyn Learner>,
) -> Result<Arc<dyn Learner>, EquipError> {
    let tensor = |name: &&str| TensorSpec::new(*name, [1], Role::Buffer);
    let kept = Layout::new(word.kept().iter().map(tensor).collect())?;
    let rest = inner.initial_personal(0).layout().clone();
    let by = Saying {
        contribution: word.said().attached(&inner.layout())?,
        personal: Attached::new(&rest, &[(KEPT, &kept)])?,
        word,
    };
    Ok(WrappedLearner::equip(inner, by)?)
}

struct Saying<W> {
    word: W,
    contribution: Attached,
    personal: Attached,
}

impl<W: Word> Saying<W> {
    fn said(
        &self,
        inner: &dyn Learner,
        start: &Params,
        personal: &Params,
        update: Update,
    ) -> Result<Update, LearnError> {
        let (rest, kept) = self.personal.split(personal);
        let mut kept = kept[0].values().to_vec();
        let said = self.word.say(inner, start, &rest, &update, &mut kept)?;
        let said: Vec<f32> = said.into_iter().map(|value| value as f32).collect();
        let said = Params::from_values(self.contribution.part(0), &said);
        let kept = Params::from_values(self.personal.part(0), &kept);
        Ok(Update {
            shared: self.contribution.join(&update.shared, &[&said]),
            personal: self.personal.join(&update.personal, &[&kept]),
            ..update
        })
    }
}

impl<W: Word> LearnerWrapper for Saying<W> {
    fn needs(&self) -> &'static [Capability] {
        &[]
    }

    fn uses_up(&self) -> &'static [Capability] {
        &[]
    }

    fn initial_personal(&self, inner: &dyn Learner, seed: u64) -> Params {
        let nothing = Params::zeros(self.personal.part(0));
        self.personal
            .join(&inner.initial_personal(seed), &[&nothing])
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (model.clone(), self.personal.split(personal).0)
    }

    fn keep(
        &self,
        inner: &dyn Learner,
        start: &Params,
        personal: &Params,
    ) -> Result<Update, LearnError> {
        let (model, rest) = self.inside(start, personal);
        let update = Update::kept(&model, &rest, inner.samples());
        self.said(inner, start, personal, update)
    }

    fn train(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (_, rest) = self.inside(job.start, job.personal);
        let inside = Job {
            personal: &rest,
            ..job
        };
        let update = inside.run(inner, progress)?;
        self.said(inner, job.start, job.personal, update)
    }
}
