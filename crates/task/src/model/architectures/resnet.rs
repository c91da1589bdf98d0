//! Residual networks (He et al. 2016).

use super::Design;
use crate::model::LayerConfig::{AveragePool, Conv, MaxPool, Norm, Relu, Residual};
use crate::model::{ConvConfig, LayerConfig, MaxPoolConfig, StartWeights};

/// The layers around which a block's input goes, for the block's inner channels and its stride.
pub(super) type BlockLayers = fn(usize, usize) -> Vec<LayerConfig>;

/// Two 3×3 convolutions.
pub(super) const BASIC: BlockLayers = |channels, stride| {
    vec![
        LayerConfig::bare(channels, 3, stride),
        Norm,
        Relu,
        LayerConfig::bare(channels, 3, 1),
        Norm,
    ]
};

/// A 3×3 convolution between two of 1×1, of which the last gives four times the channels.
pub(super) const BOTTLENECK: BlockLayers = |channels, stride| {
    vec![
        LayerConfig::bare(channels, 1, 1),
        Norm,
        Relu,
        LayerConfig::bare(channels, 3, stride),
        Norm,
        Relu,
        LayerConfig::bare(4 * channels, 1, 1),
        Norm,
    ]
};

/// For images of some 224×224.
pub(super) fn large(block: BlockLayers, blocks: [usize; 4]) -> Design {
    let conv = Conv(ConvConfig {
        channels: 64,
        kernel: 7,
        stride: 2,
        padding: None,
        bias: false,
    });
    let pool = MaxPool(MaxPoolConfig {
        size: 3,
        stride: Some(2),
        padding: 1,
        ceil: false,
    });
    Design {
        layers: layers(vec![conv, Norm, Relu, pool], block, blocks),
        image: Some([3, 224, 224]),
        start: StartWeights::Kaiming,
    }
}

/// For images of some 32×32.
pub(super) fn small(block: BlockLayers, blocks: [usize; 4]) -> Design {
    let first = vec![LayerConfig::bare(64, 3, 1), Norm, Relu];
    Design {
        layers: layers(first, block, blocks),
        image: Some([3, 32, 32]),
        start: StartWeights::Kaiming,
    }
}

/// Four stages; the first block of every stage but the first halves the image.
fn layers(
    mut layers: Vec<LayerConfig>,
    block: BlockLayers,
    blocks: [usize; 4],
) -> Vec<LayerConfig> {
    for (stage, blocks) in blocks.into_iter().enumerate() {
        for number in 0..blocks {
            let stride = if stage > 0 && number == 0 { 2 } else { 1 };
            layers.extend([Residual(block(64 << stage, stride)), Relu]);
        }
    }
    layers.push(AveragePool);
    layers
}
