//! The command line of attacks on a federation's privacy.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The subcommands of `rota attack`.
#[derive(Debug, Subcommand)]
pub(crate) enum AttackCommand {
    /// Run a federation, and measure how often the authors of models without names can be
    /// recognised from one round to the next
    Linkage(AttackOptions),
    /// Run a federation with FedAvg, and measure what two sums would tell that differ by one
    /// institution: near the end, its update. Masked rounds open sums of the same authors only.
    /// Where the scenario has noise, measure what the noise leaves of it.
    /// With --state, look for such sums in the rounds that a node has kept
    Absence(AbsenceOptions),
    /// Train many federations on half of the rows each, and measure how well their models tell
    /// which rows they learned from; beside it the bound that the noise gives. With --config, look
    /// at the losses of a node's own model on its own rows
    Membership(AttackMembership),
    /// Put invented rows into a federation with noise, guess from its sums which of them are in,
    /// and bound its epsilon from below
    Canary(AttackCanary),
}

/// Options of `rota attack membership`.
#[derive(Debug, Args)]
pub(crate) struct AttackMembership {
    /// A built-in scenario or a TOML file
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    pub(crate) scenario: Option<String>,
    /// Configuration of a node, instead of a scenario: its model and its own rows are looked at. Needs
    /// no key and changes nothing; the node may run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "silos", "rounds", "strategy", "shadows", "targets"])]
    pub(crate) config: Option<PathBuf>,
    /// Shadow federations, from which the attack learns; at least 16
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_16)]
    pub(crate) shadows: usize,
    /// Attacked federations, at least 1
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
    /// A built-in scenario or a TOML file, with noise
    pub(crate) scenario: String,
    /// Invented rows, never more than the model has numbers [default: as many, 500 at most]
    #[arg(long, value_name = "N", value_parser = at_least_1)]
    pub(crate) canaries: Option<usize>,
    /// Runs with other coins and noise each, at least 1
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
    /// A built-in scenario or a TOML file
    #[arg(required_unless_present = "state", conflicts_with = "state")]
    pub(crate) scenario: Option<String>,
    /// State folder of a node, instead of a scenario: `state` in its silo.toml. Needs no key and
    /// changes nothing; the node may run
    #[arg(long, value_name = "DIR", conflicts_with_all = ["seed", "silos", "rounds", "strategy"])]
    pub(crate) state: Option<PathBuf>,
    /// With --state: the agreement [default: the copy in the state folder]
    #[arg(long, value_name = "FILE", requires = "state")]
    pub(crate) federation: Option<PathBuf>,
    /// Runs with other noise each, where the scenario has noise; at least 6
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(6..=10_000), conflicts_with = "state")]
    pub(crate) runs: u64,
    /// What is changed in the scenario, and how the result is printed.
    #[command(flatten)]
    pub(crate) how: AttackHow,
}

/// Options of `rota attack`.
#[derive(Debug, Args)]
pub(crate) struct AttackOptions {
    /// A built-in scenario or a TOML file
    pub(crate) scenario: String,
    /// What is changed in it, and how the result is printed.
    #[command(flatten)]
    pub(crate) how: AttackHow,
}

/// What is changed in the scenario of an attack, and how its result is printed.
#[derive(Debug, Args)]
pub(crate) struct AttackHow {
    /// Seed that everything random follows from [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of silos [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) silos: Option<usize>,
    /// Number of rounds [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u64>,
    /// Name of a strategy, as `rota strategies` lists them [default: the scenario's]
    #[arg(long, value_name = "NAME")]
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
