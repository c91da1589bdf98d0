//! `rota run`: runs the node of one institution.

use std::time::SystemTime;

use crate::institution::{Configured, NodeOptions, OutputLines, run as run_node};

use super::NodeCommandError;
use crate::cli::RunNode;
use crate::{clock, logging};

/// Runs until a signal, or with `--until-done` until every member holds the last round.
pub(crate) fn run(run: &RunNode) -> Result<(), NodeCommandError> {
    let configured = Configured::load(&run.node.file()?)?;
    let institution = configured.with_any_key()?;
    let options = NodeOptions {
        until_done: run.until_done,
        grace: run.grace,
        journal_lost: run.journal_lost,
        wait_for_admission: run.wait_for_admission,
        follow_recovery: run.follow_recovery,
        http: run.http,
    };
    if let Some(why) = clock::fault(SystemTime::now()) {
        // Rounds do not depend on it.
        let _ = logging::say(&format!("warning: {why}: set it, for instance with NTP"));
    }
    let (output, writer) = OutputLines::start(run.json);
    let ended = run_node(&institution, &options, &output);
    drop(output);
    // All lines are written before the error is.
    let _ = writer.join();
    Ok(ended?)
}
