//! Convolutions on burn's processor: windows as columns of a matrix, and matrix products.
//!
//! Tiles follow each other in a fixed order, and no more than one lies in memory at a time: the sums
//! over them are the same on any number of threads.

use burn_core::backend::Flex;
use burn_core::backend::flex::FlexTensor;
use burn_core::backend::ops::FloatTensorOps;
use burn_core::tensor::TensorData;

use super::columns::{ConvolutionSizes, Tile};
use super::{ConvolutionBackend, ConvolutionKernel, Shifts, WantedGradients};

impl ConvolutionBackend for Flex {
    fn by_kernel(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        stride: usize,
        padding: usize,
    ) -> FlexTensor {
        forward(&sizes(&x, &weight, [stride, padding]), &x, &weight, &bias)
    }
}

impl ConvolutionKernel for Flex {
    type Kept = (FlexTensor, FlexTensor, ConvolutionSizes);

    fn forward(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        shifts: Shifts,
    ) -> (FlexTensor, Self::Kept) {
        let sizes = sizes(&x, &weight, shifts);
        let y = forward(&sizes, &x, &weight, &bias);
        (y, (x, weight, sizes))
    }

    fn back(
        (x, weight, sizes): Self::Kept,
        slope: FlexTensor,
        [of_x, of_weight, of_bias]: WantedGradients,
    ) -> [Option<FlexTensor>; 3] {
        let slope = slope.to_contiguous();
        let (for_x, for_weight) = back(&sizes, &x, &weight, &slope, (of_x, of_weight));
        let for_bias = of_bias.then(|| for_bias(&sizes, &slope));
        [for_x, for_weight, for_bias]
    }
}

fn sizes(x: &FlexTensor, weight: &FlexTensor, [stride, padding]: Shifts) -> ConvolutionSizes {
    let (x, weight) = (x.layout().shape(), weight.layout().shape());
    ConvolutionSizes {
        images: x[0],
        channels: x[1],
        height: x[2],
        width: x[3],
        outputs: weight[0],
        kernel: weight[2],
        stride,
        padding,
    }
}

/// For every tile: outputs × window times window × columns, plus the bias.
fn forward(
    sizes: &ConvolutionSizes,
    x: &FlexTensor,
    weight: &FlexTensor,
    bias: &FlexTensor,
) -> FlexTensor {
    let (x, bias) = (x.to_contiguous(), bias.to_contiguous());
    let weight = flat(sizes, weight);
    let (high, wide) = (sizes.high(), sizes.wide());
    let mut y = vec![0.0; sizes.images * sizes.outputs * high * wide];
    let mut seen = TileMemory::default();
    for tile in sizes.tiles() {
        let seen = seen.by(sizes, &tile, x.storage());
        let part = Flex::float_matmul(weight.clone(), seen);
        sizes.put(&tile, part.storage(), bias.storage(), &mut y);
    }
    filled(y, [sizes.images, sizes.outputs, high, wide])
}

/// The gradients for `x` and `weight`, as far as they are wanted, from that of the outputs.
fn back(
    sizes: &ConvolutionSizes,
    x: &FlexTensor,
    weight: &FlexTensor,
    slope: &FlexTensor,
    (of_x, of_weight): (bool, bool),
) -> (Option<FlexTensor>, Option<FlexTensor>) {
    let x = x.to_contiguous();
    let transposed = flat(sizes, weight).transpose(0, 1);
    let mut for_x = of_x.then(|| vec![0.0; x.storage::<f32>().len()]);
    let mut for_weight: Option<FlexTensor> = None;
    let mut seen = TileMemory::default();
    for tile in sizes.tiles() {
        let part = sizes.part(&tile, slope.storage());
        let part = filled(part, [sizes.outputs, sizes.columns(&tile)]);
        if of_weight {
            let seen = seen.by(sizes, &tile, x.storage()).transpose(0, 1);
            let part = Flex::float_matmul(part.clone(), seen);
            match &mut for_weight {
                None => for_weight = Some(part),
                Some(sum) => {
                    let parts = part.storage::<f32>();
                    let each = sum.storage_mut::<f32>().iter_mut().zip(parts);
                    each.for_each(|(sum, part)| *sum += part);
                }
            }
        }
        if let Some(sum) = &mut for_x {
            let seen = Flex::float_matmul(transposed.clone(), part);
            sizes.add(&tile, seen.storage(), sum);
        }
    }
    let for_x = for_x.map(|values| {
        let shape = [sizes.images, sizes.channels, sizes.height, sizes.width];
        filled(values, shape)
    });
    let for_weight = for_weight.map(|sum| {
        let shape = [sizes.outputs, sizes.channels, sizes.kernel, sizes.kernel];
        sum.reshape(shape.into())
    });
    (for_x, for_weight)
}

/// The gradient for the bias: that of every output, added over images and positions.
fn for_bias(sizes: &ConvolutionSizes, slope: &FlexTensor) -> FlexTensor {
    let mut sums = vec![0.0; sizes.outputs];
    let planes = slope
        .storage::<f32>()
        .chunks_exact(sizes.high() * sizes.wide());
    for (plane, slopes) in planes.enumerate() {
        sums[plane % sizes.outputs] += slopes.iter().copied().map(f64::from).sum::<f64>();
    }
    let sums = sums.into_iter().map(|sum| sum as f32).collect();
    filled(sums, [sizes.outputs])
}

/// The memory for what a tile sees, from tile to tile.
#[derive(Default)]
struct TileMemory(Option<FlexTensor>);

impl TileMemory {
    /// Returns what the windows of a tile see of `x`: window × columns. The next tile uses the same memory, unless
    /// somebody still holds this one.
    fn by(&mut self, sizes: &ConvolutionSizes, tile: &Tile, x: &[f32]) -> FlexTensor {
        let shape = [sizes.window(), sizes.columns(tile)];
        let kept = self.0.take();
        let mut seen = kept
            .filter(|kept| kept.layout().shape()[1] == shape[1])
            .unwrap_or_else(|| filled(vec![0.0; shape[0] * shape[1]], shape));
        sizes.see(tile, x, seen.storage_mut());
        self.0.insert(seen).clone()
    }
}

/// The weights as outputs × window.
fn flat(sizes: &ConvolutionSizes, weight: &FlexTensor) -> FlexTensor {
    let shape = [sizes.outputs, sizes.window()];
    weight.to_contiguous().reshape(shape.into())
}

fn filled<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}
