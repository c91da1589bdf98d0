//! `rota status` and `rota watch`: what a running node says of itself.

use std::io::{self, IsTerminal, Write};

use crate::institution::{SetupError, state_folder};
use crate::status::document::FORMAT;
use crate::status::socket::{self, NAME, NODES, SocketError};
use crate::status::{Status, all, text, watch as screen};
use formatting::numbers;
use serde::Serialize;

use super::NodeCommandError;
use crate::cli;

/// Prints the status of a node.
pub(crate) fn status(options: &cli::PrintStatus) -> Result<(), NodeCommandError> {
    let config = options.node.file()?;
    let state = state_folder(&config).map_err(SetupError::from)?;
    if options.federation {
        let asked = socket::ask(&state, NODES, &config);
        print(asked, options.json, all::text::text)
    } else {
        let asked = socket::ask(&state, NAME, &config);
        print(asked, options.json, text::text)
    }
}

/// Prints the answer of a node as one document or as text.
fn print<T: Serialize>(
    asked: Result<T, SocketError>,
    json: bool,
    text: fn(&T) -> String,
) -> Result<(), NodeCommandError> {
    let mut out = io::stdout().lock();
    if json {
        let document = match &asked {
            Ok(status) => serde_json::to_value(status).map_err(io::Error::from)?,
            // Programs learn from standard output, too, that no node runs.
            Err(error @ SocketError::Stopped { .. }) => serde_json::json!({
                "format": FORMAT, "running": false, "why": error.to_string(),
            }),
            Err(_) => return asked.map(drop).map_err(NodeCommandError::from),
        };
        let json = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
        return asked.map(drop).map_err(NodeCommandError::from);
    }
    write!(out, "{}", text(&asked?))?;
    Ok(out.flush()?)
}

/// Shows the status of a node, or of all, until the user quits.
pub(crate) fn watch(options: &cli::WatchNode) -> Result<(), NodeCommandError> {
    let config = options.node.file()?;
    let state = state_folder(&config).map_err(SetupError::from)?;
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(NodeCommandError::NoTerminal);
    }
    // A state that no later start of the node would change is an error at once.
    let own = || socket::ask::<Status>(&state, NAME, &config);
    match own() {
        Ok(_) | Err(SocketError::Stopped { .. } | SocketError::Answer { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(if options.federation {
        screen::run(|| socket::ask::<all::Nodes>(&state, NODES, &config))
    } else {
        screen::run(own)
    }?)
}
