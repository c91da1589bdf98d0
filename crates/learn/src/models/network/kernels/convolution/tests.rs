#![allow(clippy::unwrap_used)]
use burn_core::tensor::{Device, TensorData};
use rand_chacha::ChaCha8Rng;

use super::columns::ConvolutionSizes;
use super::*;
use crate::device::tests::every;
use crate::random::{normal, stream};

/// Sizes of every kind: one tile of several images, several tiles of one, strides, paddings beyond the
/// window, windows as large as the image.
const CASES: [ConvolutionSizes; 8] = [
    of([3, 2, 5, 4], [3, 3, 1, 1]),
    of([2, 1, 3, 3], [2, 3, 1, 0]),
    of([5, 3, 16, 16], [4, 5, 1, 2]),
    of([2, 2, 40, 30], [3, 3, 1, 1]),
    of([3, 2, 9, 7], [2, 3, 2, 1]),
    of([2, 3, 8, 8], [5, 1, 2, 0]),
    of([2, 2, 4, 6], [3, 2, 3, 2]),
    of([70, 1, 2, 2], [2, 5, 1, 2]),
];

const fn of(
    [images, channels, height, width]: [usize; 4],
    [outputs, kernel, stride, padding]: [usize; 4],
) -> ConvolutionSizes {
    ConvolutionSizes {
        images,
        channels,
        height,
        width,
        outputs,
        kernel,
        stride,
        padding,
    }
}

fn drawn(rng: &mut ChaCha8Rng, shape: [usize; 4], device: &Device) -> Tensor<4> {
    let values = (0..shape.iter().product()).map(|_| normal(rng) as f32);
    let data = TensorData::new(values.collect::<Vec<f32>>(), shape);
    Tensor::from_data(data, &device.clone().autodiff())
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

#[test]
fn outputs_and_gradients_are_those_of_burns_own_convolution() {
    for device in every() {
        CASES
            .iter()
            .for_each(|sizes| equals_burns_own(sizes, device.tensors()));
    }
}

fn equals_burns_own(sizes: &ConvolutionSizes, device: &Device) {
    let mut rng = stream(3, "convolution");
    let of_x = [sizes.images, sizes.channels, sizes.height, sizes.width];
    let of_weight = [sizes.outputs, sizes.channels, sizes.kernel, sizes.kernel];
    let x = drawn(&mut rng, of_x, device);
    let weight = drawn(&mut rng, of_weight, device);
    let bias = drawn(&mut rng, [1, 1, 1, sizes.outputs], device).reshape([sizes.outputs]);
    let slope = [sizes.images, sizes.outputs, sizes.high(), sizes.wide()];
    let slope = drawn(&mut rng, slope, device).inner();
    let through = |own: bool, moves: [bool; 3]| {
        let x = x.clone().set_require_grad(moves[0]);
        let weight = weight.clone().set_require_grad(moves[1]);
        let bias = bias.clone().detach().set_require_grad(moves[2]);
        let all = (x.clone(), weight.clone(), Some(bias.clone()));
        let y = if own {
            convolve(all.0, all.1, all.2, sizes.stride, sizes.padding)
        } else {
            let (stride, padding) = ([sizes.stride; 2], [sizes.padding; 2]);
            let options = ConvOptions::new(stride, padding, [1; 2], 1);
            conv2d(all.0, all.1, all.2, options)
        };
        let slope = Tensor::from_inner(slope.clone());
        let gradients = (y.clone() * slope).sum().backward();
        [
            Some(values(y.inner())),
            x.grad(&gradients).map(values),
            weight.grad(&gradients).map(values),
            bias.grad(&gradients).map(values),
        ]
    };
    for moves in [[true; 3], [false, true, true], [true, false, false]] {
        for (own, burns) in through(true, moves).into_iter().zip(through(false, moves)) {
            assert_eq!(own.is_some(), burns.is_some());
            let (own, burns) = (own.unwrap_or_default(), burns.unwrap_or_default());
            assert_eq!(own.len(), burns.len());
            let most = burns
                .iter()
                .fold(1.0f32, |most, value| most.max(value.abs()));
            for (own, burns) in own.iter().zip(&burns) {
                let close = (own - burns).abs() < 1e-4 * most;
                assert!(close, "{sizes:?} on {device:?}: {own} {burns}");
            }
        }
    }
}

#[test]
fn tiles_hold_every_output_once() {
    for sizes in CASES {
        let count = sizes.images * sizes.outputs * sizes.high() * sizes.wide();
        let whole: Vec<f32> = (0..count).map(|at| at as f32 + 1.0).collect();
        let mut found = vec![0.0; count];
        for tile in sizes.tiles() {
            let none = vec![0.0; sizes.outputs];
            sizes.put(&tile, &sizes.part(&tile, &whole), &none, &mut found);
        }
        assert_eq!(found, whole, "{sizes:?}");
        let columns: usize = sizes.tiles().iter().map(|tile| sizes.columns(tile)).sum();
        assert_eq!(columns * sizes.outputs, count);
    }
}
