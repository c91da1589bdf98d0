//! Convolutions.
//!
//! burn goes back through a convolution by convolutions with the images as windows, on every backend.
//! Their products are long and thin. On the processor all three products of a step, for the outputs, the
//! weights and the inputs, are matrix products as wide as a tile of outputs ([`processor`]); on LibTorch
//! they are LibTorch's own.

mod columns;
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
use burn_core::tensor::module::conv2d;
use burn_core::tensor::ops::ConvOptions;

use super::has_kernels;

/// Stride and padding, in both directions.
type Shifts = [usize; 2];
/// `true` for each of input, weight and bias whose gradient is asked for.
type WantedGradients = [bool; 3];

/// The convolution of `x`, `[images, channels, height, width]`, with `weight`, `[outputs, channels,
/// kernel, kernel]`, plus `bias`, `[outputs]`, if there is one.
pub(crate) fn convolve(
    x: Tensor<4>,
    weight: Tensor<4>,
    bias: Option<Tensor<1>>,
    stride: usize,
    padding: usize,
) -> Tensor<4> {
    if !has_kernels(x.device()) {
        let options = ConvOptions::new([stride; 2], [padding; 2], [1; 2], 1);
        return conv2d(x, weight, bias, options);
    }
    let bias = bias.unwrap_or_else(|| Tensor::zeros([weight.dims()[0]], &weight.device()));
    Tensor::from_dispatch(Dispatch::by_kernel(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        stride,
        padding,
    ))
}

/// The operation as an extension of burn's backends.
#[backend_extension(Flex, LibTorch: cfg(feature = "tch"), Autodiff)]
trait ConvolutionBackend: Backend {
    /// A convolution.
    fn by_kernel(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        stride: usize,
        padding: usize,
    ) -> FloatTensor<Self>;
}

/// Convolution and its gradients on a backend.
trait ConvolutionKernel: Backend {
    /// Values of the forward pass that the backward pass needs.
    type Kept: Clone + Send + Debug + 'static;

    /// The outputs.
    fn forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        shifts: Shifts,
    ) -> (FloatTensor<Self>, Self::Kept);

    /// The gradients for input, weight and bias, as far as they are wanted, from that of the outputs.
    fn back(
        kept: Self::Kept,
        slope: FloatTensor<Self>,
        wanted: WantedGradients,
    ) -> [Option<FloatTensor<Self>>; 3];
}

impl<B: ConvolutionKernel + ConvolutionBackend, C: CheckpointStrategy> ConvolutionBackend
    for Autodiff<B, C>
{
    fn by_kernel(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        stride: usize,
        padding: usize,
    ) -> FloatTensor<Self> {
        let prepared = ConvolutionBackward
            .prepare::<C>([x.node(), weight.node(), bias.node()])
            .compute_bound()
            .stateful();
        let [x, weight, bias] = [x, weight, bias].map(|tensor| tensor.into_primitive());
        match prepared {
            OpsKind::Tracked(prepared) => {
                let (y, kept) = B::forward(x, weight, bias, [stride, padding]);
                prepared.finish(kept, y)
            }
            OpsKind::UnTracked(prepared) => {
                prepared.finish(B::by_kernel(x, weight, bias, stride, padding))
            }
        }
    }
}

/// The way back through a convolution.
#[derive(Debug)]
struct ConvolutionBackward;

impl<B: ConvolutionKernel> Backward<B, 3> for ConvolutionBackward {
    type State = B::Kept;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let slope = gradients.consume::<B>(&ops.node);
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let found = B::back(ops.state, slope, wanted);
        for (node, gradient) in ops.parents.into_iter().zip(found) {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                gradients.register::<B>(node.id, gradient);
            }
        }
    }
}

#[cfg(test)]
mod tests;
