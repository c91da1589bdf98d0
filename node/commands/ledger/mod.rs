//! `rota ledger`: makes the ledger of a source, and prints it.

mod reconcile;

use std::fs;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use super::{NodeCommandError, vacant, write};
use crate::cli::{ExportLedger, LedgerCommand, NewLedger, NodePlace, ShowLedger};
use crate::institution::source_of;
use crate::policy::{LedgerStatus, SourceLimits, make_ledger};
use formatting::numbers;

/// Carries out a command of `ledger`.
pub(crate) fn run(command: &LedgerCommand) -> Result<(), NodeCommandError> {
    match command {
        LedgerCommand::New(options) => new(options),
        LedgerCommand::Show(options) => show(options),
        LedgerCommand::Export(options) => export(options),
        LedgerCommand::Reconcile(options) => reconcile::run(options),
    }
}

/// The ledger that a `node.toml` names.
pub(super) fn source(node: &NodePlace) -> Result<SourceLimits, NodeCommandError> {
    let config = node.file()?;
    source_of(&config)?.ok_or_else(|| {
        NodeCommandError::Usage(format!(
            "{} names no ledger: write `ledger = \"FILE\"` into its table [policy], with a file outside of the \
             state folder",
            config.display()
        ))
    })
}

fn new(options: &NewLedger) -> Result<(), NodeCommandError> {
    let source = source(&options.node)?;
    make_ledger(&source.path, &options.name, options.unit.clone())?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "made the ledger {} of {}, which counts by {}",
        source.path.display(),
        numbers::plain(&options.name),
        numbers::plain(&options.unit.to_string())
    )?;
    Ok(())
}

/// The ledger as one document.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
struct LedgerDocument<'a> {
    #[serde(flatten)]
    status: &'a LedgerStatus,
    contributions: &'a [ledger::Line],
}

fn show(options: &ShowLedger) -> Result<(), NodeCommandError> {
    let source = source(&options.node)?;
    let contents = source.file().read()?;
    let status = LedgerStatus::of(&source, &contents);
    let mut out = BufWriter::new(io::stdout().lock());
    if options.json {
        let document = LedgerDocument {
            status: &status,
            contributions: &contents.lines,
        };
        let document = serde_json::to_string_pretty(&document).map_err(io::Error::other)?;
        writeln!(out, "{}", numbers::escaped(&document))?;
    } else {
        for line in &contents.lines {
            let noise = noise_of(line);
            let known = if line.is_reconciled() {
                ", known of others alone"
            } else {
                ""
            };
            writeln!(
                out,
                "{:>5}  federation {}, epoch {}, round {}: {noise}{known}; epsilon {}, epsilon_alone {}",
                line.line,
                line.federation.get(..8).unwrap_or_default(),
                line.epoch,
                line.round,
                line.epsilon,
                line.epsilon_alone
            )?;
        }
        writeln!(out, "{}", numbers::plain(&status.text()))?;
    }
    Ok(out.flush()?)
}

/// The noise of a line, in words.
pub(super) fn noise_of(line: &ledger::Line) -> String {
    match line.noise {
        Some(noise) => format!("z {}, a {}, c {}", noise.z, noise.a, noise.c),
        None => "no noise".into(),
    }
}

fn export(options: &ExportLedger) -> Result<(), NodeCommandError> {
    let source = source(&options.node)?;
    vacant(&options.file, false)?;
    // Read whole and checked before any of it is written.
    source.file().read()?;
    let text = fs::read_to_string(&source.path).map_err(io::Error::other)?;
    write(&options.file, &text)
}
