//! The command line that drafts: scenarios and new federations.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use protocol::PublicKey;
use task::schema::MissingRule;

use super::Columns;
use super::members::member;

/// Options of `rota init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Files with one table: CSV, .csv.gz, .xlsx, .ods or .parquet; without --silo-column a silo for each
    #[arg(required = true, value_name = "DATA")]
    pub data: Vec<PathBuf>,
    /// Column that names each row's silo
    #[arg(long, value_name = "COLUMN")]
    pub silo_column: Option<String>,
    /// Number of synthetic silos to which the rows are dealt in turn, to try a federation with the table of
    /// one institution
    #[arg(long, value_name = "N", conflicts_with = "silo_column")]
    pub pretend_silos: Option<usize>,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "scenario.toml")]
    pub out: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
    /// Options about columns.
    #[command(flatten)]
    pub columns: Columns,
}

/// Options of `rota federation new`.
#[derive(Debug, Args)]
pub struct NewFederation {
    /// Scenario with a schema, such as `rota init` drafts; parts may be missing
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<String>,
    /// Table of one institution for the columns of the schema: CSV, .csv.gz, .xlsx, .ods or .parquet; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "scenario")]
    pub table: Vec<PathBuf>,
    /// With --table: rule for missing values in columns that have none in the table [default: refuse]
    #[arg(long, value_enum, value_name = "RULE", conflicts_with = "scenario")]
    pub missing: Option<MissingKind>,
    /// Model: logistic, linear, mlp, or a value of `model` in TOML [default: the scenario's]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Strategy, as `rota strategies` lists them [default: the scenario's]
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<String>,
    /// Rotation of the lead: every-round, every-K-rounds, on-failure, reliability or fixed [default: the
    /// scenario's]
    #[arg(long, value_name = "NAME")]
    pub rotation: Option<protocol::charter::Rotation>,
    /// Members that recompute every result before it counts: full (all), committee-C (C drawn members) or
    /// inclusion (none) [default: the scenario's]
    #[arg(long, value_name = "NAME")]
    pub verification: Option<protocol::charter::Verification>,
    /// Use secure aggregation: nobody sees one member's model, only the sum over all members is opened
    ///
    /// One member can stop a federation of one group: no sum is opened while it is away, and one that sends wrong
    /// numbers spoils every sum, unnamed. Several groups (--groups) go on without a group that is stopped, and noise
    /// (mode = "masked+noised" in [privacy]) lets rounds go on without a member that is away.
    #[arg(long)]
    pub masked: bool,
    /// File of aggregation groups for secure aggregation, with a table [[group]] for each, of names and
    /// weights
    #[arg(long, value_name = "FILE")]
    pub groups: Option<PathBuf>,
    /// Number of rounds [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub rounds: Option<u64>,
    /// Seed of the initial model [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Member, by name, public key as `rota identity new` prints it, and the most training rows that its models may
    /// claim, which nobody signs without where models are averaged by rows; repeat for each
    #[arg(long = "member", value_name = "NAME=KEY[=ROWS]", value_parser = member)]
    pub members: Vec<(String, PublicKey, Option<u64>)>,
    /// Name of the federation [default: the scenario's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "federation.toml")]
    pub out: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
    /// With --table: what is known of the columns.
    #[command(flatten)]
    pub columns: Columns,
}

/// What becomes of a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MissingKind {
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
    pub fn rule(self) -> MissingRule {
        match self {
            Self::Refuse => MissingRule::Refuse,
            Self::Drop => MissingRule::Drop,
            Self::Mean => MissingRule::Mean,
            Self::Median => MissingRule::Median,
            Self::Indicator => MissingRule::Indicator,
        }
    }
}
