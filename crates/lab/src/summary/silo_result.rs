//! The result of one silo.

use std::collections::BTreeMap;

use learn::RowCounts;
use methods::serving::Tuned;
use protocol::Hash;

use super::ServedInfo;
use super::gains::ModelResults;
use super::measured::{HeldOutResults, TrainingTargets};
use super::results::ModelKind;

/// The result of one silo, with metrics on its own held-out rows.
pub(super) struct SiloResult {
    pub(super) name: String,
    /// The group that the source of the data puts it in.
    pub(super) group: Option<String>,
    pub(super) rows: RowCounts,
    /// Position of the silo among the members; `None` for a silo outside.
    pub(super) member: Option<usize>,
    pub(super) coalition_index: Option<u32>,
    pub(super) model: Option<Hash>,
    /// Models of the silo, each measured, or the error because of which there is none or it could not be
    /// measured.
    pub(super) models: BTreeMap<ModelKind, Result<HeldOutResults, String>>,
    /// Training targets of the silo, where they have a mean.
    pub(super) targets: Option<TrainingTargets>,
    pub(super) served: Option<ServedInfo>,
    /// Choice of its local model.
    pub(super) tuned: Option<Tuned>,
    /// True if parts of its coalition's model, which it keeps to itself, were never trained.
    pub(super) never_trained: bool,
}

impl SiloResult {
    /// The value of a metric for a model.
    pub(super) fn value(&self, model: ModelKind, metric: &str) -> Option<f64> {
        let measured = self.models.get(&model)?.as_ref().ok()?;
        measured.metrics.get(metric).copied()
    }

    /// The row results of its models, for comparisons; models that are of no use are left out.
    pub(super) fn rows(&self, unusable: &[ModelKind]) -> ModelResults {
        let usable = self
            .models
            .iter()
            .filter(|(kind, _)| !unusable.contains(kind));
        let rows = usable
            .filter_map(|(&kind, measured)| Some((kind, measured.as_ref().ok()?.rows.clone()?)));
        rows.collect()
    }
}
