//! The forward pass of a network: its operations on tensors.

use burn_core::tensor::module::{batch_norm, conv_transpose2d};
use burn_core::tensor::ops::ConvTransposeOptions;
use burn_core::tensor::{Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use super::kernels::{PoolWindows, convolve, normalise, pool, rectify};
use super::op::Op;
use crate::random::uniform;

/// Added to variances before they are divided by.
pub(super) const EPSILON: f64 = 1e-5;
/// Weight of a batch in running means.
const MOMENTUM: f64 = 0.1;

/// Inputs of a pass that only training needs.
pub(super) struct TrainingPass<'a> {
    /// Draws what dropout leaves out.
    pub(super) rng: &'a mut ChaCha8Rng,
    /// Gets the new running statistics, by position of the tensor.
    pub(super) statistics: &'a mut Vec<(usize, Tensor<1>)>,
}

/// Rows that pass through a network one after the other, with tensors of their own.
pub(super) struct ForwardRows<'a> {
    pub(super) rows: usize,
    /// All tensors, flat.
    pub(super) tensors: &'a [Tensor<1>],
}

/// One way through a network: the parts of the rows with their tensors, and in training what that
/// needs.
pub(super) struct Pass<'a> {
    pub(super) parts: &'a [ForwardRows<'a>],
    pub(super) training: Option<TrainingPass<'a>>,
}

impl Pass<'_> {
    pub(super) fn all(&mut self, ops: &[Op], input: Tensor<4>) -> Tensor<4> {
        ops.iter().fold(input, |x, op| self.one(op, x))
    }

    fn one(&mut self, op: &Op, x: Tensor<4>) -> Tensor<4> {
        match op {
            Op::Conv {
                weight,
                bias,
                shape,
                stride,
                padding,
            } => self.each(x, |get, x| {
                let weight = get(*weight).reshape(*shape);
                convolve(x, weight, bias.map(get), *stride, *padding)
            }),
            Op::UpConv {
                weight,
                bias,
                shape,
            } => self.each(x, |get, x| {
                let weight = get(*weight).reshape(*shape);
                let options = ConvTransposeOptions::new([2; 2], [0; 2], [0; 2], [1; 2], 1);
                conv_transpose2d(x, weight, Some(get(*bias)), options)
            }),
            Op::Dense {
                weight,
                bias,
                shape: [outputs, inputs],
            } => self.each(x, |get, x| {
                let rows = x.dims()[0];
                let weight = get(*weight).reshape([*outputs, *inputs]);
                let bias = get(*bias).reshape([1, *outputs]);
                let x = x.reshape([rows, *inputs]).matmul(weight.transpose()) + bias;
                x.reshape([rows, *outputs, 1, 1])
            }),
            Op::BatchNorm {
                weight,
                bias,
                mean,
                variance,
            } => self.batch_norm(x, [*weight, *bias, *mean, *variance]),
            Op::GroupNorm {
                weight,
                bias,
                groups,
            } => self.group_norm(x, [*weight, *bias], *groups),
            Op::Relu => rectify(x),
            Op::MaxPool {
                size,
                stride,
                padding,
                ceil,
            } => {
                let windows = PoolWindows {
                    size: *size,
                    stride: *stride,
                    padding: *padding,
                    ceil: *ceil,
                };
                pool(x, windows)
            }
            Op::AveragePool => {
                let [rows, channels, height, width] = x.dims();
                let x = x.reshape([rows, channels, height * width]).mean_dim(2);
                x.reshape([rows, channels, 1, 1])
            }
            Op::Dropout(rate) => self.dropout(x, *rate),
            Op::Residual { main, shortcut } => {
                let around = self.all(main, x.clone());
                around + self.all(shortcut, x)
            }
            Op::Skip(inner) => {
                let behind = self.all(inner, x.clone());
                Tensor::cat(vec![x, behind], 1)
            }
        }
    }

    /// An operation on every part of the rows, with its own tensors by position.
    fn each(
        &self,
        x: Tensor<4>,
        operation: impl Fn(&dyn Fn(usize) -> Tensor<1>, Tensor<4>) -> Tensor<4>,
    ) -> Tensor<4> {
        let on =
            |part: &ForwardRows<'_>, x| operation(&|position| part.tensors[position].clone(), x);
        if let [only] = self.parts {
            return on(only, x);
        }
        let mut from = 0;
        let parts = self.parts.iter().map(|part| {
            let rows = x.clone().narrow(0, from, part.rows);
            from += part.rows;
            on(part, rows)
        });
        Tensor::cat(parts.collect(), 0)
    }

    /// All rows are normalised together; scale and shift are each part's own.
    fn batch_norm(&mut self, x: Tensor<4>, positions: [usize; 4]) -> Tensor<4> {
        let parts = match self.parts {
            [only] => return self.normalise(only.tensors, x, positions),
            parts => parts,
        };
        let [scale, shift, ..] = positions;
        let mut tensors = parts[0].tensors.to_vec();
        let channels = x.dims()[1];
        tensors[scale] = Tensor::ones([channels], &x.device());
        tensors[shift] = Tensor::zeros([channels], &x.device());
        let x = self.normalise(&tensors, x, positions);
        self.each(x, |get, x| scaled(get, [scale, shift], x))
    }

    fn group_norm(&self, x: Tensor<4>, positions: [usize; 2], groups: usize) -> Tensor<4> {
        let [rows, channels, height, width] = x.dims();
        // A group of a row is what a channel is to batch normalisation.
        let parts = rows * groups;
        let ones = Tensor::ones([parts], &x.device());
        let zeros = Tensor::zeros([parts], &x.device());
        let x = x.reshape([1, parts, channels / groups * height, width]);
        let x = normalise(x, ones, zeros, EPSILON).output;
        let x = x.reshape([rows, channels, height, width]);
        self.each(x, |get, x| scaled(get, positions, x))
    }

    /// Normalises all rows with the scale, shift, mean and variance at these positions.
    fn normalise(
        &mut self,
        tensors: &[Tensor<1>],
        x: Tensor<4>,
        positions: [usize; 4],
    ) -> Tensor<4> {
        let [weight, bias, mean, variance] = positions.map(|position| tensors[position].clone());
        let Some(training) = &mut self.training else {
            // The variance of an averaged model may be below 0.
            return batch_norm(x, weight, bias, mean, variance.clamp_min(0.0), EPSILON);
        };
        let [rows, _, height, width] = x.dims();
        let count = rows * height * width;
        let batch = normalise(x, weight, bias, EPSILON);
        let moved = |old: Tensor<1>, new: Tensor<1>| {
            old.inner().mul_scalar(1.0 - MOMENTUM) + new.inner().mul_scalar(MOMENTUM)
        };
        let statistics = &mut training.statistics;
        statistics.push((positions[2], moved(mean, batch.mean)));
        // One value has no spread.
        if count > 1 {
            let unbiased = batch.variance.mul_scalar(count as f64 / (count - 1) as f64);
            statistics.push((positions[3], moved(variance, unbiased)));
        }
        batch.output
    }

    fn dropout(&mut self, x: Tensor<4>, rate: f64) -> Tensor<4> {
        let Some(training) = &mut self.training else {
            return x;
        };
        if rate == 0.0 {
            return x;
        }
        let dims = x.dims();
        let kept = (1.0 / (1.0 - rate)) as f32;
        let mask: Vec<f32> = (0..dims.iter().product())
            .map(|_| {
                if uniform(training.rng) < rate {
                    0.0
                } else {
                    kept
                }
            })
            .collect();
        let mask = Tensor::from_data(TensorData::new(mask, dims), &x.device());
        x * mask
    }
}

/// Every channel times its scale, plus its shift: the tensors at these positions.
fn scaled(get: &dyn Fn(usize) -> Tensor<1>, [scale, shift]: [usize; 2], x: Tensor<4>) -> Tensor<4> {
    let channels = x.dims()[1];
    let [scale, shift] = [scale, shift].map(|at| get(at).reshape([1, channels, 1, 1]));
    x * scale + shift
}
