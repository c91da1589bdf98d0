//! `rota audit`: checks the audit log of a node and prints it.

use std::io::{self, BufWriter, Write};

use crate::audit::{AUDIT, AuditLine, check};
use agreement::Agreement;

use super::{NodeCommandError, journal_of, state_of};
use crate::cli::Audit as Arguments;

/// Checks the log, and prints its lines or what it says.
pub(crate) fn run(arguments: &Arguments) -> Result<(), NodeCommandError> {
    let mut state = state_of(&arguments.of)?;
    // The log can be checked without the journal, but not where there is neither.
    if !state.join(AUDIT).is_dir() {
        state = journal_of(&arguments.of)?;
    }
    let kept = state.join("federation.toml");
    let agreement = Agreement::load_kept(arguments.federation.as_deref().unwrap_or(&kept))?;
    let mut out = BufWriter::new(io::stdout().lock());
    let print = |line: &[u8]| {
        if arguments.summary {
            return Ok(());
        }
        if !arguments.json {
            let read: AuditLine = serde_json::from_slice(line)?;
            return writeln!(out, "{}", read.sentence());
        }
        out.write_all(line)?;
        out.write_all(b"\n")
    };
    let found = check(&state, &agreement.epoch, print);
    // Lines that were printed stand before the error.
    out.flush()?;
    let found = found?;
    if !arguments.json {
        if !arguments.summary {
            writeln!(out)?;
        }
        found.write(&mut out)?;
    }
    Ok(out.flush()?)
}
