#![allow(clippy::unwrap_used)]
use burn_core::tensor::{Device, TensorData};

use super::*;
use crate::device::tests::every;
use crate::random::{normal, stream};

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

#[test]
fn outputs_statistics_and_gradients_equal_those_of_burn() {
    for device in every() {
        for shape in [[3, 2, 5, 4], [1, 4, 1, 3], [7, 1, 4, 8], [1, 3, 1, 1]] {
            equals_burns_own(shape, device.tensors());
        }
    }
}

fn equals_burns_own(shape: [usize; 4], device: &Device) {
    let mut rng = stream(3, "norm");
    let device = device.clone().autodiff();
    let mut drawn = |shape: [usize; 4], center: f32| {
        let count = shape.iter().product::<usize>();
        let values = (0..count).map(|_| center + normal(&mut rng) as f32);
        let values = TensorData::new(values.collect::<Vec<f32>>(), shape);
        Tensor::<4>::from_data(values, &device)
    };
    let channels = [shape[1]];
    let x = drawn(shape, 2.0);
    let weight = drawn([1, 1, 1, shape[1]], 1.0).reshape(channels);
    let bias = drawn([1, 1, 1, shape[1]], 0.0).reshape(channels);
    let slope = drawn(shape, 0.5);
    let through = |own: bool| {
        let x = x.clone().require_grad();
        let weight = weight.clone().detach().require_grad();
        let bias = bias.clone().detach().require_grad();
        let all = (x.clone(), weight.clone(), bias.clone());
        let (output, mean, variance) = if own {
            let found = normalise(all.0, all.1, all.2, 1e-5);
            (found.output, found.mean, found.variance)
        } else {
            let found = batch_norm_train(all.0, all.1, all.2, 1e-5);
            (found.output, found.mean, found.variance)
        };
        let gradients = (output.clone() * slope.clone()).sum().backward();
        [
            values(output.inner()),
            values(mean.inner()),
            values(variance.inner()),
            values(x.grad(&gradients).unwrap()),
            values(weight.grad(&gradients).unwrap()),
            values(bias.grad(&gradients).unwrap()),
        ]
    };
    for (own, burns) in through(true).into_iter().zip(through(false)) {
        assert_eq!(own.len(), burns.len());
        for (own, burns) in own.iter().zip(&burns) {
            let close = (own - burns).abs() < 1e-4 * burns.abs().max(1.0);
            assert!(close, "{shape:?} on {device:?}: {own} {burns}");
        }
    }
}
