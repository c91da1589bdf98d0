//! The command line of backups.

use std::path::PathBuf;

use clap::Args;

/// Options of `rota backup`.
///
/// The file is for its owner alone, because the institution's secret key is in it: whoever has the file can
/// sign in the institution's name. The node may run meanwhile. What it has signed is not in the backup, nor
/// its rows, nor the program of `learner`.
#[derive(Debug, Args)]
pub struct Backup {
    /// File to write; it must not exist
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
}

/// Options of `rota restore`.
///
/// Everything is put where the silo.toml in the backup says, and nothing is overwritten. A state folder that a
/// node has used is refused, because what it has signed since the backup would be forgotten. The journal
/// begins as one that was lost: the node only listens until none of its earlier votes counts any more.
#[derive(Debug, Args)]
pub struct Restore {
    /// Backup to put back
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Folder of silo.toml, to which its paths are relative
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub folder: PathBuf,
}
