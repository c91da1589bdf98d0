//! `rota run`: one institution's node.

use rota::institution::{Institution, Options, Teller, run as live};

use super::CommandError;
use crate::cli::Run;

/// Lives until a signal, or until it is done.
pub(crate) fn run(run: &Run) -> Result<(), CommandError> {
    let institution = Institution::load(&run.config)?;
    let options = Options {
        until_done: run.until_done,
        grace: run.grace,
        journal_lost: run.journal_lost,
    };
    let (teller, writer) = Teller::start(run.json);
    let ended = live(&institution, &options, &teller);
    drop(teller);
    // Everything that was said is out before the reason is.
    let _ = writer.join();
    Ok(ended?)
}
