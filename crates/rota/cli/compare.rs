//! Options of `rota compare`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lab::compare::{Choices, Shard};

use node::cli::program;

/// Options of `rota compare`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Compare {
    /// What else to do
    #[command(subcommand)]
    pub(crate) merge: Option<CompareCommand>,
    /// A built-in experiment, or a TOML file of an experiment or a scenario
    #[arg(required = true)]
    pub(crate) experiment: Option<String>,
    /// Names or labels of strategies, separated by commas; a label may hold commas itself
    /// [default: all of the experiment]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) strategies: Vec<String>,
    /// Number of seeds [default: the experiment's, or 5 for a scenario]
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<usize>,
    /// Measure the federation with noise at these epsilon, separated by commas, beside each silo alone and
    /// the federation without noise
    #[arg(long, value_name = "E", value_delimiter = ',')]
    pub(crate) epsilon: Vec<f64>,
    /// Run the experiment's reduced form, to try it out
    #[arg(long)]
    pub(crate) quick: bool,
    /// Continue the results in the folder
    #[arg(long)]
    pub(crate) resume: bool,
    /// Run one part of several, such as 2/8, whose results are merged later
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Program that trains the models of all silos, with its arguments, such as "python3 learner.py",
    /// or unix:SOCKET where it listens [default: the scenario's, or none]
    #[arg(long, value_name = "PROGRAM", value_parser = program)]
    pub(crate) learner: Option<learn::external::LearnerConfig>,
    /// Runs at a time; results do not depend on it [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Folder of the data files [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// New folder for what every run learned in every round, as of `rota simulate --keep` [default: none]
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: AdviceSource,
    #[command(flatten)]
    pub(crate) output: CompareOutput,
}

/// Whose rows are looked at, where `--epsilon` is given.
#[derive(Debug, Args)]
pub(crate) struct AdviceSource {
    /// The node's configuration; if the ledger that it names is there, rows of files are refused with --epsilon
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub(crate) config: PathBuf,
    /// The rows of all files are public, so that looking at them tells nothing of a ledger's source
    #[arg(long)]
    pub(crate) public_rows: bool,
}

/// Subcommands of `rota compare`.
#[derive(Debug, Subcommand)]
pub(crate) enum CompareCommand {
    /// Put the results of parts together and report on them
    Merge(MergeParts),
}

/// Options of `rota compare merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeParts {
    /// Folders of the parts
    #[arg(required = true, value_name = "DIR")]
    pub(crate) parts: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: CompareOutput,
}

/// Options of `rota advise`.
#[derive(Debug, Args)]
pub(crate) struct Advise {
    /// A built-in scenario or a TOML file
    pub(crate) scenario: String,
    /// Say whether a federation with noise of this epsilon is worth joining
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: Option<f64>,
    #[command(flatten)]
    pub(crate) source: AdviceSource,
    /// Time for the comparison, in minutes, after which it ends with what is there; more time means more seeds and settings
    #[arg(long, value_name = "M", default_value_t = 5.0)]
    pub(crate) minutes: f64,
    /// Folder of the data files [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Hide the progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Where results go.
#[derive(Debug, Args)]
pub(crate) struct CompareOutput {
    /// Folder for results, tables and page [default: rota-compare/NAME; none with --json]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Hide the progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl Compare {
    /// The changes to the experiment.
    pub(crate) fn choices(&self) -> Choices {
        Choices {
            strategies: self.strategies.clone(),
            seeds: self.seeds,
            quick: self.quick,
            learner: self.learner.clone(),
            epsilons: self.epsilon.clone(),
        }
    }
}
