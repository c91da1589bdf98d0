//! One model for all members, in which silos weigh by numbers that they report about themselves.

use std::sync::Arc;

use crate::aggregation::weights::WeightsError;
use crate::learner::{Learner, Training};
use crate::params::{Layout, Params, weighted_mean};
use crate::strategy::wrappers::report::ReportMetrics;
use crate::strategy::{
    AssignAndAggregate, DecideError, EquipError, LoadedManifest, ModelEntry, SettleError, State,
};

/// What a silo reports about itself with its contribution.
pub(crate) struct SelfReported {
    /// The reported numbers, in the order of their names.
    pub(crate) values: Vec<f64>,
    /// Rows of the silo where silos count by rows, else 1.
    pub(crate) share: f64,
}

/// A rule by which silos weigh.
pub(crate) trait Weighing: Send + Sync {
    /// The numbers that silos report.
    fn report(&self) -> ReportMetrics;

    /// The learner of a silo, which reports them.
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.report().equip(inner)
    }

    /// Returns whether contributions come with their number of training rows.
    fn by_rows(&self) -> bool {
        false
    }

    /// Refuses numbers that no silo can report, with the reason in one sentence.
    fn validate(&self, values: &[f64], round: u64) -> Result<(), String> {
        let _ = (values, round);
        Ok(())
    }

    /// The weight of every contribution, of which there is at least one.
    fn weights(&self, reported: &[SelfReported], round: u64) -> Result<Vec<f64>, WeightsError>;

    /// The next model: by default the mean with these weights.
    fn combine(&self, start: &Params, models: &[(&Params, f64)]) -> Result<Params, SettleError> {
        let _ = start;
        Ok(weighted_mean(models)?)
    }
}

/// A strategy of one model whose contributions weigh by this rule.
pub(crate) struct SelfWeighted<W> {
    pub(crate) name: &'static str,
    pub(crate) training: Training,
    pub(crate) by: W,
}

impl<W: Weighing> SelfWeighted<W> {
    fn read(&self, entry: &ModelEntry, round: u64) -> Result<SelfReported, String> {
        let by_rows = self.by.by_rows();
        entry.admit_rows(by_rows)?;
        let share = entry.share(by_rows);
        let values = self.by.report().values(entry);
        if values.len() != self.by.report().0.len() {
            let names = self.by.report().0.join(", ");
            return Err(format!("the contribution does not report its {names}"));
        }
        self.by.validate(&values, round)?;
        Ok(SelfReported { values, share })
    }

    fn weights(&self, manifest: &LoadedManifest, round: u64) -> Result<Vec<f64>, DecideError> {
        manifest.not_empty()?;
        let mut reported = Vec::with_capacity(manifest.entries.len());
        for (entry, contribution) in manifest.entries.iter().enumerate() {
            let read = self.read(contribution, round);
            reported.push(read.map_err(|reason| DecideError::Unusable { entry, reason })?);
        }
        let weights = self.by.weights(&reported, round);
        weights.map_err(DecideError::unusable)
    }
}

impl<W: Weighing> AssignAndAggregate for SelfWeighted<W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn by_rows(&self) -> bool {
        self.by.by_rows()
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.by.equip(learner)
    }

    fn contribution(&self, model: &Arc<Layout>) -> Arc<Layout> {
        self.by.report().contribution(model)
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        self.read(entry, round).map(drop)
    }

    fn assign(
        &self,
        _: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Vec<u32>, DecideError> {
        self.weights(manifest, round)?;
        Ok(vec![0; manifest.entries.len()])
    }

    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        assignment: &[u32],
        round: u64,
    ) -> Result<State, SettleError> {
        let ([start], true) = (&state.models[..], assignment.iter().all(|&own| own == 0)) else {
            return Err(SettleError::Infeasible("there is one model for all".into()));
        };
        let weights = self.weights(manifest, round)?;
        let model = |entry| self.by.report().split(entry).0;
        let models: Vec<_> = manifest.entries.iter().map(model).collect();
        let models: Vec<_> = models.iter().zip(weights).collect();
        Ok(state.with(vec![self.by.combine(start, &models)?]))
    }
}
