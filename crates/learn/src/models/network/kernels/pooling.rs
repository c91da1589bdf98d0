//! Max pooling on the processor.
//!
//! burn's goes from window to window and jumps by which value is larger, which no processor foresees: it takes
//! longer than the convolution before it. Here all windows of a plane see one of their values after the other,
//! without a jump. Outputs and gradients are burn's, to the bit; only a window that sees nothing but −∞ beside
//! padding has no place for its gradient.

use burn_core::backend::autodiff::checkpoint::base::Checkpointer;
use burn_core::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_core::backend::autodiff::grads::Gradients;
use burn_core::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn_core::backend::flex::FlexTensor;
use burn_core::backend::tensor::FloatTensor;
use burn_core::backend::{Autodiff, Backend, Dispatch, DispatchDevice, Flex, backend_extension};
use burn_core::tensor::module::max_pool2d;
use burn_core::tensor::ops::MaxPoolOptions;
use burn_core::tensor::{Tensor, TensorData};
use multiversion::multiversion;

/// Windows of a pooling, in both directions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolWindows {
    pub(crate) size: usize,
    pub(crate) stride: usize,
    pub(crate) padding: usize,
    /// True if a window that reaches beyond the end counts.
    pub(crate) ceil: bool,
}

/// The largest value of every window of `x`, `[images, channels, height, width]`.
pub(crate) fn pool(x: Tensor<4>, windows: PoolWindows) -> Tensor<4> {
    let device = x.device().inner();
    match device.as_dispatch() {
        DispatchDevice::Flex(_) => {
            Tensor::from_dispatch(Dispatch::by_windows(x.into_dispatch(), windows))
        }
        #[allow(unreachable_patterns)]
        _ => {
            let options = MaxPoolOptions::new([windows.size; 2])
                .with_stride([windows.stride; 2])
                .with_padding([windows.padding; 2])
                .with_ceil_mode(windows.ceil);
            max_pool2d(x, options)
        }
    }
}

/// The operation as an extension of burn's backend.
#[backend_extension(Flex, Autodiff)]
trait PoolingBackend: Backend {
    /// Max pooling.
    fn by_windows(x: FloatTensor<Self>, windows: PoolWindows) -> FloatTensor<Self>;
}

impl PoolingBackend for Flex {
    fn by_windows(x: FlexTensor, windows: PoolWindows) -> FlexTensor {
        forward(&x, windows).0
    }
}

impl<C: CheckpointStrategy> PoolingBackend for Autodiff<Flex, C> {
    fn by_windows(x: FloatTensor<Self>, windows: PoolWindows) -> FloatTensor<Self> {
        let prepared = PoolingBackward
            .prepare::<C>([x.node()])
            .compute_bound()
            .stateful();
        let (output, places) = forward(&x.into_primitive(), windows);
        match prepared {
            OpsKind::Tracked(prepared) => prepared.finish(places, output),
            OpsKind::UnTracked(prepared) => prepared.finish(output),
        }
    }
}

/// Positions of the largest values.
#[derive(Debug, Clone)]
struct Places {
    /// Images, channels, height, width of what was pooled.
    shape: [usize; 4],
    /// Of every output its place in the plane of its image and channel.
    each: Vec<u32>,
}

/// The way back through a pooling.
#[derive(Debug)]
struct PoolingBackward;

impl Backward<Flex, 1> for PoolingBackward {
    type State = Places;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let slope = gradients.consume::<Flex>(&ops.node);
        if let [Some(node)] = ops.parents {
            let gradient = ops.state.back(&slope.to_contiguous());
            gradients.register::<Flex>(node.id, gradient);
        }
    }
}

/// A window that has seen nothing but padding.
const NONE: u32 = u32::MAX;

fn forward(x: &FlexTensor, windows: PoolWindows) -> (FlexTensor, Places) {
    let x = x.to_contiguous();
    let shape = x.layout().shape();
    let shape = [shape[0], shape[1], shape[2], shape[3]];
    let [images, channels, height, width] = shape;
    let (high, wide) = (windows.outputs(height), windows.outputs(width));
    let count = images * channels * high * wide;
    let (mut y, mut each) = (vec![0.0; count], vec![0; count]);
    if count > 0 {
        let mut seen = SeenPlane::new([height, width], [high, wide], windows);
        let planes = x.storage::<f32>().chunks_exact(height * width);
        let outputs = y.chunks_exact_mut(high * wide);
        let outputs = outputs.zip(each.chunks_exact_mut(high * wide));
        for (plane, (y, each)) in planes.zip(outputs) {
            seen.pool(plane, y, each);
        }
    }
    let y = filled(y, [images, channels, high, wide]);
    (y, Places { shape, each })
}

impl PoolWindows {
    /// Number of windows along a side of this length.
    fn outputs(self, length: usize) -> usize {
        let padded = length + 2 * self.padding;
        if padded < self.size {
            return usize::from(self.ceil);
        }
        let between = padded - self.size;
        if !self.ceil {
            return between / self.stride + 1;
        }
        let count = between.div_ceil(self.stride) + 1;
        // A window that begins behind the end sees nothing.
        count - usize::from((count - 1) * self.stride >= length + self.padding)
    }
}

/// Values of a plane that the windows see, and memory for them.
struct SeenPlane {
    windows: PoolWindows,
    /// Height and width of the plane.
    plane: [usize; 2],
    /// The plane with what its windows see around it, where that is more than the plane.
    around: Option<Vec<f32>>,
    /// Height and width of what is seen.
    sides: [usize; 2],
    /// Position at which every window begins in it.
    begins: Vec<u32>,
    /// Windows in a row.
    wide: usize,
    /// One value of every window.
    values: Vec<f32>,
}

impl SeenPlane {
    fn new(plane: [usize; 2], [high, wide]: [usize; 2], windows: PoolWindows) -> Self {
        let reach = [high, wide].map(|count| (count - 1) * windows.stride + windows.size);
        let more = windows.padding > 0 || reach[0] > plane[0] || reach[1] > plane[1];
        let sides = if more { reach } else { plane };
        let begin = |at: usize| (at / wide * sides[1] + at % wide) * windows.stride;
        Self {
            windows,
            plane,
            around: more.then(|| vec![f32::NEG_INFINITY; sides[0] * sides[1]]),
            sides,
            begins: (0..high * wide).map(|at| begin(at) as u32).collect(),
            wide,
            values: vec![0.0; high * wide],
        }
    }

    /// The largest value of every window of a plane, and its place.
    fn pool(&mut self, plane: &[f32], y: &mut [f32], each: &mut [u32]) {
        let ([_, width], [_, across]) = (self.plane, self.sides);
        let from = self.windows.padding;
        let windows = (self.windows, across, self.wide);
        let Some(around) = &mut self.around else {
            return largest(plane, windows, &self.begins, &mut self.values, y, each);
        };
        let rows = around.chunks_exact_mut(across).skip(from);
        for (row, values) in rows.zip(plane.chunks_exact(width)) {
            let seen = &mut row[from..];
            let count = seen.len().min(width);
            seen[..count].copy_from_slice(&values[..count]);
        }
        largest(around, windows, &self.begins, &mut self.values, y, each);
        for place in each {
            *place = self.in_plane(*place as usize);
        }
    }

    /// The place in the plane of a place in what is seen.
    fn in_plane(&self, seen: usize) -> u32 {
        let ([height, width], from) = (self.plane, self.windows.padding);
        let (row, column) = (seen / self.sides[1], seen % self.sides[1]);
        match (row.checked_sub(from), column.checked_sub(from)) {
            (Some(row), Some(column)) if row < height && column < width => {
                (row * width + column) as u32
            }
            _ => NONE,
        }
    }
}

/// The largest value of every window of what is seen, `across` values wide, and its place: the first of equal
/// ones, and the last that is no number, as in burn and PyTorch. All windows see one of their values after the
/// other; which one is larger is a matter of chance, so nothing is jumped over.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn largest(
    seen: &[f32],
    (windows, across, wide): (PoolWindows, usize, usize),
    begins: &[u32],
    values: &mut [f32],
    y: &mut [f32],
    each: &mut [u32],
) {
    let PoolWindows { size, stride, .. } = windows;
    for inside in (0..size).flat_map(|down| (0..size).map(move |right| down * across + right)) {
        for (row, values) in values.chunks_exact_mut(wide).enumerate() {
            let seen = &seen[row * stride * across + inside..];
            match stride {
                // As a constant the step costs a third.
                2 => {
                    let pairs = values.iter_mut().zip(seen.chunks(2));
                    pairs.for_each(|(value, pair)| *value = pair[0]);
                }
                _ => {
                    let all = values.iter_mut().zip(seen.iter().step_by(stride));
                    all.for_each(|(value, seen)| *value = *seen);
                }
            }
        }
        if inside == 0 {
            y.copy_from_slice(values);
            each.copy_from_slice(begins);
            continue;
        }
        let largest = y.iter_mut().zip(each.iter_mut());
        for ((value, begin), (most, place)) in values.iter().zip(begins).zip(largest) {
            let takes = (*value > *most) | value.is_nan();
            *most = if takes { *value } else { *most };
            *place = if takes { begin + inside as u32 } else { *place };
        }
    }
}

impl Places {
    /// The gradient of what was pooled, from that of the outputs.
    fn back(&self, slope: &FlexTensor) -> FlexTensor {
        let [images, channels, height, width] = self.shape;
        let planes = images * channels;
        let mut x = vec![0.0; planes * height * width];
        let out = (self.each.len() / planes.max(1)).max(1);
        let slopes = slope
            .storage::<f32>()
            .chunks_exact(out)
            .zip(self.each.chunks_exact(out));
        for (x, (slopes, places)) in x.chunks_exact_mut((height * width).max(1)).zip(slopes) {
            for (slope, &place) in slopes.iter().zip(places) {
                if place != NONE {
                    x[place as usize] += slope;
                }
            }
        }
        filled(x, self.shape)
    }
}

fn filled(values: Vec<f32>, shape: [usize; 4]) -> FlexTensor {
    FlexTensor::from_data(TensorData::new(values, shape))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rand_chacha::rand_core::Rng;

    use super::*;
    use crate::device::tests::every;
    use crate::random::{normal, stream};

    fn floats(tensor: Tensor<4>) -> Vec<u32> {
        let values = tensor.into_data().try_into_vec::<f32>().unwrap();
        values.into_iter().map(f32::to_bits).collect()
    }

    /// burn's own operation.
    fn burns(x: Tensor<4>, windows: PoolWindows) -> Tensor<4> {
        let options = MaxPoolOptions::new([windows.size; 2])
            .with_stride([windows.stride; 2])
            .with_padding([windows.padding; 2])
            .with_ceil_mode(windows.ceil);
        max_pool2d(x, options)
    }

    /// Outputs and gradients of both are the same bits.
    fn equal(values: Vec<f32>, shape: [usize; 4], windows: PoolWindows) {
        for device in every() {
            let device = device.tensors().clone().autodiff();
            let data = TensorData::new(values.clone(), shape);
            let x = Tensor::<4>::from_data(data, &device);
            let through = |own: fn(Tensor<4>, PoolWindows) -> Tensor<4>| {
                let x = x.clone().detach().require_grad();
                let y = own(x.clone(), windows);
                let count = y.dims().iter().product::<usize>();
                let slopes: Vec<f32> = (0..count).map(|at| 1.0 + at as f32).collect();
                let slopes = Tensor::<4>::from_data(TensorData::new(slopes, y.dims()), &device);
                let gradients = (y.clone() * slopes).sum().backward();
                (
                    y.dims(),
                    floats(y.inner()),
                    floats(x.grad(&gradients).unwrap()),
                )
            };
            assert_eq!(through(pool), through(burns), "{shape:?} {windows:?}");
            // Without gradients.
            let alone = floats(pool(x.clone().inner(), windows));
            assert_eq!(alone, through(burns).1);
        }
    }

    #[test]
    fn outputs_and_gradients_are_those_of_burns_own_operation() {
        let mut rng = stream(5, "pooling");
        for shape in [[2, 3, 8, 8], [1, 2, 7, 5], [3, 1, 4, 9], [1, 1, 2, 2]] {
            for (size, stride) in [(2, 2), (3, 2), (2, 1), (3, 3), (2, 3), (1, 1)] {
                for padding in 0..=size / 2 {
                    for ceil in [false, true] {
                        if shape[2].min(shape[3]) + 2 * padding < size {
                            continue;
                        }
                        let windows = PoolWindows {
                            size,
                            stride,
                            padding,
                            ceil,
                        };
                        let count = shape.iter().product::<usize>();
                        // Whole numbers, so that many are equal.
                        let values = (0..count).map(|_| (2.0 * normal(&mut rng)).round() as f32);
                        equal(values.collect(), shape, windows);
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_goes_through_and_least_values_have_a_place() {
        let windows = PoolWindows {
            size: 2,
            stride: 2,
            padding: 0,
            ceil: false,
        };
        let mut values = vec![f32::NEG_INFINITY; 16];
        equal(values.clone(), [1, 1, 4, 4], windows);
        let mut rng = stream(6, "pooling");
        for _ in 0..20 {
            let at = (rng.next_u64() % 16) as usize;
            values[at] = [f32::NAN, f32::INFINITY, 0.0, -0.0, 1.0][at % 5];
            equal(values.clone(), [1, 1, 4, 4], windows);
        }
    }
}
