//! The command line of questions.

use std::path::PathBuf;

use clap::Args;

use super::data_folder;

/// Options of `rota ask`.
#[derive(Debug, Args)]
pub(crate) struct AskOptions {
    /// TOML file of the question and of the sites that play it, such as examples/questions/survival.toml
    pub(crate) question: PathBuf,
    /// Print what each site computes and what is opened, and read no rows
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print one JSON document instead of text
    #[arg(long, conflicts_with_all = ["csv", "explain"])]
    pub(crate) json: bool,
    /// Print the tables of the answer as CSV, with an empty line between them
    #[arg(long, conflicts_with = "explain")]
    pub(crate) csv: bool,
    /// File for an HTML page of the answer, which is not overwritten [default: none]
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    pub(crate) html: Option<PathBuf>,
    /// File for the trees of a question of kind "trees", which is not overwritten: FILE.onnx, or FILE.json as a model
    /// of XGBoost [default: none]
    #[arg(long, value_name = "FILE", conflicts_with = "explain")]
    pub(crate) export: Option<PathBuf>,
    /// File that keeps what the sites have answered, so that later questions are checked against it [default: none]
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Folder of the data files of scenarios [default: $ROTA_DATA, or ./data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

impl AskOptions {
    /// The folder of data: `--data`, or from the environment, or `./data` if that exists.
    pub(crate) fn data_folder(&self) -> Option<PathBuf> {
        data_folder(self.data.as_deref())
    }
}
