//! The command line of `rota blame`.

use std::path::PathBuf;

use clap::Args;

use super::StatePlace;

/// Options of `rota blame`.
#[derive(Debug, Args)]
pub struct BlameRound {
    /// Number of the round
    #[arg(value_name = "ROUND")]
    pub round: u64,
    /// The state folder of a node that has kept the round.
    #[command(flatten)]
    pub of: StatePlace,
    /// Agreement [default: the copy in the state folder]
    #[arg(long, value_name = "FILE")]
    pub federation: Option<PathBuf>,
    /// New file for the own secret of the round, to give to the others; shows what it discloses, and asks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["with", "json"])]
    pub disclose: Option<PathBuf>,
    /// First 32 digits of the round's block, as this command prints them, to disclose without asking
    #[arg(long, value_name = "BLOCK", requires = "disclose")]
    pub consent: Option<String>,
    /// Files that authors have disclosed
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub with: Vec<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}
