//! The command line of ledgers.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ledger::SourceUnit;

/// The subcommands of `rota ledger`.
#[derive(Debug, Subcommand)]
pub enum LedgerCommand {
    /// Make the ledger of a source, in the file that [policy] of silo.toml names; once for a source
    New(NewLedger),
    /// Print what was contributed from the source, and what holds for one unit
    Show(ShowLedger),
    /// Write the lines of the ledger, checked, as they are in the file
    Export(ExportLedger),
}

/// Options of `rota ledger new`.
///
/// A source is a set of rows, such as the patients of one hospital. All federations that learn from it need
/// one and the same ledger. Two ledgers of the same rows do not know of each other.
#[derive(Debug, Args)]
pub struct NewLedger {
    /// Name of the source, for people
    pub name: String,
    /// What is protected as one: `row`, or `person:` and the column that says whose row it is
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub unit: SourceUnit,
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
}

/// Options of `rota ledger show`.
#[derive(Debug, Args)]
pub struct ShowLedger {
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
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
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
}

fn unit(text: &str) -> Result<SourceUnit, String> {
    text.parse()
        .map_err(|why: ledger::UnitError| why.to_string())
}
