//! The command line of `rota blame`.

use std::path::PathBuf;

use clap::Args;

/// Options of `rota blame`.
///
/// For a masked round whose sum told nothing. Each author may disclose its secret of that round, and
/// whoever has kept the round sees from the secrets who sent something wrong. Refused for a round whose sum
/// was adopted, and where silos add noise. Reads a state folder, needs no key, and works while the node
/// runs. Without --disclose and --with it says which sums of the round told nothing, and whose they are.
#[derive(Debug, Args)]
pub struct BlameRound {
    /// The round
    #[arg(value_name = "ROUND")]
    pub round: u64,
    /// State folder of a node that has kept the round: `state` in its silo.toml
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
    /// The agreement [default: the copy in the state folder]
    #[arg(long, value_name = "FILE")]
    pub federation: Option<PathBuf>,
    /// New file for this institution's secret of the round, to give to the others. Shows what is given
    /// away, and asks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["with", "json"])]
    pub disclose: Option<PathBuf>,
    /// Disclose without asking: the first 16 digits of the round's block, as this command prints them
    #[arg(long, value_name = "BLOCK", requires = "disclose")]
    pub consent: Option<String>,
    /// Files that authors disclosed
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub with: Vec<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}
