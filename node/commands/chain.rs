//! `rota chain`: prints the agreed chain from a node's journal.

use std::io::{self, BufWriter, Write};

use crate::chain::FinalChain;
use formatting::numbers;

use super::{NodeCommandError, journal_of, quietly};
use crate::cli::PrintChain as Arguments;

/// Prints the chain.
pub(crate) fn run(arguments: &Arguments) -> Result<(), NodeCommandError> {
    let state = journal_of(&arguments.of)?;
    let chain = quietly(|| FinalChain::read(&state, arguments.federation.as_deref()));
    let chain = chain?;
    let mut out = BufWriter::new(io::stdout().lock());
    if chain.members.is_none() {
        writeln!(
            io::stderr().lock(),
            "note: members have no names here, because the agreement beside the journal is gone or damaged: \
             --federation FILE reads them elsewhere"
        )?;
    }
    if arguments.json {
        let json = serde_json::to_string_pretty(&chain).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else {
        chain.write(&mut out)?;
    }
    Ok(out.flush()?)
}
