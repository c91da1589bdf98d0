//! Batch normalisation on burn's processor: loops over the planes of every channel.

use burn_core::backend::Flex;
use burn_core::backend::flex::FlexTensor;
use burn_core::tensor::TensorData;

use super::{NormBackend, NormKernel};

/// Sums that are kept side by side, which lets the compiler add several values at once.
const LANES: usize = 16;

impl NormBackend for Flex {
    fn by_batch(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        epsilon: f64,
    ) -> (FlexTensor, FlexTensor, FlexTensor) {
        let ([output, mean, variance], _) = Self::forward(x, weight, bias, epsilon);
        (output, mean, variance)
    }
}

/// Values that the backward pass needs: the input, the weight, and of every channel the mean and one over the
/// deviation.
#[derive(Debug, Clone)]
pub(super) struct NormInputs {
    x: FlexTensor,
    weight: FlexTensor,
    scales: Vec<ChannelScale>,
}

/// Of a channel.
#[derive(Debug, Clone, Copy)]
struct ChannelScale {
    mean: f32,
    /// One over the root of variance plus epsilon.
    inverse: f32,
}

impl NormKernel for Flex {
    type Kept = NormInputs;

    fn forward(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        epsilon: f64,
    ) -> ([FlexTensor; 3], NormInputs) {
        let (x, weight, bias) = (
            x.to_contiguous(),
            weight.to_contiguous(),
            bias.to_contiguous(),
        );
        let planes = Planes::of(&x);
        let values = x.storage::<f32>();
        let (mut means, mut variances) = (Vec::new(), Vec::new());
        let mut scales = Vec::new();
        let mut output = vec![0.0; values.len()];
        for channel in 0..planes.channels {
            let each = || planes.each(channel).map(|plane| &values[plane]);
            let mean = each().map(|plane| sum(plane, plane, |x, _| x)).sum::<f64>();
            let mean = mean / planes.count();
            let center = mean as f32;
            let square = |x: f32, _| (x - center) * (x - center);
            let variance = each().map(|plane| sum(plane, plane, square)).sum::<f64>();
            let variance = variance / planes.count();
            let inverse = (1.0 / (variance + epsilon).sqrt()) as f32;
            let scale = inverse * weight.storage::<f32>()[channel];
            let shift = bias.storage::<f32>()[channel];
            for plane in planes.each(channel) {
                let into = output[plane.clone()].iter_mut();
                into.zip(&values[plane])
                    .for_each(|(to, x)| *to = (x - center) * scale + shift);
            }
            means.push(center);
            variances.push(variance as f32);
            scales.push(ChannelScale {
                mean: center,
                inverse,
            });
        }
        let output = FlexTensor::from_data(TensorData::new(output, x.layout().shape().clone()));
        let found = [output, line(means), line(variances)];
        (found, NormInputs { x, weight, scales })
    }

    fn back(kept: NormInputs, slope: FlexTensor) -> [FlexTensor; 3] {
        let NormInputs { x, weight, scales } = kept;
        let slope = slope.to_contiguous();
        let planes = Planes::of(&x);
        let (values, slopes) = (x.storage::<f32>(), slope.storage::<f32>());
        let (mut for_weight, mut for_bias) = (Vec::new(), Vec::new());
        let mut for_x = vec![0.0; values.len()];
        for (channel, ChannelScale { mean, inverse }) in scales.into_iter().enumerate() {
            let (mut plain, mut along) = (0.0, 0.0);
            for plane in planes.each(channel) {
                let (values, slopes) = (&values[plane.clone()], &slopes[plane]);
                plain += sum(slopes, slopes, |slope, _| slope);
                along += sum(slopes, values, |slope, x| slope * ((x - mean) * inverse));
            }
            let scale = inverse * weight.storage::<f32>()[channel];
            let shift = (plain / planes.count()) as f32;
            let tilt = (along / planes.count()) as f32 * inverse;
            for plane in planes.each(channel) {
                let into = for_x[plane.clone()].iter_mut();
                let each = values[plane.clone()].iter().zip(&slopes[plane]);
                into.zip(each).for_each(|(to, (x, slope))| {
                    *to = (slope - shift - (x - mean) * tilt) * scale;
                });
            }
            for_weight.push(along as f32);
            for_bias.push(plain as f32);
        }
        let for_x = FlexTensor::from_data(TensorData::new(for_x, x.layout().shape().clone()));
        [for_x, line(for_weight), line(for_bias)]
    }
}

/// Positions of the values of rows and channels.
struct Planes {
    rows: usize,
    channels: usize,
    /// Values of a channel in a row.
    area: usize,
}

impl Planes {
    fn of(x: &FlexTensor) -> Self {
        let shape = x.layout().shape();
        Self {
            rows: shape[0],
            channels: shape[1],
            area: shape[2] * shape[3],
        }
    }

    /// Values of a channel.
    fn count(&self) -> f64 {
        (self.rows * self.area) as f64
    }

    /// Positions of the values of a channel, row by row.
    fn each(&self, channel: usize) -> impl Iterator<Item = std::ops::Range<usize>> + use<> {
        let Self { channels, area, .. } = *self;
        (0..self.rows).map(move |row| {
            let from = (row * channels + channel) * area;
            from..from + area
        })
    }
}

/// The sum of `of` over pairs of values.
fn sum(first: &[f32], second: &[f32], of: impl Fn(f32, f32) -> f32) -> f64 {
    let mut lanes = [0.0; LANES];
    let (first, first_rest) = first.as_chunks::<LANES>();
    let (second, second_rest) = second.as_chunks::<LANES>();
    for (first, second) in first.iter().zip(second) {
        for lane in 0..LANES {
            lanes[lane] += of(first[lane], second[lane]);
        }
    }
    let rest = first_rest.iter().zip(second_rest);
    let rest = rest.map(|(first, second)| f64::from(of(*first, *second)));
    lanes.into_iter().map(f64::from).sum::<f64>() + rest.sum::<f64>()
}

fn line(values: Vec<f32>) -> FlexTensor {
    let shape = [values.len()];
    FlexTensor::from_data(TensorData::new(values, shape))
}
