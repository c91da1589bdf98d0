//! A strategy of an experiment, or a reference.

use std::collections::BTreeMap;

use methods::serving::Adaptation;
use methods::strategy::Custom;
use serde::Serialize;
use toml::{Table, Value};

/// Label and name of the reference that is trained on the rows of all members.
pub(super) const POOLED: &str = "pooled";
/// Label and name of the reference that is the best model which every silo makes alone, chosen by
/// cross-validation on its own rows.
pub(super) const OWN: &str = "own-fit";
/// Name of the strategy by which each silo trains alone, with settings that are chosen over all silos.
pub(super) const LOCAL: &str = "local";
/// Label and name of the reference that gives every row the mean target of all members' rows.
pub(super) const CONSTANT: &str = "constant";

/// One strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentEntry {
    /// Name in tables, different from all others.
    pub label: String,
    /// The strategy's table.
    pub strategy: Table,
    /// Values that are tried, by key.
    pub tune: BTreeMap<String, Vec<Value>>,
    /// True if nothing is tried.
    pub fixed: bool,
    /// `true` if the models that silos would serve are measured, too; `None`: as the experiment has it.
    pub served: Option<bool>,
    /// Adaptation by every silo of its model to its own training rows afterwards.
    pub adapted: Option<Adaptation>,
    /// Changes of the scenario, by key.
    pub set: Table,
}

impl ExperimentEntry {
    /// The strategy of a rule of one's own, labelled by its rule.
    pub(super) fn custom(custom: &Custom) -> Self {
        let mut strategy = Table::new();
        strategy.insert("name".into(), "custom".into());
        strategy.insert("rule".into(), custom.rule.clone().into());
        strategy.insert("needs".into(), custom.needs.clone().into());
        Self::plain(&custom.rule, strategy)
    }

    /// A strategy without anything else.
    pub(super) fn plain(label: &str, strategy: Table) -> Self {
        Self {
            label: label.into(),
            strategy,
            tune: BTreeMap::new(),
            fixed: false,
            served: None,
            adapted: None,
            set: Table::new(),
        }
    }

    /// Name of its strategy, or of the reference that it is.
    pub fn name(&self) -> &str {
        self.strategy
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Returns whether there is nothing to choose and nothing to train.
    pub(super) fn is_constant(&self) -> bool {
        self.name() == CONSTANT
    }

    /// Returns whether it is the best model that every silo makes alone.
    pub(super) fn is_own(&self) -> bool {
        self.name() == OWN
    }

    /// Returns whether nothing is learned by a strategy.
    pub(super) fn is_reference(&self) -> bool {
        self.is_constant() || self.is_pooled() || self.is_own()
    }

    /// Returns whether one model is trained on the rows of all members.
    pub(super) fn is_pooled(&self) -> bool {
        self.name() == POOLED
    }

    /// Returns whether models are fitted exactly, so that more rounds add nothing to a fit.
    pub(super) fn is_exact(&self) -> bool {
        let fit = self.strategy.get("fit").and_then(Value::as_str);
        fit == Some("exact") || self.name() == "robust-local"
    }
}

/// Returns whether silos make models alone by the strategy of this name.
pub(super) fn is_alone(strategy: &str) -> bool {
    matches!(strategy, OWN | LOCAL)
}
