//! U-Net (Ronneberger et al. 2015).

use super::Design;
use crate::model::LayerConfig::{Norm, Relu, Skip, UpConv};
use crate::model::{LayerConfig, StartWeights};

/// Channels at every depth.
const CHANNELS: [usize; 5] = [64, 128, 256, 512, 1024];

/// As in the paper but for padding, which keeps the size of the image, and norms behind the
/// convolutions, as is usual since.
pub(super) fn unet() -> Design {
    Design {
        layers: from_depth(0),
        image: None,
        start: StartWeights::Kaiming,
    }
}

/// Two convolutions; then, next to their output, that of everything deeper; then two more.
fn from_depth(depth: usize) -> Vec<LayerConfig> {
    let channels = CHANNELS[depth];
    let once = || [LayerConfig::bare(channels, 3, 1), Norm, Relu];
    let twice = [once(), once()].concat();
    if depth + 1 == CHANNELS.len() {
        return twice;
    }
    let mut deeper = vec![LayerConfig::pool(2)];
    deeper.extend(from_depth(depth + 1));
    deeper.push(UpConv(channels));
    let mut layers = twice.clone();
    layers.push(Skip(deeper));
    layers.extend(twice);
    layers
}
