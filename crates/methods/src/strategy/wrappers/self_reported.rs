//! Wraps a learner so that it reports numbers about its silo with every contribution, from what it
//! measures and what it keeps from round to round.

use std::sync::Arc;

use crate::learner::{Capability, Job, LearnError, Learner, Update, Watch};
use crate::params::{Attached, Layout, Params, Role, TensorSpec};
use crate::strategy::EquipError;
use crate::strategy::wrappers::learner_wrapper::{LearnerWrapper, WrappedLearner};
use crate::strategy::wrappers::report::ReportMetrics;

/// Name under which a silo keeps what it remembers in its personal state.
const KEPT: &str = "self-reported";

/// The numbers that a silo reports about itself, and how it finds them.
pub(crate) trait SelfReport: Send + Sync + 'static {
    /// Names of the reported numbers, ascending.
    fn report(&self) -> ReportMetrics;

    /// Names of the numbers that the silo keeps from round to round, ascending; zeros at first.
    fn kept(&self) -> &'static [&'static str];

    /// The reported numbers, after a training from `start` to `reached`. Updates what is kept.
    fn measure(
        &self,
        learner: &dyn Learner,
        start: &Params,
        personal: &Params,
        reached: &Update,
        kept: &mut [f32],
    ) -> Result<Vec<f64>, LearnError>;
}

/// A learner that reports this.
pub(crate) fn equip(
    numbers: impl SelfReport,
    inner: Arc<dyn Learner>,
) -> Result<Arc<dyn Learner>, EquipError> {
    let tensor = |name: &&str| TensorSpec::new(*name, [1], Role::Buffer);
    let kept = Layout::new(numbers.kept().iter().map(tensor).collect())?;
    let rest = inner.initial_personal(0).layout().clone();
    let by = SelfReporting {
        contribution: numbers.report().attached(&inner.layout())?,
        personal: Attached::new(&rest, &[(KEPT, &kept)])?,
        numbers,
    };
    Ok(WrappedLearner::equip(inner, by)?)
}

struct SelfReporting<R> {
    numbers: R,
    contribution: Attached,
    personal: Attached,
}

impl<R: SelfReport> SelfReporting<R> {
    fn reported(
        &self,
        inner: &dyn Learner,
        start: &Params,
        personal: &Params,
        update: Update,
    ) -> Result<Update, LearnError> {
        let (rest, kept) = self.personal.split(personal);
        let mut kept = kept[0].values().to_vec();
        let numbers = self
            .numbers
            .measure(inner, start, &rest, &update, &mut kept)?;
        let numbers: Vec<f32> = numbers.into_iter().map(|value| value as f32).collect();
        let numbers = Params::from_values(self.contribution.part(0), &numbers);
        let kept = Params::from_values(self.personal.part(0), &kept);
        Ok(Update {
            shared: self.contribution.join(&update.shared, &[&numbers]),
            personal: self.personal.join(&update.personal, &[&kept]),
            ..update
        })
    }
}

impl<R: SelfReport> LearnerWrapper for SelfReporting<R> {
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

    fn learn(
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
        self.reported(inner, job.start, job.personal, update)
    }
}
