//! The command line.

mod ask;
mod attack;
mod compare;
mod data;
mod demo;
mod lab;
mod solve;

use std::path::PathBuf;

use crate::caller::Caller;
use methods::strategy::Custom;

use clap::{Args, Parser, Subcommand, ValueEnum};
use node::cli::{LogOptions, TransportKind, program};
use simulations::Overrides;

pub(crate) use ask::AskOptions;
pub(crate) use attack::{
    AbsenceOptions, AttackCanary, AttackCommand, AttackHow, AttackMembership, AttackOptions,
};
pub(crate) use compare::{
    AdviceSource, Advise, Compare, CompareCommand, CompareOutput, MergeParts,
};
pub(crate) use data::{DataCommand, GetData, ListData, VerifyData};
pub(crate) use demo::{FederationCommand, MakeDemo};
pub(crate) use lab::{LabCommand, LabNetwork, LabRotation, WriteReport};
pub(crate) use node::cli::{data_folder, typed};
use rota::schema::SchemaDocument;
pub(crate) use solve::{
    LossKind, Number, Solve, SolveCoalitions, SolveDomains, SolveMerge, SolveRobustLoss,
    SolveTopology,
};

/// Peer-to-peer federated learning with a rotating lead and verified results
#[derive(Debug, Parser)]
#[command(name = "rota", version, max_term_width = 100)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: RotaCommand,
    /// How the log is written.
    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// Below the commands: what somebody types first.
const EXAMPLES: &str = "\
Examples:
  rota simulate                                   # twenty clinics, built in
  rota compare diabetes --strategies local,fedavg # local training or a federation?
  rota federation demo demo --silos 4             # keys, agreement, four nodes
  rota check --config demo/age-1-2-sex-a --offline
  rota run --config demo/age-1-2-sex-a            # each node in its own terminal
  rota federation show demo/federation.toml       # what every member signs
  rota verify --config demo/age-1-2-sex-a         # after some rounds";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum RotaCommand {
    /// Run a whole federation in one process and report on it
    Simulate(Simulate),
    /// Compare strategies on the same data over several seeds
    Compare(Box<Compare>),
    /// Measure costs and benefits of rotating the lead
    #[command(subcommand)]
    Lab(LabCommand),
    /// Recommend a strategy, or not to federate
    Advise(Advise),
    /// Ask sites for statistics: means, survival, coefficients
    Ask(AskOptions),
    /// Measure what a curious member can infer
    #[command(subcommand)]
    Attack(AttackCommand),
    /// List built-in scenarios
    Scenarios,
    /// List, download and verify public data sets
    #[command(subcommand)]
    Data(DataCommand),
    /// List built-in experiments for compare
    Experiments,
    /// Print the JSON Schema of a file, for editors
    Schema(PrintSchema),
    /// Run the grouping algorithms on CSV files
    #[command(subcommand)]
    Solve(Solve),
    /// List strategies with options, defaults and sources
    Strategies(Strategies),
    /// Merge the logs of a federation's nodes into one page
    Report(WriteReport),
    /// What an institution does with its node.
    #[command(flatten)]
    Node(node::cli::NodeCommand),
    /// Create or join a federation, and sign or amend its agreement
    #[command(subcommand)]
    Federation(FederationCommand),
    /// What the program prints about itself.
    #[command(flatten)]
    Program(node::cli::ProgramCommand),
}

/// Options of `rota simulate`.
#[derive(Debug, Default, Args)]
pub(crate) struct Simulate {
    /// Built-in scenario or TOML file [default: the first that `rota scenarios` lists]
    pub(crate) scenario: Option<String>,
    /// Seed of all randomness [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of silos [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) silos: Option<usize>,
    /// Number of rounds [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u64>,
    /// Strategy, as `rota strategies` lists them [default: the scenario's]
    #[arg(long, value_name = "NAME")]
    pub(crate) strategy: Option<String>,
    /// External program that trains the models, with its arguments, such as "python3 learner.py", or
    /// unix:SOCKET where it listens [default: the scenario's, or none]
    #[arg(long, value_name = "PROGRAM", value_parser = program)]
    pub(crate) learner: Option<learn::external::LearnerConfig>,
    /// Training device, as `rota devices` lists them [default: the scenario's, or cpu]
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
    /// Folder for HTML reports, which are never overwritten [default: rota-report; none with --json]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// SVG file for a drawing of who led when, and of members that were down [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder for the artefacts of every round: models, contributions and personal parts as safetensors,
    /// losses as tables, and index.json [default: none]
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Checks by every member itself, or once for all by the process
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub(crate) check: Check,
    /// Signatures of members [default: simulated with --check once on --mesh virtual, otherwise ed25519]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) signatures: Option<SigningKind>,
    /// Former name of --check once
    #[arg(long = "memo", hide = true, conflicts_with = "check")]
    pub(crate) cache: bool,
    /// Skip the reference models: local ones, and one global model
    #[arg(long)]
    pub(crate) no_references: bool,
    /// What the process that runs this one has, as that of the Python package
    #[command(flatten)]
    pub(crate) caller: CallerOptions,
    /// Hide the progress bar and warnings, which the summary repeats
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What a process has that runs this one.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(crate) struct CallerOptions {
    /// Unix socket at which it listens
    #[arg(long, hide = true, value_name = "SOCKET")]
    pub(crate) caller: Option<PathBuf>,
    /// Its rules with what they need, as options of the strategy custom in JSON
    #[arg(long, hide = true, value_name = "JSON", requires = "caller", value_parser = custom)]
    pub(crate) rule: Vec<Custom>,
    /// Ask it after every round whether to go on
    #[arg(long, hide = true, requires = "caller")]
    pub(crate) watched: bool,
}

fn custom(json: &str) -> Result<Custom, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

impl CallerOptions {
    /// The process, whose rules are known from now on.
    pub(crate) fn connected(&self) -> Option<Caller> {
        let caller = Caller::at(self.caller.as_deref()?);
        caller.provide(&self.rule);
        Some(caller)
    }
}

/// Options of `rota schema`.
#[derive(Debug, Args)]
pub(crate) struct PrintSchema {
    /// Kind of file
    #[arg(value_enum, value_name = "FILE")]
    pub(crate) file: SchemaFile,
}

/// The files that have a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFile {
    /// Scenario, for `rota simulate`
    Scenario,
    /// Experiment, for `rota compare`
    Experiment,
    /// Agreement of all members, federation.toml
    Federation,
    /// Configuration of a node, node.toml
    #[value(name = "node")]
    Silo,
    /// Output of `rota status --json`
    Status,
    /// Output of `rota status --federation --json`
    Nodes,
    /// Line of `rota run --json`
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
    /// Each check once, for all silos: many times faster in large federations
    #[default]
    Once,
    /// Every check by every member itself, as institutions do
    EveryMember,
}

/// How members of a federation in one process sign. The results and the events are the same; the trace,
/// which is a hash over messages with their signatures, is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SigningKind {
    /// Keyed hashes of equal size, which the process can check because it knows all keys
    Simulated,
    /// Ed25519, as institutions do
    Ed25519,
}

/// The network of a federation in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MeshKind {
    /// Simulated network in virtual time, reproducible from the seed
    #[default]
    Virtual,
    /// Real sockets on 127.0.0.1, in real time
    Loopback,
    /// No messages, leads or votes, and bit-identical models: for studies of learning
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
    use node::cli::{GROUPS, grouped, ungrouped};
    use node::exit::Exit;

    use super::*;

    fn refusal(args: &[&str]) -> clap::Error {
        Cli::try_parse_from(args).unwrap_err()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
        grouped(Cli::command()).debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        assert_eq!(ungrouped(&Cli::command()), [""; 0]);
        let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
        for name in names.filter(|name| **name != "help") {
            assert!(Cli::command().find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_command_has_one_line_of_help_that_fits_a_terminal() {
        for command in Cli::command().get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap();
            assert!(about.len() <= 66 && !about.ends_with('.'), "{about}");
        }
    }

    #[test]
    fn the_examples_of_the_help_are_commands() {
        let lines = EXAMPLES.lines().skip(1);
        let commands = lines.map(|line| line.split(" #").next().unwrap_or_default());
        for command in commands {
            let parsed = Cli::try_parse_from(command.split_whitespace());
            assert!(parsed.is_ok(), "{command}");
        }
    }

    #[test]
    fn wrong_usage_is_wrong_input() {
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
            assert_eq!(
                (error.kind(), Exit::of(&error)),
                (kind, Exit::Input),
                "{args:?}"
            );
        }
        assert_eq!(Exit::of(&refusal(&["rota", "--help"])), Exit::Success);
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
