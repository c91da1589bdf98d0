//! The networks of LEAF (Caldas et al. 2018), and of a port to PyTorch that FedCG builds on.

use super::Design;
use crate::model::LayerConfig::{AveragePool, Conv, Dense, MaxPool, Norm, Relu};
use crate::model::{ConvConfig, LayerConfig, MaxPoolConfig, StartWeights};

pub(super) fn celeba() -> Design {
    faces(cut_off(), StartWeights::Glorot)
}

pub(super) fn celeba_padded() -> Design {
    faces(padded(), StartWeights::Uniform)
}

pub(super) fn femnist() -> Design {
    letters(LayerConfig::conv, cut_off(), StartWeights::Glorot)
}

pub(super) fn femnist_padded() -> Design {
    let conv = |channels, kernel| {
        Conv(ConvConfig {
            channels,
            kernel,
            stride: 1,
            padding: Some(1),
            bias: true,
        })
    };
    letters(conv, padded(), StartWeights::Uniform)
}

/// FedCG's classifier of domains (Caldarola et al. 2021). What is between its convolutions is not stated:
/// ReLU behind each, and the mean over all pixels.
pub(super) fn domains() -> Vec<LayerConfig> {
    vec![
        LayerConfig::conv(32, 3),
        Relu,
        LayerConfig::conv(64, 3),
        Relu,
        AveragePool,
    ]
}

fn faces(pool: MaxPoolConfig, start: StartWeights) -> Design {
    let block = [LayerConfig::conv(32, 3), Norm, MaxPool(pool), Relu];
    Design {
        layers: [&block; 4].into_iter().flatten().cloned().collect(),
        image: Some([3, 84, 84]),
        start,
    }
}

fn letters(
    conv: fn(usize, usize) -> LayerConfig,
    pool: MaxPoolConfig,
    start: StartWeights,
) -> Design {
    Design {
        layers: vec![
            conv(32, 5),
            Relu,
            MaxPool(pool.clone()),
            conv(64, 5),
            Relu,
            MaxPool(pool),
            Dense(2048),
            Relu,
        ],
        image: Some([1, 28, 28]),
        start,
    }
}

/// TensorFlow's `same`: cut-off windows count.
fn cut_off() -> MaxPoolConfig {
    MaxPoolConfig {
        size: 2,
        stride: None,
        padding: 0,
        ceil: true,
    }
}

fn padded() -> MaxPoolConfig {
    MaxPoolConfig {
        size: 2,
        stride: None,
        padding: 1,
        ceil: false,
    }
}
