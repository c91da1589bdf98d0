//! Layers as they are written down.

use serde::{Deserialize, Serialize};

/// One layer of a network. In TOML: `"relu"`, `{ dense = 512 }`,
/// `{ conv = { channels = 32, kernel = 5 } }`, and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum LayerConfig {
    /// A convolution.
    Conv(ConvConfig),
    /// A transposed 2×2 convolution of stride 2 to this number of channels: sides double.
    UpConv(usize),
    /// All values of a row, times a matrix, plus a bias: this many values.
    Dense(usize),
    /// Normalises every channel, and scales and shifts it anew; how, is said once for the whole
    /// network.
    Norm,
    /// Negative values become 0 (ReLU).
    Relu,
    /// The largest value of every window.
    MaxPool(MaxPoolConfig),
    /// The mean of every channel: images become 1×1.
    AveragePool,
    /// In training, each value is 0 with this probability, in `[0, 1)`, and the others grow by
    /// as much as keeps the mean (Srivastava et al. 2014). Does nothing in evaluation.
    Dropout(f64),
    /// The input is added to the output of these layers (He et al. 2016). Where shapes differ, the
    /// input goes through a 1×1 convolution and a norm of its own.
    Residual(Vec<LayerConfig>),
    /// The input is put in front of the output of these layers, channel after channel
    /// (Ronneberger et al. 2015); sides must not change in between.
    Skip(Vec<LayerConfig>),
}

impl LayerConfig {
    /// Returns whether there is, or may be, a norm layer in it.
    pub(super) fn normalises(&self) -> bool {
        match self {
            // Where the shapes of input and output differ, which is known later, it has one of its own.
            Self::Norm | Self::Residual(_) => true,
            Self::Skip(layers) => layers.iter().any(Self::normalises),
            Self::Conv(_) | Self::UpConv(_) | Self::Dense(_) | Self::Relu => false,
            Self::MaxPool(_) | Self::AveragePool | Self::Dropout(_) => false,
        }
    }
}

/// A convolution with square windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ConvConfig {
    /// Number of output channels.
    pub channels: usize,
    /// Side of the window, in pixels.
    pub kernel: usize,
    /// Distance of neighbouring windows, in pixels. Default: 1.
    #[serde(default = "one")]
    pub stride: usize,
    /// Width of the border of zeros around the image, in pixels. Default: `(kernel − 1) / 2`, which keeps
    /// the size of the image at stride 1 with odd kernels.
    #[serde(default)]
    pub padding: Option<usize>,
    /// True if a bias is added to every channel. Default: true. A norm layer directly after it cancels
    /// the bias.
    #[serde(default = "yes")]
    pub bias: bool,
}

/// A max-pooling with square windows. Padding is never the maximum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MaxPoolConfig {
    /// Side of the window, in pixels.
    pub size: usize,
    /// Distance of neighbouring windows, in pixels. Default: `size`.
    #[serde(default)]
    pub stride: Option<usize>,
    /// Width of the padding around the image, in pixels, at most half of `size`. Default: 0.
    #[serde(default)]
    pub padding: usize,
    /// Whether windows that are cut off by the right or lower edge are used. Default: false.
    #[serde(default)]
    pub ceil: bool,
}

/// How the norm layers of a network normalise.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum NormConfig {
    /// Over the batch (Ioffe & Szegedy 2015), ε = 1e-5. In evaluation by running means of mean and
    /// (unbiased) variance, of momentum 0.1, that the model carries as buffers.
    #[default]
    Batch,
    /// Within every row, over this number of groups of channels (Wu & He 2018), ε = 1e-5; no buffers.
    /// The number must divide the channels of every norm layer.
    Group(usize),
}

/// The distribution of start weights. Scales of norm layers are 1, their shifts 0.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StartWeights {
    /// Weights and biases uniform in `±1/√inputs`, as PyTorch's layers have it.
    #[default]
    Uniform,
    /// Weights of convolutions uniform with variance `2/outputs`, where `outputs` is channels ×
    /// window (He et al. 2015); dense layers, and all biases, as in `uniform`.
    Kaiming,
    /// Weights uniform in `±√(6/(inputs + outputs))` (Glorot & Bengio 2010), biases 0, as
    /// TensorFlow's layers have it.
    Glorot,
}

impl LayerConfig {
    /// A convolution with a bias that keeps the size of the image.
    pub fn conv(channels: usize, kernel: usize) -> Self {
        Self::Conv(ConvConfig {
            channels,
            kernel,
            stride: 1,
            padding: None,
            bias: true,
        })
    }

    /// A convolution without bias, for a norm behind it.
    pub fn bare(channels: usize, kernel: usize, stride: usize) -> Self {
        Self::Conv(ConvConfig {
            channels,
            kernel,
            stride,
            padding: None,
            bias: false,
        })
    }

    /// A max-pooling of windows next to each other; cut-off windows do not count.
    pub fn pool(size: usize) -> Self {
        Self::MaxPool(MaxPoolConfig {
            size,
            stride: None,
            padding: 0,
            ceil: false,
        })
    }
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}
