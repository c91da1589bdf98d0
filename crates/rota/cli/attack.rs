//! The command line of attacks on a federation's privacy.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use node::cli::StatePlace;

/// The subcommands of `rota attack`.
#[derive(Debug, Subcommand)]
pub(crate) enum AttackCommand {
    /// Link unnamed models to their authors across rounds
    ///
    /// Runs a federation, and measures how often the authors of models without names are recognised from one
    /// round to the next.
    Linkage(AttackOptions),
    /// Infer an update from two sums that differ by one author
    ///
    /// Runs a federation with FedAvg, and measures how near the difference of such sums comes to the update;
    /// secure aggregation opens sums of equal authors only, so that it never has them. With differential
    /// privacy, measures what the noise leaves of the difference. With --config or --state, looks for such
    /// sums in the rounds that a node has kept.
    Absence(AbsenceOptions),
    /// Infer which rows a model was trained on
    ///
    /// Trains many federations on half of the rows each, and measures how well their models separate rows
    /// that they were trained on from others, beside the bound of differential privacy. With --config,
    /// compares the losses of a node's local model on its own rows.
    Membership(AttackMembership),
    /// Bound epsilon from below by guessing synthetic rows from sums
    ///
    /// Adds synthetic rows to a federation with differential privacy, guesses from its sums which of them are
    /// in, and bounds its epsilon from below.
    Canary(AttackCanary),
}

/// Options of `rota attack membership`.
#[derive(Debug, Args)]
pub(crate) struct AttackMembership {
    /// Built-in scenario or TOML file
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    pub(crate) scenario: Option<String>,
    /// Node whose model and rows are attacked in place of a scenario, by its node.toml or the folder that
    /// has it; needs no key and changes nothing, and the node may run
    #[arg(long, value_name = "PATH", conflicts_with_all = ["shadows", "targets"])]
    pub(crate) config: Option<PathBuf>,
    /// Number of shadow federations, from which the attack learns; at least 16
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_16)]
    pub(crate) shadows: usize,
    /// Number of attacked federations, at least 1
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_1)]
    pub(crate) targets: usize,
    /// Also write an HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// What is changed in the scenario, and how the result is printed.
    #[command(flatten)]
    pub(crate) how: AttackHow,
}

/// Options of `rota attack canary`.
#[derive(Debug, Args)]
pub(crate) struct AttackCanary {
    /// Built-in scenario or TOML file, with differential privacy
    pub(crate) scenario: String,
    /// Number of synthetic rows, at most the number of parameters [default: as many, 500 at most]
    #[arg(long, value_name = "N", value_parser = at_least_1)]
    pub(crate) canaries: Option<usize>,
    /// Number of runs, each with other coins and noise, at least 1
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) runs: u64,
    /// Also write an HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// What is changed in the scenario, and how the result is printed.
    #[command(flatten)]
    pub(crate) how: AttackHow,
}

fn at_least_1(text: &str) -> Result<usize, String> {
    at_least(1, text)
}

fn at_least_16(text: &str) -> Result<usize, String> {
    at_least(16, text)
}

fn at_least(least: usize, text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("expected a whole number of at least {least}"))
}

/// Options of `rota attack absence`.
#[derive(Debug, Args)]
pub(crate) struct AbsenceOptions {
    /// Built-in scenario or TOML file [default: none, the rounds of a node]
    #[arg(conflicts_with_all = ["config", "state", "federation"])]
    pub(crate) scenario: Option<String>,
    /// The state folder of a node, which is read without a key and may be in use.
    #[command(flatten)]
    pub(crate) of: StatePlace,
    /// Agreement of the node [default: the copy in the state folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) federation: Option<PathBuf>,
    /// Number of runs, each with other noise, of a scenario with differential privacy; at least 6
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(6..=10_000), requires = "scenario")]
    pub(crate) runs: u64,
    /// What is changed in the scenario, and how the result is printed.
    #[command(flatten)]
    pub(crate) how: AttackHow,
}

/// Options of `rota attack`.
#[derive(Debug, Args)]
pub(crate) struct AttackOptions {
    /// Built-in scenario or TOML file
    pub(crate) scenario: String,
    /// What is changed in it, and how the result is printed.
    #[command(flatten)]
    pub(crate) how: AttackHow,
}

/// What is changed in the scenario of an attack, and how its result is printed.
#[derive(Debug, Args)]
pub(crate) struct AttackHow {
    /// Seed of all randomness [default: the scenario's]
    #[arg(long, value_name = "N", requires = "scenario")]
    pub(crate) seed: Option<u64>,
    /// Number of silos [default: the scenario's]
    #[arg(long, value_name = "N", requires = "scenario")]
    pub(crate) silos: Option<usize>,
    /// Number of rounds [default: the scenario's]
    #[arg(long, value_name = "N", requires = "scenario")]
    pub(crate) rounds: Option<u64>,
    /// Strategy, as `rota strategies` lists them [default: the scenario's]
    #[arg(long, value_name = "NAME", requires = "scenario")]
    pub(crate) strategy: Option<String>,
    /// Folder of the data files [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Hide the progress bar
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
