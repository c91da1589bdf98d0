//! `rota check`: looks at everything that an institution's node needs.

use std::io::{self, BufWriter, Write};

use crate::check::{CheckOptions, CheckVerdict, check};
use crate::institution::{Configured, SetupError};
use formatting::numbers;

use super::{NodeCommandError, wrapped};
use crate::cli::CheckNode;

/// Prints what was found; fails if something is bad, and in another way if only others are missing.
pub(crate) fn run(options: &CheckNode) -> Result<(), NodeCommandError> {
    let config = options.node.file()?;
    let configured = Configured::load(&config).map_err(SetupError::from)?;
    let looked = CheckOptions {
        network: !options.offline,
        rehearse: options.rehearse,
        patience: options.timeout,
    };
    let found = check(&configured, &looked)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if options.json {
        let document = serde_json::to_string_pretty(&found).map_err(io::Error::other)?;
        writeln!(out, "{}", numbers::escaped(&document))?;
    } else {
        for line in found.lines() {
            writeln!(out, "{}", wrapped(&line))?;
        }
    }
    out.flush()?;
    match found.verdict {
        CheckVerdict::Ready => Ok(()),
        CheckVerdict::Waiting => Err(NodeCommandError::Waiting),
        CheckVerdict::NotReady => Err(NodeCommandError::Failed(
            "this node cannot take part as it is".into(),
        )),
    }
}
