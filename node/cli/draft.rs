//! The command line that drafts: scenarios and new federations.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use protocol::PublicKey;
use task::schema::MissingRule;

use super::Columns;
use super::members::member;
use crate::draft::Protection;

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
    #[arg(long = "split-into", value_name = "N", conflicts_with = "silo_column")]
    pub pretend_silos: Option<usize>,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "scenario.toml")]
    pub out: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
    /// What members may read of each other's updates.
    #[command(flatten)]
    pub protection: ProtectionOptions,
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
    pub rotation: Option<protocol::parameters::Rotation>,
    /// Members that recompute every result before it counts: full (all), committee-C (C drawn members) or
    /// inclusion (none) [default: the scenario's]
    #[arg(long, value_name = "NAME")]
    pub verification: Option<protocol::parameters::Verification>,
    /// File of aggregation groups for secure aggregation, with a table [[group]] for each, of names and
    /// weights
    #[arg(long, value_name = "FILE", conflicts_with_all = ["epsilon", "clear"])]
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
    /// What members may read of each other's updates.
    #[command(flatten)]
    pub protection: ProtectionOptions,
    /// With --table: what is known of the columns.
    #[command(flatten)]
    pub columns: Columns,
}

/// What members may read of each other's updates.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Privacy")]
pub struct ProtectionOptions {
    /// Use secure aggregation: nobody sees one member's model, only the sum over all members is opened
    ///
    /// One member can stop a federation of one group: no sum is opened while it is away, and one that sends wrong
    /// numbers corrupts every sum, unnamed. Several groups (--groups) go on without a group that is stopped, and noise
    /// (--epsilon) lets rounds go on without a member that is away.
    #[arg(long = "secure-aggregation")]
    pub masked: bool,
    /// Add noise to the sums: bound for what all rounds together tell of one row, or of one person where a column
    /// says whose a row is; smaller is stricter
    ///
    /// Writes what noise needs: equal weights, one step a round, agreed ranges, a keyed split, clipping norm and
    /// delta. What somebody has to choose is listed at once.
    #[arg(long, value_name = "E", value_parser = crate::draft::epsilon)]
    pub epsilon: Option<f64>,
    /// Let every member read every model, without being asked
    #[arg(long, conflicts_with_all = ["masked", "epsilon"])]
    pub clear: bool,
}

impl ProtectionOptions {
    /// What they ask for, if anything.
    pub(crate) fn wanted(&self) -> Option<Protection> {
        match (self.epsilon, self.masked, self.clear) {
            (Some(epsilon), _, _) => Some(Protection::Noised(epsilon)),
            (None, true, _) => Some(Protection::masked()),
            (None, false, true) => Some(Protection::Clear),
            (None, false, false) => None,
        }
    }
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
    /// Impute the middle of the agreed range, which looks at no row
    Middle,
    /// Impute the middle, and add a column that marks missing values
    MiddleIndicator,
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
            Self::Middle => MissingRule::Middle,
            Self::MiddleIndicator => MissingRule::MiddleIndicator,
        }
    }
}
