//! The networks of papers, as lists of layers.

mod fedavg;
mod hcct;
mod leaf;
mod resnet;
mod tpt48;
mod unet;

use serde::{Deserialize, Serialize};

use super::layer::{LayerConfig, StartWeights};

/// A network known by name. Its last layer follows from the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// Two convolutions and a hidden layer of 512, for 3×32×32 (McMahan et al. 2017; TFL's CIFAR
    /// experiments). 1,663,370 weights for 1×28×28 and 10 classes.
    FedavgCnn,
    /// LEAF's network for CelebA, 3×84×84 (Caldas et al. 2018): four times convolution, norm,
    /// pooling, ReLU. Cut-off windows of poolings count, as in TensorFlow: 84 → 42 → 21 → 11 → 6.
    LeafCeleba,
    /// The same with poolings padded on every side: 84 → 43 → 22 → 12 → 7, as a port to PyTorch
    /// that FedCG builds on has it.
    LeafCelebaPadded,
    /// LEAF's network for FEMNIST, 1×28×28: two convolutions and a hidden layer of 2048;
    /// 6,603,710 weights for 62 classes.
    LeafFemnist,
    /// The same with convolutions padded by 1 and poolings padded on every side: 28 → 26 → 14 →
    /// 12 → 7, as that port has it.
    LeafFemnistPadded,
    /// HCCT's network for digits, 3×28×28, which is FedBN's (Li et al. 2021): three convolutions,
    /// hidden layers of 2048 and 512, a norm behind each.
    HcctDigits,
    /// HCCT's network for CIFAR-10, 3×32×32: four convolutions and a hidden layer of 500.
    HcctCifar,
    /// HCCT's perceptron for Fashion-MNIST: a hidden layer of 64 with dropout .5. The softmax that
    /// the authors' code applies before its cross-entropy is left out.
    HcctFmnist,
    /// TFL's regression for TPT-48: eight dense layers, all hidden ones of 512.
    Tpt48,
    /// ResNet-18 (He et al. 2016) for 3×224×224: a 7×7 convolution of stride 2 and a pooling come
    /// first. 11.2 million weights.
    Resnet18,
    /// ResNet-18 for small images, 3×32×32: a 3×3 convolution of stride 1 comes first.
    Resnet18Small,
    /// ResNet-50 for 3×224×224, with the stride in the 3×3 convolutions as in torchvision.
    /// 23.5 million weights.
    Resnet50,
    /// ResNet-50 for small images, 3×32×32.
    Resnet50Small,
    /// U-Net (Ronneberger et al. 2015) with padded convolutions and norms; say what `image` it is
    /// for, with sides that can be halved four times. 31 million weights.
    Unet,
}

/// A network without its last layer.
pub struct Design {
    /// The layers, from the input on.
    pub layers: Vec<LayerConfig>,
    /// The size of image that the network is for, if that is given.
    pub image: Option<[usize; 3]>,
    /// Distribution of the initial weights.
    pub start: StartWeights,
}

impl Architecture {
    /// All there are.
    pub const ALL: [Self; 14] = [
        Self::FedavgCnn,
        Self::LeafCeleba,
        Self::LeafCelebaPadded,
        Self::LeafFemnist,
        Self::LeafFemnistPadded,
        Self::HcctDigits,
        Self::HcctCifar,
        Self::HcctFmnist,
        Self::Tpt48,
        Self::Resnet18,
        Self::Resnet18Small,
        Self::Resnet50,
        Self::Resnet50Small,
        Self::Unet,
    ];

    /// Layers of the architecture.
    pub fn design(self) -> Design {
        match self {
            Self::FedavgCnn => fedavg::cnn(),
            Self::LeafCeleba => leaf::celeba(),
            Self::LeafCelebaPadded => leaf::celeba_padded(),
            Self::LeafFemnist => leaf::femnist(),
            Self::LeafFemnistPadded => leaf::femnist_padded(),
            Self::HcctDigits => hcct::digits(),
            Self::HcctCifar => hcct::cifar(),
            Self::HcctFmnist => hcct::fmnist(),
            Self::Tpt48 => tpt48::regressor(),
            Self::Resnet18 => resnet::large(resnet::BASIC, [2, 2, 2, 2]),
            Self::Resnet18Small => resnet::small(resnet::BASIC, [2, 2, 2, 2]),
            Self::Resnet50 => resnet::large(resnet::BOTTLENECK, [3, 4, 6, 3]),
            Self::Resnet50Small => resnet::small(resnet::BOTTLENECK, [3, 4, 6, 3]),
            Self::Unet => unet::unet(),
        }
    }
}

/// FedCG's classifier of domains.
pub fn domains() -> Vec<LayerConfig> {
    leaf::domains()
}
