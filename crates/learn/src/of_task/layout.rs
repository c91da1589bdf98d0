//! Size of the models of a task, before one is made.

use std::sync::Arc;

use methods::{Layout, Learner};
use task::TaskConfig;

use crate::data::DataError;
use crate::learners::{ConstantLearner, family_layout};
use crate::study::family;

use super::check_parameters;

/// The layout of a task's models, counted from its configuration: no model and no row is made, so this can be asked
/// of a text from anybody. `None` where it takes data.
///
/// # Errors
/// [`DataError`]: a task that contradicts itself, or models of more numbers than any machine holds.
pub fn layout(task: &TaskConfig) -> Result<Option<Arc<Layout>>, DataError> {
    Ok(match task {
        TaskConfig::Table(task) => {
            task.check()?;
            let Some(schema) = task.agreed_schema()? else {
                return Ok(None);
            };
            let (features, target) = (schema.encoded().len(), schema.target());
            let (model, _) = family(&task.model, features, &target)?;
            Some(family_layout(&*model, features, &target, task.scaling()))
        }
        TaskConfig::External(task) => Some(task.layout()?),
        TaskConfig::Constant { parameters } => {
            check_parameters(*parameters)?;
            Some(ConstantLearner::new(*parameters).layout())
        }
        TaskConfig::Digits8Bench => None,
    })
}
