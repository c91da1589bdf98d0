//! Batch normalisation on LibTorch, recorded by its autograd.

use burn_core::backend::LibTorch;
use burn_core::backend::libtorch::TchTensor;
use tch::Tensor;

use super::super::recorded::Recorded;
use super::{NormBackend, NormKernel};

impl NormBackend for LibTorch {
    fn by_batch(
        x: TchTensor,
        weight: TchTensor,
        bias: TchTensor,
        epsilon: f64,
    ) -> (TchTensor, TchTensor, TchTensor) {
        let found = forward(&[x.tensor, weight.tensor, bias.tensor], epsilon);
        let [output, mean, variance] = found.map(TchTensor::new);
        (output, mean, variance)
    }
}

impl NormKernel for LibTorch {
    type Kept = Recorded;

    fn forward(
        x: TchTensor,
        weight: TchTensor,
        bias: TchTensor,
        epsilon: f64,
    ) -> ([TchTensor; 3], Recorded) {
        let mut statistics = None;
        let (output, recorded) = Recorded::of([x, weight, bias], |inputs| {
            let [output, mean, variance] = forward(inputs, epsilon);
            statistics = Some([mean, variance]);
            output
        });
        let statistics = statistics.expect("the way forward was gone");
        // The record needs the mean later, and burn may write into the tensors that it gets: copies.
        let [mean, variance] = statistics.map(|tensor| TchTensor::new(tensor.detach().copy()));
        ([output, mean, variance], recorded)
    }

    fn back(kept: Recorded, slope: TchTensor) -> [TchTensor; 3] {
        kept.back(slope, [true; 3])
            .map(|gradient| gradient.expect("all were asked for"))
    }
}

fn forward([x, weight, bias]: &[Tensor; 3], epsilon: f64) -> [Tensor; 3] {
    let none = None::<&Tensor>;
    let (output, mean, inverse) =
        x.native_batch_norm(Some(weight), Some(bias), none, none, true, 0.0, epsilon);
    // It gives one over the root of variance plus epsilon.
    let variance = inverse.detach().pow_tensor_scalar(-2.0) - epsilon;
    [output, mean, variance.clamp_min(0.0)]
}
