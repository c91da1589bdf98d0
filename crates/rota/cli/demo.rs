//! The command line that makes a federation to try out.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use node::cli::TransportKind;
use simulations::Overrides;

/// The subcommands of `rota federation`.
#[derive(Debug, Subcommand)]
pub(crate) enum FederationCommand {
    /// What members do with an agreement.
    #[command(flatten)]
    Member(node::cli::NodeFederationCommand),
    /// Write keys, agreement and configurations of a demo federation on this machine
    Demo(MakeDemo),
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
