//! The configuration of a task, as scenarios and agreements hold it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::TableTask;
use crate::data::Standardise;
use crate::external::ExternalTask;

/// A learning task. In TOML: `[task.table]`, `[task.external]`, `task = "digits8-bench"`, or
/// `[task.constant]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum TaskConfig {
    /// A model on tables of rows.
    Table(Box<TableTask>),
    /// A benchmark with given initial weights and order of rows: a 64-128-10 perceptron on the optical
    /// digits of UCI, in 20 (the default) or 100 silos, from the folder `digits8_bench` of the data.
    Digits8Bench,
    /// A model of the members' own programs, on rows that these read themselves.
    External(Box<ExternalTask>),
    /// Null training, to measure the cost of everything but learning.
    Constant {
        /// Number of values in the model.
        #[schemars(range(min = 1), extend("x-unit" = "values"))]
        parameters: usize,
    },
}

impl TaskConfig {
    /// Returns whether the silos agree on a common scale in a first round before they train.
    pub fn common_scale(&self) -> bool {
        matches!(self, Self::Table(task) if task.scaling() == Standardise::Federation)
    }

    /// Makes the paths of files of rows relative to `folder`: that of the TOML file that names them.
    pub fn resolve(&mut self, folder: &Path) {
        if let Self::Table(task) = self
            && let Some(source) = &mut task.data
        {
            source.resolve(folder);
        }
    }
}
