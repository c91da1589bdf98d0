//! The convolutional network of FedAvg (McMahan et al. 2017).

use super::Design;
use crate::model::LayerConfig::{Dense, Relu};
use crate::model::{LayerConfig, StartWeights};

/// Two 5×5 convolutions of 32 and 64 channels, each with ReLU and a 2×2 pooling, and a hidden
/// layer of 512: with the layer of the outputs two dense ones.
pub(super) fn cnn() -> Design {
    Design {
        layers: vec![
            LayerConfig::conv(32, 5),
            Relu,
            LayerConfig::pool(2),
            LayerConfig::conv(64, 5),
            Relu,
            LayerConfig::pool(2),
            Dense(512),
            Relu,
        ],
        image: Some([3, 32, 32]),
        start: StartWeights::Uniform,
    }
}
