//! Options of `rota lab`.

use std::path::PathBuf;
use std::time::Duration;

use agreement::Span;
use clap::{Args, Subcommand, ValueEnum};

/// Experiments with a federation's protocol.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Compare rotations of the lead under equal faults and seeds
    ///
    /// Runs a federation under each rotation in virtual time or, with --deploy, as real processes.
    Rotation(Box<LabRotation>),
}

/// Options of `rota lab rotation`.
#[derive(Debug, Args)]
pub(crate) struct LabRotation {
    /// Built-in scenario or TOML file [default: rotation, with eight silos and 20 rounds]
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
    /// TOML file of [[fault]] tables, as in a scenario [default: those of the scenario, or five leads that
    /// stop in the middle of rounds, up to two of them for good]
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
    /// Number of seeds, counted up from the scenario's [default: 5; with --deploy 1]
    #[arg(long, value_name = "K")]
    pub(crate) seeds: Option<usize>,
    /// Number of silos [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) silos: Option<usize>,
    /// Number of rounds [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u64>,
    /// Virtual time after which a run is aborted, such as 20m [default: twice that of the first rotation
    /// without faults, and for every fault its pause, the straggler timeout and forty heartbeats]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    pub(crate) limit: Option<Duration>,
    /// Also run every silo as a process of its own, after the simulation, and report both; up to 16 silos
    #[arg(long)]
    pub(crate) deploy: bool,
    /// With --deploy: network of the processes on this machine [default: namespaces where they are
    /// permitted and tc supports [network] of the scenario, otherwise loopback]
    #[arg(
        long,
        value_enum,
        value_name = "NETWORK",
        requires = "deploy",
        conflicts_with = "hosts"
    )]
    pub(crate) network: Option<LabNetwork>,
    /// With --deploy: file of machines to run on, a line for each: its name for ssh, and the address at
    /// which others reach it if that differs
    #[arg(long, value_name = "FILE", requires = "deploy")]
    pub(crate) hosts: Option<PathBuf>,
    /// With --hosts: configuration file of ssh [default: the user's]
    #[arg(long, value_name = "FILE", requires = "hosts")]
    pub(crate) ssh_config: Option<PathBuf>,
    /// With --hosts: UDP port of the first node, followed by those of the others
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
    /// Hide the progress bar
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
    /// Output of nodes, from `rota run --json > LOG` of every member
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// HTML page to write
    #[arg(long, value_name = "FILE", default_value = "history.html")]
    pub(crate) out: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON document, and write no page
    #[arg(long)]
    pub(crate) json: bool,
}
