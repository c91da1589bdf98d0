//! Why a strategy cannot work with a silo's learner.

use crate::merging::OneLayer;
use crate::params::LayoutError;
use crate::similarity::EmbeddingError;

/// Why a strategy cannot work with a silo's learner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EquipError {
    /// A word that names no tensor.
    #[error("personal: the model has no {word:?}; it has {has}")]
    Nothing {
        /// The word.
        word: String,
        /// The model's tensors.
        has: String,
    },
    /// The model has no body.
    #[error(transparent)]
    OneLayer(#[from] OneLayer),
    /// Everything would stay with the silos.
    #[error("personal: with {0} personal there would be nothing to share: name less")]
    NothingShared(String),
    /// The common scale would not be common.
    #[error("personal: the federation's common scale cannot be personal: leave it out")]
    Scale,
    /// The model's names are taken by what the strategy attaches.
    #[error("the model's tensors cannot go with this strategy: {0}")]
    Layout(#[from] LayoutError),
    /// The model lacks what is to be compared.
    #[error("embedding: {0}")]
    Embedding(#[from] EmbeddingError),
    /// The learner or its model lacks what the strategy needs.
    #[error("{0}")]
    Unsupported(String),
}
