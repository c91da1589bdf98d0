//! Choices of the command line that change an experiment.

use learn::external::LearnerConfig;
use methods::strategy::Custom;
use serde::{Deserialize, Serialize};

/// Changes from the command line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Choices {
    /// Names or labels of strategies; empty: all of the experiment.
    pub strategies: Vec<String>,
    /// Number of seeds.
    pub seeds: Option<usize>,
    /// True if the experiment's reduced form is run.
    pub quick: bool,
    /// The program that trains the models of all silos, instead of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learner: Option<LearnerConfig>,
    /// Number of times that the search of settings and rounds goes beyond its end; `None`: that of the
    /// experiment, and 0 in its reduced form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widen: Option<usize>,
    /// The ε at which the federation with noise is measured beside each silo alone; empty: without noise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epsilons: Vec<f64>,
    /// True if settings and rounds are taken as they are, instead of being chosen on validation rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untuned: bool,
    /// Strategies of rules of one's own, each labelled by its rule, beside those of the experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<Custom>,
}
