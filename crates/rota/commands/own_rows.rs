//! Own rows, which nobody looks at with noise once their ledger is there.

use lab::compare::Experiment;
use node::institution::opened_ledger;

use super::CommandError;
use crate::cli::AdviceSource;

/// Refuses rows of files where the ledger of their source is there: what is tried on them is not counted.
///
/// # Errors
/// [`CommandError`]: they are refused, or the node's configuration cannot be read.
pub(super) fn refuse_own_rows(
    experiment: &Experiment,
    of: &AdviceSource,
) -> Result<(), CommandError> {
    if of.public_rows || !experiment.reads_own_rows() {
        return Ok(());
    }
    let Some(config) = of.node.found()? else {
        return Ok(());
    };
    match opened_ledger(&config).map_err(super::NodeError::from)? {
        None => Ok(()),
        Some(ledger) => Err(CommandError::usage(format!(
            "{} reads rows of files, and {} names the ledger {} of their source, which does not count what is \
             tried on them: use simulated or public rows of the same number and width, such as \
             `data = {{ synthetic = {{ target = \"logistic\", groups = 1 }} }}`, or say --public-rows",
            experiment.file,
            config.display(),
            ledger.display(),
        ))),
    }
}
