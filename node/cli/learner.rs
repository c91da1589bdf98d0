//! The command line of learners in other programs.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use learn::external::LearnerConfig;

/// Subcommands of `rota learner`.
#[derive(Debug, Subcommand)]
pub enum LearnerCommand {
    /// Start a program that speaks the learner protocol, and print its model
    ///
    /// Prints a table [task.external] for a scenario or an agreement; or, if the program has another model
    /// than it should, which.
    Describe(DescribeLearner),
}

/// Options of `rota learner describe`.
#[derive(Debug, Args)]
pub struct DescribeLearner {
    /// Name of the silo that the program is asked about
    #[arg(long, value_name = "NAME", default_value = "silo 1")]
    pub silo: String,
    /// Program and its arguments, after `--`; or unix:SOCKET where it listens
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
}

impl DescribeLearner {
    /// The program as configuration.
    pub fn config(&self) -> LearnerConfig {
        match self.program.as_slice() {
            [one] => one
                .strip_prefix("unix:")
                .map_or_else(|| LearnerConfig::command(vec![one.clone()]), socket),
            several => LearnerConfig::command(several.to_vec()),
        }
    }
}

/// A program as one word: `unix:SOCKET`, or words with spaces between them.
///
/// # Errors
/// A sentence: what is expected.
pub fn program(text: &str) -> Result<LearnerConfig, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Ok(socket(path));
    }
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() {
        Err("expected a program, such as \"python3 learner.py\"".into())
    } else {
        Ok(LearnerConfig::command(words))
    }
}

fn socket(path: &str) -> LearnerConfig {
    LearnerConfig::socket(PathBuf::from(path))
}
