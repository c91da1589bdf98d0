//! The networks of HCCT (Sun et al. 2024), after the authors' code.

use super::Design;
use crate::model::LayerConfig::{Dense, Dropout, Norm, Relu};
use crate::model::{LayerConfig, StartWeights};

/// FedBN's network for digits: 28 → 14 → 7, so that 6272 values go into the dense layers.
pub(super) fn digits() -> Design {
    Design {
        layers: vec![
            LayerConfig::conv(64, 5),
            Norm,
            Relu,
            LayerConfig::pool(2),
            LayerConfig::conv(64, 5),
            Norm,
            Relu,
            LayerConfig::pool(2),
            LayerConfig::conv(128, 5),
            Norm,
            Relu,
            Dense(2048),
            Norm,
            Relu,
            Dense(512),
            Norm,
            Relu,
        ],
        image: Some([3, 28, 28]),
        start: StartWeights::Uniform,
    }
}

/// The network that they call `CNN_4`: 32 → 16 → 8 → 4, so that 2048 values go into the dense layers.
pub(super) fn cifar() -> Design {
    let mut layers = vec![LayerConfig::conv(16, 3), Relu];
    for channels in [32, 64, 128] {
        layers.extend([LayerConfig::conv(channels, 3), Relu, LayerConfig::pool(2)]);
    }
    layers.extend([Dense(500), Relu, Dropout(0.25)]);
    Design {
        layers,
        image: Some([3, 32, 32]),
        start: StartWeights::Uniform,
    }
}

/// The perceptron 784–64–10.
pub(super) fn fmnist() -> Design {
    Design {
        layers: vec![Dense(64), Dropout(0.5), Relu],
        image: None,
        start: StartWeights::Uniform,
    }
}
