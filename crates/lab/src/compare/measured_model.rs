//! A model of a silo, measured row by row.

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::Learner;

use super::rows::StoredRows;
use crate::summary::{HeldOutResults, OwnModel, measured};

/// Metrics by name.
pub(super) type MetricValues = BTreeMap<String, f64>;

/// A silo's model, the learner that takes it, and its results on test rows.
pub(super) struct MeasuredModel {
    pub(super) learner: Arc<dyn Learner>,
    pub(super) model: OwnModel,
    /// The results, or why it cannot be measured.
    pub(super) results: Result<HeldOutResults, String>,
}

impl MeasuredModel {
    /// Measures a model.
    pub(super) fn of(learner: Arc<dyn Learner>, model: OwnModel) -> Self {
        Self {
            results: measured(&learner, &model),
            learner,
            model,
        }
    }

    /// Metrics of the model. The loss is not a number where it cannot be measured.
    pub(super) fn values(&self) -> MetricValues {
        match &self.results {
            Ok(results) => results.metrics.clone(),
            Err(_) => [("loss".to_owned(), f64::NAN)].into(),
        }
    }

    /// Results of the model row by row, where the learner gives them.
    pub(super) fn rows(&self) -> Option<StoredRows> {
        let results = self.results.as_ref().ok()?;
        results.rows.as_deref().map(StoredRows::of)
    }
}
