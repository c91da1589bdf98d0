//! The command line of backups.

use std::path::PathBuf;

use clap::Args;

use super::NodePlace;

/// Options of `rota backup`.
#[derive(Debug, Args)]
pub struct Backup {
    /// File to write; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
}

/// Options of `rota restore`.
#[derive(Debug, Args)]
pub struct Restore {
    /// Backup to restore
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Folder of the node: for node.toml, to which its paths are relative
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// Also write what node.toml places outside of that folder, such as a state folder in /var
    #[arg(long)]
    pub outside: bool,
    /// Take a backup without a signature, as earlier versions made them
    #[arg(long)]
    pub unsigned: bool,
}
