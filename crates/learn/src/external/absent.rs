//! Stand-ins of silos whose programs are elsewhere.

use std::sync::{Arc, OnceLock};

use task::external::ExternalTask;

use super::learner::AbsentLearner;
use crate::data::DataError;
use crate::metrics::Metric;
use crate::study::{RowCounts, Study, StudySilo};

/// Stand-ins for silos whose programs are elsewhere.
///
/// # Errors
/// [`DataError::Config`]: tensors that make no model.
pub(crate) fn absent(task: &ExternalTask, names: &[String]) -> Result<Study, DataError> {
    let layout = task.layout()?;
    let task = Arc::new(task.clone());
    let silo = |name: &String| StudySilo {
        name: name.clone(),
        learner: Arc::new(AbsentLearner {
            task: task.clone(),
            layout: layout.clone(),
            initial: OnceLock::new(),
        }),
        rows: RowCounts::default(),
        preparation: None,
        group: None,
        table: None,
    };
    Ok(Study {
        silos: names.iter().map(silo).collect(),
        metric: Metric {
            name: task.metric,
            unit: task.unit.clone(),
        },
        pooled: None,
        notes: Vec::new(),
        proposed: None,
        classes: Vec::new(),
        subgroups: Vec::new(),
    })
}
