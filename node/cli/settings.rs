//! The command line of schemas that are settled by questions.

use std::path::PathBuf;

use clap::Args;

/// Options of `rota federation questions`.
#[derive(Debug, Args)]
pub struct WriteQuestions {
    /// Scenario or agreement with a schema, such as `rota init` and `rota federation new` write
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Rows of all institutions together, roughly: outer quantiles have at least ten of them beyond [default: what
    /// the members of an agreement declare, else 1000]
    #[arg(long, value_name = "N")]
    pub rows: Option<u64>,
    /// Folder for the questions
    #[arg(long, value_name = "DIR", default_value = "questions")]
    pub out: PathBuf,
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
}

/// Options of `rota federation settings`.
#[derive(Debug, Args)]
pub struct ProposeSettings {
    /// Scenario or agreement with the schema that was asked about
    #[arg(value_name = "FILE.toml")]
    pub file: PathBuf,
    /// Answers: what `rota federation answers --json` or `rota ask --json` prints
    #[arg(value_name = "ANSWER.json", required = true)]
    pub answers: Vec<PathBuf>,
    /// How far ranges reach beyond the outer quantiles, in the distance of these from the median
    #[arg(long, value_name = "F", default_value = "1")]
    pub margin: f64,
    /// Scenario to write, with the settled schema and everything else as in FILE [default: none, the schema is
    /// printed]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
}
