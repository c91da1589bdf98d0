//! Batch normalisation in training.
//!
//! burn's has some ten operations on whole tensors forward and as many back, each of which writes one.
//! On the processor there are two loops over every channel forward and two back ([`processor`]), on
//! LibTorch its own kernels.

#[cfg(feature = "tch")]
mod libtorch;
mod processor;

use std::fmt::Debug;

use burn_core::backend::autodiff::checkpoint::base::Checkpointer;
use burn_core::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_core::backend::autodiff::grads::Gradients;
use burn_core::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn_core::backend::tensor::FloatTensor;
use burn_core::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn_core::tensor::Tensor;
use burn_core::tensor::module::batch_norm_train;

use super::has_kernels;

/// Batch after its normalisation, and its statistics before.
pub(crate) struct Normalised {
    pub(crate) output: Tensor<4>,
    /// Of every channel; without gradients.
    pub(crate) mean: Tensor<1>,
    /// Of every channel, divided by the number of its values; without gradients.
    pub(crate) variance: Tensor<1>,
}

/// Every channel of `x`, `[rows, channels, height, width]`, minus its mean, divided by the root of its
/// variance plus `epsilon`, times its weight, plus its bias.
pub(crate) fn normalise(
    x: Tensor<4>,
    weight: Tensor<1>,
    bias: Tensor<1>,
    epsilon: f64,
) -> Normalised {
    if !has_kernels(x.device()) {
        let found = batch_norm_train(x, weight, bias, epsilon);
        return Normalised {
            output: found.output,
            mean: found.mean,
            variance: found.variance,
        };
    }
    let (output, mean, variance) = Dispatch::by_batch(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        epsilon,
    );
    Normalised {
        output: Tensor::from_dispatch(output),
        mean: Tensor::from_dispatch(mean),
        variance: Tensor::from_dispatch(variance),
    }
}

/// The operation as an extension of burn's backends.
#[backend_extension(Flex, LibTorch: cfg(feature = "tch"), Autodiff)]
trait NormBackend: Backend {
    /// Output, mean and variance.
    fn by_batch(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epsilon: f64,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// Normalisation and its gradients on a backend.
trait NormKernel: Backend {
    /// Values of the forward pass that the backward pass needs.
    type Kept: Clone + Send + Debug + 'static;

    /// Output, mean and variance.
    fn forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epsilon: f64,
    ) -> ([FloatTensor<Self>; 3], Self::Kept);

    /// The gradients for input, weight and bias from that of the output.
    fn back(kept: Self::Kept, slope: FloatTensor<Self>) -> [FloatTensor<Self>; 3];
}

impl<B: NormKernel + NormBackend, C: CheckpointStrategy> NormBackend for Autodiff<B, C> {
    fn by_batch(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        epsilon: f64,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let prepared = NormBackward
            .prepare::<C>([x.node(), weight.node(), bias.node()])
            .compute_bound()
            .stateful();
        let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
        let (output, mean, variance) = match prepared {
            OpsKind::Tracked(prepared) => {
                let ([output, mean, variance], kept) = B::forward(x, weight, bias, epsilon);
                (prepared.finish(kept, output), mean, variance)
            }
            OpsKind::UnTracked(prepared) => {
                let (output, mean, variance) = B::by_batch(x, weight, bias, epsilon);
                (prepared.finish(output), mean, variance)
            }
        };
        let [mean, variance] = [mean, variance].map(FloatTensor::<Self>::new);
        (output, mean, variance)
    }
}

/// The way back through a normalisation.
#[derive(Debug)]
struct NormBackward;

impl<B: NormKernel> Backward<B, 3> for NormBackward {
    type State = B::Kept;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let slope = gradients.consume::<B>(&ops.node);
        let found = B::back(ops.state, slope);
        for (node, gradient) in ops.parents.into_iter().zip(found) {
            if let Some(node) = node {
                gradients.register::<B>(node.id, gradient);
            }
        }
    }
}

#[cfg(test)]
mod tests;
