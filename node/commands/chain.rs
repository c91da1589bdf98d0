//! `rota chain`: prints the agreed chain from a node's journal.

use std::io::{self, BufWriter, Write};
use std::panic;

use rota::chain::Chain;
use rota::report::numbers;

use super::CommandError;
use crate::cli::Chain as Arguments;

/// Prints the chain.
pub(crate) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    // A copy taken while the node writes can make redb panic. `Chain::read` catches that, so the
    // message of the panic is not printed.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let chain = Chain::read(&arguments.state, arguments.federation.as_deref());
    panic::set_hook(hook);
    let chain = chain?;
    let mut out = BufWriter::new(io::stdout().lock());
    if arguments.json {
        let json = serde_json::to_string_pretty(&chain).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else {
        chain.write(&mut out)?;
    }
    Ok(out.flush()?)
}
