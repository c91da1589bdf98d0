//! Options of `rota lab`.

use std::path::PathBuf;
use std::time::Duration;

use agreement::Span;
use clap::{Args, Subcommand, ValueEnum};

/// Experiments with a federation's protocol.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Run a federation under several rotations of leads, with the same faults and seeds, in virtual
    /// time or, with --deploy, as real processes
    Rotation(Box<LabRotation>),
}

/// Options of `rota lab rotation`.
#[derive(Debug, Args)]
pub(crate) struct LabRotation {
    /// A built-in scenario or a TOML file [default: rotation, eight silos and 20 rounds]
    pub(crate) scenario: Option<String>,
    /// Rotations, separated by commas: every-round, every-K-rounds (every-k: K = 5), on-failure,
    /// reliability, fixed; the others are compared with the first
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "every-round,every-k,on-failure,reliability,fixed"
    )]
    pub(crate) policies: Vec<String>,
    /// TOML file of [[fault]] tables, as in a scenario [default: those of the scenario; if it has
    /// none, five leads stop in the middle of rounds, up to two of them for good]
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
    /// Number of seeds, from the scenario's on [default: 5; with --deploy 1]
    #[arg(long, value_name = "K")]
    pub(crate) seeds: Option<usize>,
    /// Number of silos [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) silos: Option<usize>,
    /// Number of rounds [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u64>,
    /// Virtual time after which a run is given up, such as 20m [default: twice what the first rotation
    /// takes without faults, and for every fault its pause, the patience and forty beats]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) limit: Option<Duration>,
    /// Run every silo as a process `rota run` of its own, after a simulation of the same experiment, and
    /// report both; up to 16 silos
    #[arg(long)]
    pub(crate) deploy: bool,
    /// With --deploy: how the processes reach each other on this machine [default: namespaces where that
    /// is permitted and tc can do what [network] asks for, otherwise loopback]
    #[arg(
        long,
        value_enum,
        value_name = "NETWORK",
        requires = "deploy",
        conflicts_with = "hosts"
    )]
    pub(crate) network: Option<LabNetwork>,
    /// With --deploy: file of machines to run on, a line for each: what ssh calls it, and the address at
    /// which the others reach it if that is another
    #[arg(long, value_name = "FILE", requires = "deploy")]
    pub(crate) hosts: Option<PathBuf>,
    /// With --hosts: configuration file of ssh [default: the user's]
    #[arg(long, value_name = "FILE", requires = "hosts")]
    pub(crate) ssh_config: Option<PathBuf>,
    /// With --hosts: first UDP port of the nodes; the others use the next ones
    #[arg(
        long,
        value_name = "PORT",
        requires = "hosts",
        default_value_t = 24_001
    )]
    pub(crate) base_port: u16,
    /// Folder of the data files [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Folder for results, table and page [default: rota-lab/NAME; none with --json]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Hide the progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// How processes on this machine reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LabNetwork {
    /// Over 127.0.0.1, through a proxy that delays, limits, loses and cuts
    Loopback,
    /// Each in a network namespace of its own, with links shaped by tc; needs root
    Namespaces,
}

impl LabRotation {
    /// The number of seeds, as given or by default.
    pub(crate) fn number_of_seeds(&self) -> usize {
        self.seeds.unwrap_or(if self.deploy { 1 } else { 5 })
    }
}

fn span(text: &str) -> Result<Duration, String> {
    Span::try_from(text.to_owned()).map(|span| span.0)
}

/// Options of `rota report`.
#[derive(Debug, Args)]
pub(crate) struct WriteReport {
    /// Files with what nodes printed: `rota run --json > LOG` at every institution
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// File for the HTML page
    #[arg(long, value_name = "FILE", default_value = "history.html")]
    pub(crate) out: PathBuf,
    /// Overwrite that file
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON document instead, and write no page
    #[arg(long)]
    pub(crate) json: bool,
}
