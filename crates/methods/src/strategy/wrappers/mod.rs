//! Wrappers: changes that go around any strategy, or around any learner.

pub(crate) mod altered_decisions;
pub(crate) mod asking;
pub(crate) mod decay;
pub(crate) mod learner_wrapper;
pub(crate) mod participation;
pub(crate) mod personal_layers;
pub(crate) mod report;
pub(crate) mod self_reported;
pub(crate) mod standardise;
pub(crate) mod stopping;
pub(crate) mod strategy_wrapper;
pub(crate) mod trained_layers;
pub(crate) mod warm_start;
