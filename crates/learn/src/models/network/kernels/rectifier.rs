//! ReLU on LibTorch.
//!
//! burn goes back through it by a comparison and a fill under a mask, which LibTorch computes value by
//! value. LibTorch has one operation for both.

use burn_core::backend::autodiff::checkpoint::base::Checkpointer;
use burn_core::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_core::backend::autodiff::grads::Gradients;
use burn_core::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn_core::backend::libtorch::TchTensor;
use burn_core::backend::tensor::FloatTensor;
use burn_core::backend::{
    Autodiff, Backend, Dispatch, DispatchDevice, LibTorch, backend_extension,
};
use burn_core::tensor::Tensor;
use burn_core::tensor::activation::relu;

/// The values of `x` above 0, and 0 for the others.
pub(crate) fn rectify(x: Tensor<4>) -> Tensor<4> {
    let device = x.device().inner();
    match device.as_dispatch() {
        DispatchDevice::LibTorch(_) => {
            Tensor::from_dispatch(Dispatch::by_threshold(x.into_dispatch()))
        }
        _ => relu(x),
    }
}

/// The operation as an extension of burn's backend.
#[backend_extension(LibTorch, Autodiff)]
trait Rectifier: Backend {
    /// ReLU.
    fn by_threshold(x: FloatTensor<Self>) -> FloatTensor<Self>;
}

impl Rectifier for LibTorch {
    fn by_threshold(x: TchTensor) -> TchTensor {
        TchTensor::new(x.tensor.relu())
    }
}

impl<C: CheckpointStrategy> Rectifier for Autodiff<LibTorch, C> {
    fn by_threshold(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let prepared = Through.prepare::<C>([x.node()]).compute_bound().stateful();
        let output = LibTorch::by_threshold(x.into_primitive());
        match prepared {
            // Its output is above 0 where its input is, and the next operation keeps it anyway.
            OpsKind::Tracked(prepared) => prepared.finish(output.clone(), output),
            OpsKind::UnTracked(prepared) => prepared.finish(output),
        }
    }
}

/// The way back through a ReLU.
#[derive(Debug)]
struct Through;

impl Backward<LibTorch, 1> for Through {
    type State = TchTensor;

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        gradients: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let slope = gradients.consume::<LibTorch>(&ops.node);
        if let [Some(node)] = ops.parents {
            let gradient = ops.state.tensor.threshold_backward(&slope.tensor, 0.0);
            gradients.register::<LibTorch>(node.id, TchTensor::new(gradient));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::device::tests::every;

    #[test]
    fn outputs_and_gradients_are_those_of_burns_own_operation() {
        let floats = |tensor: Tensor<4>| tensor.into_data().try_into_vec::<f32>().unwrap();
        for device in every() {
            let device = device.tensors().clone().autodiff();
            let x = Tensor::<1>::from_floats([-2.0, -0.0, 0.0, 1e-30, 0.5, 3.0], &device);
            let slope = Tensor::<1>::from_floats([1.0, 2.0, 3.0, 4.0, 5.0, -6.0], &device);
            let slope = slope.reshape([1, 2, 3, 1]);
            let through = |own: fn(Tensor<4>) -> Tensor<4>| {
                let x = x.clone().reshape([1, 2, 3, 1]).detach().require_grad();
                let y = own(x.clone());
                let gradients = (y.clone() * slope.clone()).sum().backward();
                (floats(y.inner()), floats(x.grad(&gradients).unwrap()))
            };
            let (outputs, slopes) = through(rectify);
            assert_eq!((outputs, slopes.clone()), through(relu));
            assert_eq!(slopes, [0.0, 0.0, 0.0, 4.0, 5.0, -6.0]);
        }
    }
}
