//! The command line.

mod attack;
mod columns;
mod compare;
mod data;
mod federation;
mod lab;
mod solve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use node::cli::{LogOptions, TransportKind, program};
use simulations::Overrides;

pub(crate) use attack::{
    AbsenceOptions, AttackCanary, AttackCommand, AttackHow, AttackMembership, AttackOptions,
};
pub(crate) use columns::Columns;
pub(crate) use compare::{
    AdviceSource, Advise, Compare, CompareCommand, CompareOutput, MergeParts,
};
pub(crate) use data::{DataCommand, GetData, ListData, VerifyData};
pub(crate) use federation::{FederationCommand, MakeDemo, NewFederation};
pub(crate) use lab::{LabCommand, LabNetwork, LabRotation, WriteReport};
pub(crate) use node::cli::{data_folder, quoted, typed};
use rota::schema::SchemaDocument;
pub(crate) use solve::{
    LossKind, Number, Solve, SolveCoalitions, SolveDomains, SolveMerge, SolveRobustLoss,
    SolveTopology,
};

/// A federation of institutions that train models together without a server.
#[derive(Debug, Parser)]
#[command(name = "rota", version, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 success, 1 failure, 2 wrong usage or configuration.")]
pub(crate) struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: RotaCommand,
    /// How the log is written.
    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum RotaCommand {
    /// Run a whole federation in this process and report on it
    Simulate(Simulate),
    /// Compare ways of learning on the same data, over several seeds, with uncertainty
    Compare(Box<Compare>),
    /// Experiments with rotating leads: what each rotation costs and buys
    #[command(subcommand)]
    Lab(LabCommand),
    /// Find out which way of learning serves the members best on their data, and whether any does
    Advise(Advise),
    /// Measure what a curious member of a federation finds out
    #[command(subcommand)]
    Attack(AttackCommand),
    /// Look at data files and write a scenario for them, with comments
    Init(Init),
    /// List the built-in scenarios
    Scenarios,
    /// List, download and verify public data sets
    #[command(subcommand)]
    Data(DataCommand),
    /// List the built-in experiments, for `rota compare`
    Experiments,
    /// Print the JSON Schema of a TOML file, for editors that complete and check
    Schema(PrintSchema),
    /// Compute what a lead computes, on CSV files: coalitions, groups, topologies, robust losses
    #[command(subcommand)]
    Solve(Solve),
    /// List the strategies with their options, defaults and sources
    Strategies(Strategies),
    /// Put the JSON lines of a federation's nodes together: who led when, who took over, on one page
    Report(WriteReport),
    /// What an institution does with its node.
    #[command(flatten)]
    Node(node::cli::NodeCommand),
    /// Set up federations
    #[command(subcommand)]
    Federation(FederationCommand),
}

/// Options of `rota simulate`.
#[derive(Debug, Default, Args)]
pub(crate) struct Simulate {
    /// A built-in scenario or a TOML file [default: the first that `rota scenarios` lists]
    pub(crate) scenario: Option<String>,
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
    /// Program that trains the models of all silos, with its arguments, such as "python3 learner.py",
    /// or unix:SOCKET where it listens [default: the scenario's, or none]
    #[arg(long, value_name = "PROGRAM", value_parser = program)]
    pub(crate) learner: Option<learn::external::LearnerConfig>,
    /// Where Rota trains the models, as `rota devices` lists them [default: the scenario's, or cpu]
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Option<learn::DeviceName>,
    /// Network between the silos
    #[arg(long, value_enum, value_name = "MESH", default_value_t)]
    pub(crate) mesh: MeshKind,
    /// Transport for --mesh loopback: quic or tcp [default: quic]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) transport: Option<TransportKind>,
    /// Folder of the data files [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Folder for the HTML reports, of which none is overwritten [default: rota-report; none with --json]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder for what was learned in every round: models, contributions and personal parts as safetensors
    /// files, losses as tables, and index.json [default: none]
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Whether every member does every check itself, or the process does each once for all
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub(crate) check: Check,
    /// How members sign [default: simulated with --check once on --mesh virtual, otherwise ed25519]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) signatures: Option<SigningKind>,
    /// The same as --check once
    #[arg(long, hide = true, conflicts_with = "check")]
    pub(crate) memo: bool,
    /// Skip the reference models: every silo alone, and one global model
    #[arg(long)]
    pub(crate) no_references: bool,
    /// Hide the progress bar
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Options of `rota init`.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Files with one table: CSV, .csv.gz or .parquet; without --silo-column a silo for each
    #[arg(required = true, value_name = "DATA")]
    pub(crate) data: Vec<PathBuf>,
    /// Column that names each row's silo
    #[arg(long, value_name = "COLUMN")]
    pub(crate) silo_column: Option<String>,
    /// Number of pretend silos to which the rows are dealt in turn, to try a federation out with the
    /// table of one institution
    #[arg(long, value_name = "N", conflicts_with = "silo_column")]
    pub(crate) pretend_silos: Option<usize>,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "scenario.toml")]
    pub(crate) out: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// What is known of the columns.
    #[command(flatten)]
    pub(crate) columns: Columns,
}

/// Options of `rota schema`.
#[derive(Debug, Args)]
pub(crate) struct PrintSchema {
    /// The kind of file
    #[arg(value_enum, value_name = "FILE")]
    pub(crate) file: SchemaFile,
}

/// The files that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFile {
    /// A scenario, for `rota simulate`
    Scenario,
    /// An experiment, for `rota compare`
    Experiment,
    /// federation.toml, the agreement of all members
    Federation,
    /// silo.toml, the configuration of a node
    Silo,
    /// What `rota status --json` prints
    Status,
    /// What `rota status --federation --json` prints
    Nodes,
    /// A line of `rota run --json`
    Events,
}

impl SchemaFile {
    /// The document of that name.
    pub(crate) fn document(self) -> SchemaDocument {
        match self {
            Self::Scenario => SchemaDocument::Scenario,
            Self::Experiment => SchemaDocument::Experiment,
            Self::Federation => SchemaDocument::Federation,
            Self::Silo => SchemaDocument::Silo,
            Self::Status => SchemaDocument::Status,
            Self::Nodes => SchemaDocument::Nodes,
            Self::Events => SchemaDocument::Events,
        }
    }
}

/// Options of `rota strategies`.
#[derive(Debug, Args)]
pub(crate) struct Strategies {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who checks, in a federation in one process. The results and the events are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Check {
    /// The process does each check once, for all its silos: many times faster in large federations
    #[default]
    Once,
    /// Every member does every check itself, as institutions do
    EveryMember,
}

/// How members of a federation in one process sign. The results and the events are the same; the trace,
/// which is a hash over messages with their signatures, is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SigningKind {
    /// By keyed hashes of the same size, which the process can check because it knows all keys
    Simulated,
    /// By Ed25519, as institutions do
    Ed25519,
}

/// The network of a federation in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeshKind {
    /// A simulated network in virtual time: the same seed gives the same events
    #[default]
    Virtual,
    /// Real sockets on 127.0.0.1, in real time
    Loopback,
    /// No messages, leads or votes, and the same models to the bit: for studies of learning
    Direct,
    /// Direct, unless the scenario has faults, links or times of work: then virtual
    Auto,
}

impl Simulate {
    /// The changes to the scenario.
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            seed: self.seed,
            rounds: self.rounds,
            silos: self.silos,
            strategy: self.strategy.clone(),
            learner: self.learner.clone(),
            device: self.device,
        }
    }

    /// The folder of data: `--data`, or from the environment, or `./data` if that exists.
    pub(crate) fn data_folder(&self) -> Option<PathBuf> {
        data_folder(self.data.as_deref())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn refusal(args: &[&str]) -> clap::Error {
        Cli::try_parse_from(args).unwrap_err()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn wrong_usage_is_refused_with_exit_code_2() {
        for (args, kind) in [
            (
                &["rota", "simulate", "--sed", "1"][..],
                ErrorKind::UnknownArgument,
            ),
            (
                &["rota", "simulate", "--seed", "x"],
                ErrorKind::ValueValidation,
            ),
            (
                &["rota", "simulate", "--silos", "-1"],
                ErrorKind::UnknownArgument,
            ),
            (&["rota", "simulate", "a", "b"], ErrorKind::UnknownArgument),
            (
                &["rota", "simulate", "--mesh", "carrier-pigeon"],
                ErrorKind::InvalidValue,
            ),
            (&["rota", "fly"], ErrorKind::InvalidSubcommand),
            (
                &["rota"],
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
            ),
        ] {
            let error = refusal(args);
            assert_eq!((error.kind(), error.exit_code()), (kind, 2), "{args:?}");
        }
        assert_eq!(refusal(&["rota", "--help"]).exit_code(), 0);
    }

    #[test]
    fn a_folder_on_the_command_line_comes_first() {
        let simulate = Simulate {
            data: Some("here".into()),
            ..Simulate::default()
        };
        assert_eq!(simulate.data_folder(), Some("here".into()));
    }
}
