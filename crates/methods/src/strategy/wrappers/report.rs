//! Wraps a learner so that it reports numbers with its contributions: metrics of the model that a
//! silo starts from.
//!
//! Methods that weigh silos by their losses measure the model of a round once it is aggregated,
//! which takes a second exchange. Here a silo measures the model when it starts from it, and sends
//! the figures with what it trained: the same losses, one round later, in one exchange. They are
//! self-reported: nobody can check them.

use std::sync::Arc;

use crate::learner::{Capability, Job, LearnError, Learner, Split, Update, Watch};
use crate::params::{Attached, Layout, LayoutError, Params, Role, TensorSpec};
use crate::strategy::wrappers::learner_wrapper::{LearnerWrapper, WrappedLearner};
use crate::strategy::{EquipError, ModelEntry};

/// Name of what is attached to a contribution.
const REPORT: &str = "report";

/// Measures the start model on the training rows and attaches these metrics (`"loss"`,
/// `"accuracy"`), in ascending order, to the contribution, as buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReportMetrics(pub(crate) &'static [&'static str]);

impl ReportMetrics {
    /// Layout of a contribution, given that of the models.
    pub(crate) fn contribution(self, model: &Arc<Layout>) -> Arc<Layout> {
        let attached = self.attached(model).expect("the learner was equipped");
        attached.whole().clone()
    }

    /// A learner that reports.
    pub(crate) fn equip(self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        for &metric in self.0 {
            must_measure(&*inner, metric)?;
        }
        let by = Reporting {
            report: self,
            contribution: self.attached(&inner.layout())?,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }

    /// The reported numbers, in the order of their names, without a copy of the model; fewer where
    /// the contribution lacks some.
    pub(crate) fn values(self, entry: &ModelEntry) -> Vec<f64> {
        let of = |name: &&str| entry.model.tensor(&format!("{REPORT}.{name}"));
        let values = self.0.iter().filter_map(of).flatten();
        values.map(|&value| value.into()).collect()
    }

    /// The contributed model by itself, and the reported numbers, in the order of their names.
    pub(crate) fn split(self, entry: &ModelEntry) -> (Params, Vec<f64>) {
        let attached = Attached::find(entry.model.layout(), &[REPORT]);
        let (model, report) = attached.split(&entry.model);
        let values = report[0].values().iter().map(|&value| value.into());
        (model, values.collect())
    }

    /// The contributed model by itself.
    pub(crate) fn model(self, contribution: &Params) -> Params {
        let attached = Attached::find(contribution.layout(), &[REPORT]);
        attached.split(contribution).0
    }

    /// A contribution with what is reported attached to it.
    pub(crate) fn attached(self, model: &Arc<Layout>) -> Result<Attached, LayoutError> {
        let tensor = |name: &&str| TensorSpec::new(*name, [1], Role::Buffer);
        let report = Layout::new(self.0.iter().map(tensor).collect())?;
        Attached::new(model, &[(REPORT, &report)])
    }
}

/// Refuses a learner that does not measure this metric, seen from its initial model.
pub(crate) fn must_measure(learner: &dyn Learner, name: &'static str) -> Result<(), EquipError> {
    // A learner always measures its loss.
    if name == "loss" {
        return Ok(());
    }
    let (model, personal) = (learner.initial(0), learner.initial_personal(0));
    match learner.evaluate(&model, &personal, Split::Train) {
        Ok(metrics) if metrics.get(name).is_err() => Err(EquipError::Metric(name)),
        _ => Ok(()),
    }
}

struct Reporting {
    report: ReportMetrics,
    contribution: Attached,
}

impl Reporting {
    fn reported(
        &self,
        inner: &dyn Learner,
        start: &Params,
        personal: &Params,
        update: Update,
    ) -> Result<Update, LearnError> {
        let metrics = inner.evaluate(start, personal, Split::Train)?;
        let report = self.report.0.iter();
        let report = report.map(|&name| Ok(metrics.get(name)? as f32));
        let report = report.collect::<Result<Vec<_>, LearnError>>()?;
        let report = Params::from_values(self.contribution.part(0), &report);
        Ok(Update {
            shared: self.contribution.join(&update.shared, &[&report]),
            ..update
        })
    }
}

impl LearnerWrapper for Reporting {
    fn needs(&self) -> &'static [Capability] {
        &[]
    }

    fn uses_up(&self) -> &'static [Capability] {
        &[]
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (start, personal) = (job.start, job.personal);
        let update = job.run(inner, progress)?;
        self.reported(inner, start, personal, update)
    }
}
