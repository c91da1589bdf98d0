//! Shared parts of the tests of whole federations.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use lab::Summary;
use learn::Study;
use methods::learner::QuadraticLearner;
use methods::strategy::{STRATEGIES, StrategyInfo};
use methods::{Layout, Role, TensorSpec};
use simulations::toy::study;

/// Tensors of the toy models. Some strategies keep some of them personal.
const TENSORS: [&str; 3] = ["layer0.weight", "layer1.weight", "norm0.weight"];

/// The phases in which a scenario can kill a lead, in the order of a round.
pub(crate) const LEAD_PHASES: [&str; 6] = [
    "collecting",
    "scoring",
    "including",
    "deciding",
    "voting",
    "notarised",
];

/// The strategies that learn any model; the others need a linear one and its rows.
pub(crate) fn of_any_model() -> impl Iterator<Item = &'static StrategyInfo> {
    STRATEGIES.iter().filter(|info| info.name != "hierarchical")
}

/// A study of toy silos with these centres and three tensors.
pub(crate) fn three_tensors(centres: &[[f64; 3]]) -> Study {
    let tensors = TENSORS.map(|name| TensorSpec::new(name, [1], Role::Weight));
    let layout = Layout::by_depth(tensors.into()).unwrap();
    let silo = |centre: &[f64; 3]| Arc::new(QuadraticLearner::with_layout(&layout, centre));
    let silos: Vec<_> = centres.iter().map(silo).collect();
    study(&silos)
}

/// The outcomes of all rounds.
pub(crate) fn outcomes(summary: &Summary) -> Vec<&str> {
    let rounds = summary.rounds.iter();
    rounds.map(|round| round.outcome.as_str()).collect()
}
