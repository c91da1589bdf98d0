//! The command line of one institution's node.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use rota::agreement::Span;
use rota::simulations::Overrides;

use super::TransportKind;

/// Options of `rota run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The node's configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Print one JSON document per line in place of the text
    #[arg(long)]
    pub(crate) json: bool,
    /// End when every member holds the last round, in place of serving others until a signal
    #[arg(long)]
    pub(crate) until_done: bool,
    /// With --until-done: how long a member that is away is waited for then [default: 30s or 20
    /// beats, whichever is longer]
    #[arg(long, value_name = "SPAN", requires = "until_done", value_parser = span)]
    pub(crate) grace: Option<Duration>,
    /// The journal was lost or is damaged: keep what is there under another name, begin a new one,
    /// and listen until it is safe to vote again. Later starts need not say so again
    #[arg(long)]
    pub(crate) journal_lost: bool,
}

/// Options of `rota chain`.
///
/// Needs no key and changes nothing; the node may run. Every block is shown with its round, or as
/// empty, its view and lead, its hash and its parent's, the outcome, and who was in and who was not.
/// With --json two nodes of one federation print the same, as far as both have come.
#[derive(Debug, Args)]
pub(crate) struct Chain {
    /// The folder in which the node keeps its state: `state` in its silo.toml
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// The agreement, for names and for checking the votes [default: the one that the node left in
    /// the folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) federation: Option<PathBuf>,
    /// Print one JSON document in place of the text
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `rota identity` does.
#[derive(Debug, Subcommand)]
pub(crate) enum Identity {
    /// Draw a new key and print what it is known by
    New {
        /// Where to write it; must not exist
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Print the public key of a key file
    Show {
        /// The key file
        file: PathBuf,
    },
}

/// What `rota federation` does.
#[derive(Debug, Subcommand)]
pub(crate) enum Federation {
    /// Write keys, agreement and configurations of a federation on this machine, for trying out
    Demo(Demo),
}

/// Options of `rota federation demo`.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// An empty folder, or a new one
    pub(crate) folder: PathBuf,
    /// Number of silos
    #[arg(long, value_name = "N")]
    pub(crate) silos: Option<usize>,
    /// A built-in scenario or a TOML file [default: the first that `rota scenarios` lists]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) scenario: Option<String>,
    /// Draw everything random from this number, the keys too
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of rounds
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u64>,
    /// How the silos reach each other
    #[arg(long, value_enum, default_value_t = TransportKind::Quic)]
    pub(crate) transport: TransportKind,
    /// The first silo's port, the others have the next ones [default: free ports]
    #[arg(long, value_name = "P")]
    pub(crate) base_port: Option<u16>,
    /// Folder of the data that are not built in [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

impl Demo {
    /// What it changes in the scenario.
    pub(crate) fn overrides(&self) -> Overrides {
        Overrides {
            seed: self.seed,
            rounds: self.rounds,
            silos: self.silos,
            strategy: None,
        }
    }
}

fn span(text: &str) -> Result<Duration, String> {
    Span::try_from(text.to_owned()).map(|span| span.0)
}
