//! The command line of ledgers.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ledger::SourceUnit;

use super::NodePlace;

/// The subcommands of `rota ledger`.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Create the ledger of a source, in the file that [policy] of node.toml names
    ///
    /// A source is a set of rows, such as the patients of one hospital. All federations that learn from it
    /// need one common ledger, created once. Two ledgers of the same rows do not know of each other.
    New(NewLedger),
    /// Print the contributions from a source, and the privacy loss of one unit
    Show(ShowLedger),
    /// Write the checked lines of a ledger into a file
    Export(ExportLedger),
    /// Add the lines that a ledger lacks of contributions that the other members know of
    ///
    /// For a ledger that was put back from an older copy, or made anew. Let the node run first until it has
    /// all final rounds: they show what this institution contributed.
    Reconcile(ReconcileLedger),
}

/// Options of `rota ledger new`.
#[derive(Debug, Args)]
pub struct NewLedger {
    /// Name of the source, for reports
    pub name: String,
    /// Privacy unit: `row`, or `person:` and the column that identifies the person
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub unit: SourceUnit,
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
}

/// Options of `rota ledger show`.
#[derive(Debug, Args)]
pub struct ShowLedger {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// Options of `rota ledger export`.
#[derive(Debug, Args)]
pub struct ExportLedger {
    /// File to write; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
}

/// Options of `rota ledger reconcile`.
#[derive(Debug, Args)]
pub struct ReconcileLedger {
    /// The chain of another member, written by `rota chain --json`, for rounds that this node's journal lacks
    #[arg(long, value_name = "FILE")]
    pub chain: Option<PathBuf>,
    /// Add the lines without asking
    #[arg(long)]
    pub yes: bool,
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
}

fn unit(text: &str) -> Result<SourceUnit, String> {
    text.parse()
        .map_err(|why: ledger::UnitError| why.to_string())
}
