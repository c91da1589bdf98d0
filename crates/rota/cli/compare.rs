//! Options of `rota compare`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lab::compare::{Choices, Shard};

use node::cli::{NodePlace, program};

use super::CallerOptions;

/// Options of `rota compare`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Compare {
    /// What else to do.
    #[command(subcommand)]
    pub(crate) merge: Option<CompareCommand>,
    /// Built-in experiment, or TOML file of an experiment or a scenario
    #[arg(required = true)]
    pub(crate) experiment: Option<String>,
    /// Strategies by name or label, separated by commas; a label may hold commas itself [default: all of
    /// the experiment]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) strategies: Vec<String>,
    /// Number of seeds [default: the experiment's, or 5 for a scenario]
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<usize>,
    /// Values of epsilon, separated by commas, at which a differentially private federation is compared with
    /// local training and a federation without noise
    #[arg(long, value_name = "E", value_delimiter = ',')]
    pub(crate) epsilon: Vec<f64>,
    /// Run the experiment's reduced form, to try it out
    #[arg(long)]
    pub(crate) quick: bool,
    /// How often the search goes on where the best round is the last (with twice the rounds) or a chosen setting
    /// is at the edge of its grid (with the next value) [default: as the file says, or 2; 0 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) widen: Option<usize>,
    /// Take settings and the last round as they are, instead of choosing them on validation rows
    #[arg(long)]
    pub(crate) untuned: bool,
    /// Resume from the results in the folder
    #[arg(long)]
    pub(crate) resume: bool,
    /// Part of the runs, such as 2/8, whose results are merged later
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// External program that trains the models, with its arguments, such as "python3 learner.py", or
    /// unix:SOCKET where it listens [default: the scenario's, or none]
    #[arg(long, value_name = "PROGRAM", value_parser = program)]
    pub(crate) learner: Option<learn::external::LearnerConfig>,
    /// Number of parallel runs; results do not depend on it [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Folder of the data files [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// New folder for the artefacts of every round of every run, as of `rota simulate --keep` [default: none]
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: AdviceSource,
    /// What the process that runs this one has, as that of the Python package
    #[command(flatten)]
    pub(crate) caller: CallerOptions,
    #[command(flatten)]
    pub(crate) output: CompareOutput,
}

/// Whose rows are read, where `--epsilon` is given.
#[derive(Debug, Args)]
pub(crate) struct AdviceSource {
    /// The node whose ledger, if it is there, makes --epsilon refuse rows of files.
    #[command(flatten)]
    pub(crate) node: NodePlace,
    /// With --epsilon: declare the rows of all files public, so that no privacy budget ledger counts them
    #[arg(long)]
    pub(crate) public_rows: bool,
}

/// Subcommands of `rota compare`.
#[derive(Debug, Subcommand)]
pub(crate) enum CompareCommand {
    /// Merge the results of parts and report on them
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
    /// Built-in scenario or TOML file
    pub(crate) scenario: String,
    /// Epsilon of a differentially private federation, to state whether it is worth joining
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: Option<f64>,
    #[command(flatten)]
    pub(crate) source: AdviceSource,
    /// Time limit of the comparison, in minutes; more time means more seeds and settings
    #[arg(long, value_name = "M", default_value_t = 5.0, value_parser = minutes, allow_negative_numbers = true)]
    pub(crate) minutes: f64,
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

/// Minutes, more than none, and not more than a year has.
fn minutes(text: &str) -> Result<f64, &'static str> {
    let minutes = text.parse().ok();
    let minutes = minutes.filter(|minutes| *minutes > 0.0 && *minutes <= 525_600.0);
    minutes.ok_or("expected a number of minutes, more than 0")
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
    /// Hide the progress bar
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
            widen: self.widen,
            learner: self.learner.clone(),
            epsilons: self.epsilon.clone(),
            untuned: self.untuned,
            custom: self.caller.rule.clone(),
        }
    }
}
