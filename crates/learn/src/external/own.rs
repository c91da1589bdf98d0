//! The silo of an institution that brings its own learner: Rust code beside the node, no program.

use std::sync::Arc;

use methods::learner::Split;
use methods::strategy::warm_started;
use methods::{Layout, LearnError, Learner, Params, TensorSpec};

use super::metric::measured_here;
use crate::data::DataError;
use crate::study::{RowCounts, StudySilo};
use task::TaskConfig;
use task::external::StartFrom;

/// This silo with another learner, which trains and measures the agreed model. `seed` is that of the
/// initial model. The learner of a [task of its own](task::external::ExternalTask) brings the rows, too; that
/// of a task on tables is used in place of Rota's, whose rows still say the scale and the counts.
///
/// # Errors
/// [`DataError::Config`]: a learner of another model than the agreed one, or one that cannot measure
/// the initial model on its held-out rows.
pub fn own_silo(
    task: &TaskConfig,
    silo: &StudySilo,
    learner: Arc<dyn Learner>,
    seed: u64,
) -> Result<StudySilo, DataError> {
    let agreed = silo.learner.layout();
    if let Some(what) = difference(&agreed, &learner.layout()) {
        return Err(DataError::Config(format!(
            "the learner of silo {:?} has another model than the agreed one: {what}",
            silo.name
        )));
    }
    let TaskConfig::External(external) = task else {
        return Ok(StudySilo {
            learner,
            ..silo.clone()
        });
    };
    let learner = match external.start() {
        StartFrom::Learner => learner,
        // The agreed values, whatever the learner would begin with. Those of the proposer's program
        // come on top.
        StartFrom::Tensors | StartFrom::Proposer => {
            warm_started(learner, &external.initial(&agreed, seed))
                .map_err(|error| DataError::Config(error.to_string()))?
        }
    };
    let (model, personal) = (learner.initial(seed), learner.initial_personal(seed));
    let rows = |split| measured(&*learner, &model, &personal, split);
    let rows = RowCounts {
        train: learner.samples() as usize,
        validation: rows(Split::Validation)?,
        test: rows(Split::Test)?,
    };
    let silo = StudySilo {
        learner,
        rows,
        ..silo.clone()
    };
    measured_here(&silo, external.metric, seed)?;
    Ok(silo)
}

/// Number of rows of a part, by a measurement of this model on them.
fn measured(
    learner: &dyn Learner,
    model: &Params,
    personal: &Params,
    split: Split,
) -> Result<usize, DataError> {
    match learner.evaluate(model, personal, split) {
        Ok(metrics) => Ok(metrics.samples as usize),
        Err(LearnError::NoRows(_)) => Ok(0),
        Err(error) => Err(DataError::Config(format!(
            "the learner cannot measure the model before the first round: {error}"
        ))),
    }
}

/// Returns how the learner's model differs from the agreed one, as a clause.
fn difference(agreed: &Layout, found: &Layout) -> Option<String> {
    if agreed == found {
        return None;
    }
    let unlike = |tensor: &&TensorSpec| !found.tensors().contains(tensor);
    let unknown = |tensor: &&TensorSpec| agreed.position(&tensor.name).is_none();
    Some(match agreed.tensors().iter().find(unlike) {
        Some(tensor) => {
            let (name, shape, role) = (&tensor.name, &tensor.shape, tensor.role);
            let has = found.describe();
            format!("{name:?} of shape {shape:?} is a {role:?} in it; the learner has {has}")
        }
        None => {
            let more = found.tensors().iter().find(unknown);
            let name = more.map_or("", |tensor| &tensor.name);
            format!("nobody agreed on the learner's tensor {name:?}")
        }
    })
}
