//! `rota status` and `rota watch`: what a running node says of itself.

use std::io::{self, IsTerminal, Write};

use rota::institution::{SetupError, state_folder};
use rota::report::numbers;
use rota::status::document::FORMAT;
use rota::status::socket::{self, SocketError};
use rota::status::{text, watch as screen};

use super::CommandError;
use crate::cli::{Status, Watch};

/// Prints the status of a node.
pub(crate) fn status(options: &Status) -> Result<(), CommandError> {
    let state = state_folder(&options.config).map_err(SetupError::from)?;
    let asked = socket::ask(&state, &options.config);
    let mut out = io::stdout().lock();
    if options.json {
        let document = match &asked {
            Ok(status) => serde_json::to_value(status).map_err(io::Error::from)?,
            // Programs learn from standard output, too, that no node runs.
            Err(error @ SocketError::Stopped { .. }) => serde_json::json!({
                "format": FORMAT, "running": false, "why": error.to_string(),
            }),
            Err(_) => return asked.map(drop).map_err(CommandError::from),
        };
        let json = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
        return asked.map(drop).map_err(CommandError::from);
    }
    write!(out, "{}", text::text(&asked?))?;
    Ok(out.flush()?)
}

/// Shows the status of a node until the user quits.
pub(crate) fn watch(options: &Watch) -> Result<(), CommandError> {
    let state = state_folder(&options.config).map_err(SetupError::from)?;
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(CommandError::NoTerminal);
    }
    // What no later start of the node would change is an error at once.
    match socket::ask(&state, &options.config) {
        Ok(_) | Err(SocketError::Stopped { .. } | SocketError::Answer { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(screen::run(|| socket::ask(&state, &options.config))?)
}
