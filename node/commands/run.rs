//! `rota run`: runs the node of one institution.

use crate::institution::{Configured, Options, Output, run as run_node};

use super::CommandError;
use crate::cli::Run;

/// Runs until a signal, or with `--until-done` until every member holds the last round.
pub(crate) fn run(run: &Run) -> Result<(), CommandError> {
    let configured = Configured::load(&run.config)?;
    let institution = configured.with_any_key()?;
    let options = Options {
        until_done: run.until_done,
        grace: run.grace,
        journal_lost: run.journal_lost,
        wait_for_admission: run.wait_for_admission,
        follow_recovery: run.follow_recovery,
        http: run.http,
    };
    let (output, writer) = Output::start(run.json);
    let ended = run_node(&institution, &options, &output);
    drop(output);
    // All lines are written before the error is.
    let _ = writer.join();
    Ok(ended?)
}
