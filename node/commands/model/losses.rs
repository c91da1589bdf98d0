//! The losses of the federation's model on the rows of one node, row by row.

use std::path::Path;

use methods::{LearnError, Params, Split};
use task::data::DataError;

use super::NodeModels;
use crate::commands::NodeCommandError;
use crate::model::{Choice, ModelError, Which};
use formatting::numbers;

/// The losses of a model on the rows of a node. They do not leave it.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnLosses {
    /// Description of the model, in a sentence without a full stop.
    pub about: String,
    /// Of every training row.
    pub train: Vec<f64>,
    /// Of every held-out row; empty where there are none.
    pub held_out: Vec<f64>,
}

/// Measures the last model of the coalition of a node on its own rows, one by one.
///
/// # Errors
/// [`NodeCommandError`]: there is no model yet, the rows cannot be read, or a program of one's own learns, which
/// gives no losses of single rows.
pub fn own_losses(config: &Path) -> Result<OwnLosses, NodeCommandError> {
    let node = NodeModels::load(config)?;
    let choice = Choice {
        which: Which::Coalition(None),
        round: None,
        instead: false,
    };
    let chosen = node.choose(choice)?;
    if !node.equipment.own_rows {
        let why = "the rows of this node cannot be read here, so nothing can be measured on them";
        return Err(ModelError::Data(DataError::Config(why.into())).into());
    }
    let losses = |part| losses(&node, &chosen.model, part);
    let failed = |error: LearnError| ModelError::Data(DataError::Config(error.to_string()));
    Ok(OwnLosses {
        about: format!(
            "{}: {}",
            numbers::plain(&chosen.origin.federation),
            numbers::plain(&chosen.origin.about)
        ),
        train: losses(Split::Train).map_err(failed)?,
        held_out: match losses(Split::Test) {
            Err(LearnError::NoRows(_)) => Vec::new(),
            losses => losses.map_err(failed)?,
        },
    })
}

fn losses(node: &NodeModels, model: &Params, part: Split) -> Result<Vec<f64>, LearnError> {
    let learner = &node.equipment.plain.learner;
    let (outputs, personal) = (learner.outputs()?, Params::empty());
    let values = outputs.outputs(model, &personal, part)?;
    let mut results = outputs.row_results(model, &personal, &values, part)?;
    Ok(results.scores.remove("loss").unwrap_or_default())
}
