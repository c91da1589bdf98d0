//! The operations and tensors of a network whose shapes are known.

use methods::TensorSpec;

/// The content of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowInput {
    /// A vector with this number of values.
    Values(usize),
    /// Channels, height and width.
    Image([usize; 3]),
}

impl RowInput {
    /// Channels, height and width.
    pub(super) fn shape(self) -> [usize; 3] {
        match self {
            Self::Values(values) => [values, 1, 1],
            Self::Image(shape) => shape,
        }
    }
}

/// The last layer of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLayer {
    /// A dense layer with this number of outputs.
    Dense(usize),
    /// A 1×1 convolution to one output per pixel, for this number of pixels.
    Pixels(usize),
}

/// The initial values of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TensorFill {
    /// Uniform in `±bound`.
    Uniform(f64),
    Constant(f32),
}

/// A tensor of the network. `shape` may be anything with the tensor's number of values: values are
/// kept flat, and take their shape where they are used.
pub(super) struct TensorSlot {
    pub(super) spec: TensorSpec,
    pub(super) fill: TensorFill,
    /// True if weight decay applies.
    pub(super) decayed: bool,
}

/// One operation on images `[rows, channels, height, width]`; what has no sides is 1×1. Numbers
/// are positions among the tensors.
#[derive(Debug)]
pub(super) enum Op {
    Conv {
        weight: usize,
        bias: Option<usize>,
        /// Outputs, inputs, and the window.
        shape: [usize; 4],
        stride: usize,
        padding: usize,
    },
    UpConv {
        weight: usize,
        bias: usize,
        /// Inputs, outputs, and the window.
        shape: [usize; 4],
    },
    Dense {
        weight: usize,
        bias: usize,
        /// Outputs, inputs.
        shape: [usize; 2],
    },
    BatchNorm {
        weight: usize,
        bias: usize,
        mean: usize,
        variance: usize,
    },
    GroupNorm {
        weight: usize,
        bias: usize,
        groups: usize,
    },
    Relu,
    MaxPool {
        size: usize,
        stride: usize,
        padding: usize,
        ceil: bool,
    },
    AveragePool,
    Dropout(f64),
    Residual {
        main: Vec<Op>,
        shortcut: Vec<Op>,
    },
    Skip(Vec<Op>),
}

impl Op {
    /// Returns whether the rows of a step influence each other in it.
    pub(super) fn normalises_batches(&self) -> bool {
        match self {
            Self::BatchNorm { .. } => true,
            Self::Residual { main, shortcut } => {
                main.iter().chain(shortcut).any(Self::normalises_batches)
            }
            Self::Skip(inner) => inner.iter().any(Self::normalises_batches),
            Self::Conv { .. }
            | Self::UpConv { .. }
            | Self::Dense { .. }
            | Self::GroupNorm { .. }
            | Self::Relu
            | Self::MaxPool { .. }
            | Self::AveragePool
            | Self::Dropout(_) => false,
        }
    }
}
