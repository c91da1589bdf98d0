//! The command line of public data.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The subcommands of `rota data`.
#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// List public data sets with their sources and licences
    List(ListData),
    /// Download public data sets into the data folder
    Get(GetData),
    /// Verify sizes and checksums of the files in the data folder
    Verify(VerifyData),
}

/// Options of `rota data list`.
#[derive(Debug, Args)]
pub(crate) struct ListData {
    /// Names of data sets [default: all]
    pub(crate) names: Vec<String>,
    /// Catalogue in place of the built-in one, such as one of a mirror
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Print one JSON document instead of text, with every file
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of `rota data get`.
#[derive(Debug, Args)]
pub(crate) struct GetData {
    /// Names of data sets, as `rota data list` prints them
    #[arg(required = true)]
    pub(crate) names: Vec<String>,
    /// Folder of the data files [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Catalogue in place of the built-in one, such as one of a mirror
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Replace files with other sizes or checksums
    #[arg(long)]
    pub(crate) force: bool,
}

/// Options of `rota data verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyData {
    /// Names of data sets [default: all that have a folder]
    pub(crate) names: Vec<String>,
    /// Folder of the data files [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Catalogue in place of the built-in one
    #[arg(long, value_name = "FILE")]
    pub(crate) catalogue: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
