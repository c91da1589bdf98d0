//! The command line that makes new federations.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use node::cli::{TransportKind, member};
use protocol::PublicKey;
use simulations::Overrides;
use task::schema::MissingRule;

use super::Columns;

/// The subcommands of `rota federation`.
#[derive(Debug, Subcommand)]
pub(crate) enum FederationCommand {
    /// Write the agreement of a new federation
    ///
    /// The task comes from a scenario with a schema, or from the columns of a table; options replace parts of
    /// it, and a terminal asks for what is missing. Nobody's rows become part of the agreement. Members may be
    /// added later, with `rota federation add`.
    New(Box<NewFederation>),
    /// What members do with an agreement.
    #[command(flatten)]
    Member(node::cli::NodeFederationCommand),
    /// Write keys, agreement and configurations of a demo federation on this machine
    Demo(MakeDemo),
}

/// Options of `rota federation new`.
#[derive(Debug, Args)]
pub(crate) struct NewFederation {
    /// Scenario with a schema, such as `rota init` drafts; parts may be missing
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<String>,
    /// Table of one institution for the columns of the schema: CSV, .csv.gz, .xlsx, .ods or .parquet; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    pub(crate) table: Vec<PathBuf>,
    /// With --table: rule for missing values in columns that have none in the table [default: refuse]
    #[arg(long, value_enum, value_name = "RULE", conflicts_with = "scenario")]
    pub(crate) missing: Option<MissingKind>,
    /// Model: logistic, linear, mlp, or a value of `model` in TOML [default: the scenario's]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Strategy, as `rota strategies` lists them [default: the scenario's]
    #[arg(long, value_name = "NAME")]
    pub(crate) strategy: Option<String>,
    /// Rotation of the lead: every-round, every-K-rounds, on-failure, reliability or fixed [default: the
    /// scenario's]
    #[arg(long, value_name = "NAME")]
    pub(crate) rotation: Option<protocol::charter::Rotation>,
    /// Members that recompute every result before it counts: full (all), committee-C (C drawn members) or
    /// inclusion (none) [default: the scenario's]
    #[arg(long, value_name = "NAME")]
    pub(crate) verification: Option<protocol::charter::Verification>,
    /// Use secure aggregation: nobody sees one member's model, only the sum over all members is opened
    ///
    /// One member can stop a federation of one group: no sum is opened while it is away, and one that sends wrong
    /// numbers spoils every sum, unnamed. Several groups (--groups) go on without a group that is stopped, and noise
    /// (mode = "masked+noised" in [privacy]) lets rounds go on without a member that is away.
    #[arg(long)]
    pub(crate) masked: bool,
    /// File of aggregation groups for secure aggregation, with a table [[group]] for each, of names and
    /// weights
    #[arg(long, value_name = "FILE")]
    pub(crate) groups: Option<PathBuf>,
    /// Number of rounds [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u64>,
    /// Seed of the initial model [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Member, by name and public key as `rota identity new` prints it; repeat for each
    #[arg(long = "member", value_name = "NAME=KEY", value_parser = member)]
    pub(crate) members: Vec<(String, PublicKey)>,
    /// Name of the federation [default: the scenario's]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "federation.toml")]
    pub(crate) out: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// With --table: what is known of the columns.
    #[command(flatten)]
    pub(crate) columns: Columns,
}

/// What becomes of a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MissingKind {
    /// Refuse the file
    Refuse,
    /// Leave out the row
    Drop,
    /// Impute the mean of the institution's training rows
    Mean,
    /// Impute their median
    Median,
    /// Impute the mean, and add a column that marks missing values
    Indicator,
}

impl MissingKind {
    /// The rule of a schema.
    pub(crate) fn rule(self) -> MissingRule {
        match self {
            Self::Refuse => MissingRule::Refuse,
            Self::Drop => MissingRule::Drop,
            Self::Mean => MissingRule::Mean,
            Self::Median => MissingRule::Median,
            Self::Indicator => MissingRule::Indicator,
        }
    }
}

/// Options of `rota federation demo`.
#[derive(Debug, Args)]
pub(crate) struct MakeDemo {
    /// Empty or new folder
    pub(crate) folder: PathBuf,
    /// Number of silos [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) silos: Option<usize>,
    /// Built-in scenario or TOML file [default: the first that `rota scenarios` lists]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) scenario: Option<String>,
    /// Seed of all randomness, the keys too [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of rounds [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u64>,
    /// Transport between the silos
    #[arg(long, value_enum, default_value_t = TransportKind::Quic)]
    pub(crate) transport: TransportKind,
    /// Port of the first silo, followed by those of the others [default: free ports]
    #[arg(long, value_name = "P")]
    pub(crate) base_port: Option<u16>,
    /// Folder of the data files [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

impl MakeDemo {
    /// The changes to the scenario.
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            seed: self.seed,
            rounds: self.rounds,
            silos: self.silos,
            ..Overrides::default()
        }
    }
}
