//! `rota chain`: the agreed chain as a node's journal holds it.

use std::io::{self, BufWriter, Write};
use std::panic;

use rota::chain::Chain;
use rota::report::numbers;

use super::CommandError;
use crate::cli::Chain as Asked;

/// Prints it.
pub(crate) fn run(asked: &Asked) -> Result<(), CommandError> {
    // A copy that was taken while the node wrote may lead the reader of the format to a panic, which
    // is caught; it is no news for anybody.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let chain = Chain::read(&asked.state, asked.federation.as_deref());
    panic::set_hook(hook);
    let chain = chain?;
    let mut out = BufWriter::new(io::stdout().lock());
    if asked.json {
        let json = serde_json::to_string_pretty(&chain).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else {
        chain.write(&mut out)?;
    }
    Ok(out.flush()?)
}
