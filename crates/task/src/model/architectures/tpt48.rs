//! The regression of TFL (Ma et al. 2024) on TPT-48: temperatures of six months from those of the
//! six before.

use super::Design;
use crate::model::LayerConfig::{Dense, Relu};
use crate::model::StartWeights;

/// Eight dense layers of which the last gives the outputs; the paper says no more than "8 FC" of
/// width 512. Weights start as in Glorot & Bengio 2010: with the smaller ones of PyTorch's layers eight
/// layers do not learn at all at a rate of .01.
pub(super) fn regressor() -> Design {
    Design {
        layers: (0..7).flat_map(|_| [Dense(512), Relu]).collect(),
        image: None,
        start: StartWeights::Glorot,
    }
}
