//! Errors of equipping a silo's learner with a strategy.

use crate::learner::MissingCapability;
use crate::merging::OneLayer;
use crate::params::LayoutError;
use crate::similarity::EmbeddingError;

/// Reason for which a strategy cannot work with a silo's learner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EquipError {
    /// A name that is no tensor or layer of the model.
    #[error("{option}: the model has no tensor or layer {name:?}; it has {has}")]
    Nothing {
        /// The option of the strategy that names it.
        option: &'static str,
        /// The name.
        name: String,
        /// The model's tensors.
        has: String,
    },
    /// The last layer is asked for, and the order of depth is not known.
    #[error(
        "{asked:?}: which layer is the last is not known, because the learner does not say its layers \
         in the order of depth: name it instead; the layers are {layers}"
    )]
    Depth {
        /// Layer that was asked for.
        asked: String,
        /// The model's layers.
        layers: String,
    },
    /// The model has no body.
    #[error(transparent)]
    OneLayer(#[from] OneLayer),
    /// All tensors would stay with the silos.
    #[error("personal: with {0} personal no tensor is shared: make fewer tensors personal")]
    NothingShared(String),
    /// Nothing would be trained.
    #[error("trained: {0} are not trained in any case: name a layer with weights")]
    NothingTrained(String),
    /// The common scale would not be common.
    #[error("personal: the federation's common scale cannot be personal: leave it out")]
    Scale,
    /// The model's names are taken by what the strategy attaches.
    #[error("the model's tensors cannot be used with this strategy: {0}")]
    Layout(#[from] LayoutError),
    /// The model lacks what is to be compared.
    #[error("embedding: {0}")]
    Embedding(#[from] EmbeddingError),
    /// The learner lacks a capability that the strategy needs.
    #[error(transparent)]
    Missing(#[from] MissingCapability),
    /// The strategy needs a metric that the task does not measure.
    #[error(
        "the strategy needs the metric {0:?} of a model, which this task does not measure: choose \
         another strategy or another target"
    )]
    Metric(&'static str),
    /// The members agreed to stop by validation rows, and the silo has none.
    #[error(
        "the federation ends early by a measure on validation rows (`stop`), and this silo has none: \
         keep some of its rows for validation, or agree on a strategy without `stop`"
    )]
    NoValidation,
    /// The strategy needs the domain of the silo's rows, and none is given.
    #[error(
        "fedcg with `given = true` needs to know the domain of this silo's rows: write `domains`, \
         one for every silo, in [task.table], or leave out `given`"
    )]
    NoDomain,
    /// The silo's rows are of a domain that the strategy does not have.
    #[error(
        "this silo's rows are given as domain {domain}, but the strategy has {domains}, counted \
         from 0: give a lower one, or more `domains` in the strategy"
    )]
    Domain {
        /// The silo's domain.
        domain: u32,
        /// Number of domains.
        domains: usize,
    },
    /// The model lacks what the strategy needs.
    #[error("{0}")]
    Unsupported(String),
}
