//! Warns of columns whose values at this silo are far from those of the other members, as in another
//! unit. They are known where the members agree on a common scale, after the first round.

use std::sync::Arc;
use std::time::SystemTime;

use learn::far_columns;
use methods::{Learner, State};
use silo::Notice;
use task::TaskConfig;

use super::output::OutputLines;
use crate::events::NodeEvent;
use crate::institution::config::Institution;
use formatting::numbers;

/// Watches for the common scale.
pub(in crate::institution) struct ScaleWatch {
    learner: Arc<dyn Learner>,
    members: usize,
    names: Vec<String>,
    done: bool,
}

impl ScaleWatch {
    pub(in crate::institution) fn new(
        institution: &Institution,
        learner: Arc<dyn Learner>,
    ) -> Self {
        let agreement = &institution.agreement;
        let schema = match &agreement.task {
            TaskConfig::Table(task) => task.agreed_schema().ok().flatten(),
            _ => None,
        };
        let encoded = schema.map_or(Vec::new(), |schema| schema.encoded());
        Self {
            learner,
            members: agreement.epoch.roster.len(),
            names: encoded.into_iter().map(|column| column.name).collect(),
            done: !agreement.task.common_scale(),
        }
    }

    /// Prints the warnings when the first model with a common scale is adopted.
    pub(in crate::institution) fn notice(
        &mut self,
        at: f64,
        notice: &Notice,
        output: &OutputLines,
    ) {
        let Notice::Adopted { state, .. } = notice else {
            return;
        };
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        for (column, own, others) in self.far(state) {
            let line = format!(
                "warning: {column} is far from the other members' (mean {} here, {} elsewhere): is it \
                 in another unit?",
                numbers::value(own, numbers::decimals(own)),
                numbers::value(others, numbers::decimals(others)),
            );
            let event = NodeEvent::FarColumn {
                column,
                mean: own,
                others,
            };
            output.print(SystemTime::now(), at, event, &line);
        }
    }

    /// Name, mean here and mean elsewhere of every such column.
    fn far(&self, state: &State) -> Vec<(String, f64, f64)> {
        let summary = self.learner.summaries().ok();
        let summary = summary.and_then(|summaries| summaries.summarise().ok());
        let (Some(summary), Some(model)) = (summary, state.models.first()) else {
            return Vec::new();
        };
        let named = |far: learn::FarColumn| {
            let name = match self.names.get(far.column) {
                Some(name) => format!("column {name:?}"),
                None if far.column == self.names.len() => "the target".to_owned(),
                None => format!("column {}", far.column + 1),
            };
            (name, far.mean, far.others)
        };
        let far = far_columns(&summary, model, self.members);
        far.into_iter().map(named).collect()
    }
}
