//! What the command line changes in an experiment.

use learn::external::LearnerConfig;
use methods::strategy::Custom;
use serde::{Deserialize, Serialize};
use toml::Table;

use super::experiment::ExperimentEntry;

/// Changes from the command line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Choices {
    /// Names or labels of strategies; empty: all of the experiment.
    pub strategies: Vec<String>,
    /// Number of seeds.
    pub seeds: Option<usize>,
    /// Whether the experiment's reduced form is run.
    pub quick: bool,
    /// The program that trains the models of all silos, instead of the scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learner: Option<LearnerConfig>,
    /// How often the search of settings and rounds goes beyond its end; `None`: as the experiment says, and not
    /// at all in its reduced form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widen: Option<usize>,
    /// The ε at which the federation with noise is measured beside each silo alone; empty: without noise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub epsilons: Vec<f64>,
    /// Whether settings and rounds are taken as they are, instead of being chosen on validation rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untuned: bool,
    /// Strategies of rules of one's own, each labelled by its rule, beside those of the experiment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<Custom>,
}

impl Choices {
    /// The strategies of rules of one's own.
    pub(super) fn custom_entries(&self) -> impl Iterator<Item = ExperimentEntry> {
        self.custom.iter().map(|custom| {
            let mut strategy = Table::new();
            strategy.insert("name".into(), "custom".into());
            strategy.insert("rule".into(), custom.rule.clone().into());
            strategy.insert("needs".into(), custom.needs.clone().into());
            ExperimentEntry::plain(&custom.rule, strategy)
        })
    }
}
