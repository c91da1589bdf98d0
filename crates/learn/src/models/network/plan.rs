//! From a list of layers to operations on tensors of known shapes.

use methods::{Role, TensorSpec};

use super::error::NetworkError;
use super::op::{LastLayer, Op, RowInput, TensorFill, TensorSlot};
use task::model::{ConvConfig, LayerConfig, MaxPoolConfig, NormConfig, StartWeights};

/// A network ready to run.
pub(super) struct NetworkPlan {
    pub(super) tensors: Vec<TensorSlot>,
    pub(super) ops: Vec<Op>,
    /// Values of a row where it has most.
    pub(super) widest: usize,
    /// Outputs of a row.
    pub(super) outputs: usize,
}

/// Settings in common to all layers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) norm: NormConfig,
    pub(super) start: StartWeights,
    /// Factor of all widths but the last.
    pub(super) width: f64,
}

/// Layers, poolings and windows are small numbers; larger ones are mistakes.
const MOST: usize = 1 << 20;
const LARGEST: u64 = 1 << 32;

impl NetworkPlan {
    /// The network of these layers and a head, on rows of this kind.
    pub(super) fn new(
        layers: &[LayerConfig],
        style: Style,
        input: RowInput,
        head: LastLayer,
    ) -> Result<Self, NetworkError> {
        if !(style.width > 0.0 && style.width <= 1024.0) {
            return Err(NetworkError::Range {
                what: "`width`",
                range: "above 0 and at most 1024",
                value: style.width,
            });
        }
        let mut builder = NetworkBuilder {
            style,
            shape: input.shape(),
            image: matches!(input, RowInput::Image(_)),
            tensors: Vec::new(),
            layers: 0,
            widest: values(input.shape())?,
        };
        let mut ops = builder.all(layers)?;
        let outputs = match head {
            LastLayer::Dense(outputs) => {
                ops.push(builder.dense(outputs)?);
                outputs
            }
            LastLayer::Pixels(pixels) => {
                let [_, height, width] = builder.shape;
                if height * width != pixels {
                    return Err(NetworkError::Mask {
                        height,
                        width,
                        pixels,
                    });
                }
                ops.push(builder.conv(1, 1, 1, Some(0), true)?);
                pixels
            }
        };
        Ok(Self {
            widest: builder.widest,
            tensors: builder.finish(),
            ops,
            outputs,
        })
    }
}

/// A tensor whose name waits for the number of layers to be known.
struct TensorDraft {
    layer: usize,
    kind: &'static str,
    part: &'static str,
    shape: Vec<usize>,
    role: Role,
    fill: TensorFill,
}

struct NetworkBuilder {
    style: Style,
    /// Channels, height and width at this depth.
    shape: [usize; 3],
    /// True if the values are an image, and not a plain vector.
    image: bool,
    tensors: Vec<TensorDraft>,
    /// Layers with tensors so far.
    layers: usize,
    widest: usize,
}

impl NetworkBuilder {
    fn all(&mut self, layers: &[LayerConfig]) -> Result<Vec<Op>, NetworkError> {
        layers.iter().map(|layer| self.one(layer)).collect()
    }

    fn one(&mut self, layer: &LayerConfig) -> Result<Op, NetworkError> {
        let op = match layer {
            LayerConfig::Conv(ConvConfig {
                channels,
                kernel,
                stride,
                padding,
                bias,
            }) => self.conv(self.scaled(*channels)?, *kernel, *stride, *padding, *bias)?,
            LayerConfig::UpConv(channels) => self.up_conv(self.scaled(*channels)?)?,
            LayerConfig::Dense(width) => self.dense(self.scaled(*width)?)?,
            LayerConfig::Norm => self.norm()?,
            LayerConfig::Relu => Op::Relu,
            LayerConfig::MaxPool(config) => self.pool(config)?,
            LayerConfig::AveragePool => {
                self.shape = [self.shape[0], 1, 1];
                Op::AveragePool
            }
            LayerConfig::Dropout(rate) => {
                if !(0.0..1.0).contains(rate) {
                    return Err(NetworkError::Range {
                        what: "dropout",
                        range: "at least 0 and below 1",
                        value: *rate,
                    });
                }
                Op::Dropout(*rate)
            }
            LayerConfig::Residual(layers) => {
                let from = self.shape;
                let main = self.all(layers)?;
                let shortcut = self.shortcut(from)?;
                Op::Residual { main, shortcut }
            }
            LayerConfig::Skip(layers) => {
                let from = self.shape;
                let inner = self.all(layers)?;
                let to = self.shape;
                if from[1..] != to[1..] {
                    return Err(NetworkError::Around {
                        layer: "skip",
                        from,
                        to,
                    });
                }
                self.shape[0] += from[0];
                Op::Skip(inner)
            }
        };
        self.widest = self.widest.max(values(self.shape)?);
        Ok(op)
    }

    fn scaled(&self, width: usize) -> Result<usize, NetworkError> {
        let width = checked("a number of channels or values", width)?;
        Ok(((width as f64 * self.style.width).round() as usize).max(1))
    }

    fn conv(
        &mut self,
        channels: usize,
        kernel: usize,
        stride: usize,
        padding: Option<usize>,
        bias: bool,
    ) -> Result<Op, NetworkError> {
        let kernel = checked("a kernel", kernel)?;
        let stride = checked("a stride", stride)?;
        let padding = padding.unwrap_or((kernel - 1) / 2).min(MOST);
        let [inputs, height, width] = self.shape;
        if !self.image && kernel > 1 {
            return Err(NetworkError::NoImage { layer: "conv" });
        }
        let side = |side: usize| (side + 2 * padding).checked_sub(kernel);
        let (Some(down), Some(right)) = (side(height), side(width)) else {
            return Err(NetworkError::Window {
                layer: "conv",
                window: kernel,
                height: height + 2 * padding,
                width: width + 2 * padding,
            });
        };
        self.shape = [channels, down / stride + 1, right / stride + 1];
        let shape = [channels, inputs, kernel, kernel];
        let window = kernel as f64 * kernel as f64;
        let fans = (inputs as f64 * window, channels as f64 * window);
        let weight = self.weight("conv", &shape, fans)?;
        let bias = bias.then(|| self.bias("conv", channels, fans.0));
        self.layers += 1;
        Ok(Op::Conv {
            weight,
            bias,
            shape,
            stride,
            padding,
        })
    }

    fn up_conv(&mut self, channels: usize) -> Result<Op, NetworkError> {
        let [inputs, height, width] = self.shape;
        if !self.image {
            return Err(NetworkError::NoImage { layer: "up-conv" });
        }
        self.shape = [channels, 2 * height, 2 * width];
        let shape = [inputs, channels, 2, 2];
        // Windows do not overlap: an output pixel depends on one input pixel.
        let fans = (inputs as f64, 4.0 * channels as f64);
        let weight = self.weight("up-conv", &shape, fans)?;
        let bias = self.bias("up-conv", channels, fans.0);
        self.layers += 1;
        Ok(Op::UpConv {
            weight,
            bias,
            shape,
        })
    }

    fn dense(&mut self, outputs: usize) -> Result<Op, NetworkError> {
        let inputs = values(self.shape)?;
        (self.shape, self.image) = ([outputs, 1, 1], false);
        let shape = [outputs, inputs];
        let fans = (inputs as f64, outputs as f64);
        let bound = match self.style.start {
            StartWeights::Uniform | StartWeights::Kaiming => 1.0 / fans.0.sqrt(),
            StartWeights::Glorot => (6.0 / (fans.0 + fans.1)).sqrt(),
        };
        let weight = self.draft(
            "dense",
            "weight",
            &shape,
            Role::Weight,
            TensorFill::Uniform(bound),
        )?;
        let bias = self.bias("dense", outputs, fans.0);
        self.layers += 1;
        Ok(Op::Dense {
            weight,
            bias,
            shape,
        })
    }

    fn norm(&mut self) -> Result<Op, NetworkError> {
        let (channels, norm) = (self.shape[0], self.style.norm);
        let mut tensor = |part, role, value| {
            self.draft("norm", part, &[channels], role, TensorFill::Constant(value))
        };
        let weight = tensor("weight", Role::Weight, 1.0)?;
        let bias = tensor("bias", Role::Bias, 0.0)?;
        let op = match norm {
            NormConfig::Batch => Op::BatchNorm {
                weight,
                bias,
                mean: tensor("mean", Role::Buffer, 0.0)?,
                variance: tensor("variance", Role::Buffer, 1.0)?,
            },
            NormConfig::Group(groups) => {
                if groups == 0 || !channels.is_multiple_of(groups) {
                    return Err(NetworkError::Groups { channels, groups });
                }
                Op::GroupNorm {
                    weight,
                    bias,
                    groups,
                }
            }
        };
        self.layers += 1;
        Ok(op)
    }

    fn pool(&mut self, config: &MaxPoolConfig) -> Result<Op, NetworkError> {
        let MaxPoolConfig { padding, ceil, .. } = *config;
        let size = checked("a pooling's size", config.size)?;
        let stride = checked("a stride", config.stride.unwrap_or(size))?;
        if padding > size / 2 {
            return Err(NetworkError::Range {
                what: "a pooling's padding",
                range: "at most half its size",
                value: padding as f64,
            });
        }
        let [channels, height, width] = self.shape;
        if !self.image {
            return Err(NetworkError::NoImage { layer: "max-pool" });
        }
        let side = |side: usize| {
            let room = (side + 2 * padding).checked_sub(size)?;
            let full = room / stride + 1;
            // A cut-off window must begin inside the image or its left padding.
            let more = ceil && room % stride > 0 && full * stride < side + padding;
            Some(full + usize::from(more))
        };
        let (Some(down), Some(right)) = (side(height), side(width)) else {
            return Err(NetworkError::Window {
                layer: "max-pool",
                window: size,
                height: height + 2 * padding,
                width: width + 2 * padding,
            });
        };
        self.shape = [channels, down, right];
        Ok(Op::MaxPool {
            size,
            stride,
            padding,
            ceil,
        })
    }

    /// From what went into a residual block to the shape of what came out.
    fn shortcut(&mut self, from: [usize; 3]) -> Result<Vec<Op>, NetworkError> {
        let to = self.shape;
        if from == to {
            return Ok(Vec::new());
        }
        let stride = from[1].div_ceil(to[1]);
        self.shape = from;
        let ops = vec![self.conv(to[0], 1, stride, Some(0), false)?, self.norm()?];
        if self.shape != to {
            return Err(NetworkError::Around {
                layer: "residual",
                from,
                to,
            });
        }
        Ok(ops)
    }

    fn weight(
        &mut self,
        kind: &'static str,
        shape: &[usize],
        (inputs, outputs): (f64, f64),
    ) -> Result<usize, NetworkError> {
        let bound = match self.style.start {
            StartWeights::Uniform => 1.0 / inputs.sqrt(),
            // The variance of a uniform draw is a third of its bound squared.
            StartWeights::Kaiming => (6.0 / outputs).sqrt(),
            StartWeights::Glorot => (6.0 / (inputs + outputs)).sqrt(),
        };
        self.draft(
            kind,
            "weight",
            shape,
            Role::Weight,
            TensorFill::Uniform(bound),
        )
    }

    fn bias(&mut self, kind: &'static str, len: usize, inputs: f64) -> usize {
        let fill = match self.style.start {
            StartWeights::Uniform | StartWeights::Kaiming => {
                TensorFill::Uniform(1.0 / inputs.sqrt())
            }
            StartWeights::Glorot => TensorFill::Constant(0.0),
        };
        self.draft(kind, "bias", &[len], Role::Bias, fill)
            .expect("no larger than the weight before it")
    }

    fn draft(
        &mut self,
        kind: &'static str,
        part: &'static str,
        shape: &[usize],
        role: Role,
        fill: TensorFill,
    ) -> Result<usize, NetworkError> {
        let len = shape
            .iter()
            .try_fold(1u64, |len, &side| len.checked_mul(side as u64));
        if len.is_none_or(|len| len >= LARGEST) {
            return Err(NetworkError::TooLarge(LARGEST));
        }
        self.tensors.push(TensorDraft {
            layer: self.layers,
            kind,
            part,
            shape: shape.to_vec(),
            role,
            fill,
        });
        Ok(self.tensors.len() - 1)
    }

    /// The tensors with their names: numbers have as many digits as the last, so that names in
    /// alphabetical order are in order of depth.
    fn finish(self) -> Vec<TensorSlot> {
        let digits = self.layers.saturating_sub(1).to_string().len().max(2);
        let name = |draft: &TensorDraft| {
            let TensorDraft {
                layer, kind, part, ..
            } = draft;
            format!("layer{layer:0digits$}.{kind}.{part}")
        };
        self.tensors
            .into_iter()
            .map(|draft| TensorSlot {
                decayed: draft.role == Role::Weight && draft.kind != "norm",
                fill: draft.fill,
                spec: TensorSpec::new(name(&draft), draft.shape, draft.role),
            })
            .collect()
    }
}

/// Values of a row of this shape.
fn values(shape: [usize; 3]) -> Result<usize, NetworkError> {
    let values = shape
        .iter()
        .try_fold(1usize, |values, &side| values.checked_mul(side));
    let values = values.filter(|&values| (values as u64) < LARGEST);
    values.ok_or(NetworkError::TooLarge(LARGEST))
}

fn checked(what: &'static str, value: usize) -> Result<usize, NetworkError> {
    if (1..=MOST).contains(&value) {
        return Ok(value);
    }
    Err(NetworkError::Range {
        what,
        range: "from 1 to 1048576",
        value: value as f64,
    })
}
