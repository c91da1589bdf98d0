//! Convolutions on LibTorch, recorded by its autograd.

use burn_core::backend::LibTorch;
use burn_core::backend::libtorch::TchTensor;
use tch::Tensor;

use super::super::recorded::Recorded;
use super::{ConvolutionBackend, ConvolutionKernel, Shifts, WantedGradients};

impl ConvolutionBackend for LibTorch {
    fn by_kernel(
        x: TchTensor,
        weight: TchTensor,
        bias: TchTensor,
        stride: usize,
        padding: usize,
    ) -> TchTensor {
        let tensors = [x.tensor, weight.tensor, bias.tensor];
        TchTensor::new(forward(&tensors, [stride, padding]))
    }
}

impl ConvolutionKernel for LibTorch {
    type Kept = Recorded;

    fn forward(
        x: TchTensor,
        weight: TchTensor,
        bias: TchTensor,
        shifts: Shifts,
    ) -> (TchTensor, Recorded) {
        Recorded::of([x, weight, bias], |inputs| forward(inputs, shifts))
    }

    fn back(kept: Recorded, slope: TchTensor, wanted: WantedGradients) -> [Option<TchTensor>; 3] {
        kept.back(slope, wanted)
    }
}

fn forward([x, weight, bias]: &[Tensor; 3], [stride, padding]: Shifts) -> Tensor {
    let [stride, padding] = [stride, padding].map(|shift| [shift as i64; 2]);
    x.conv2d(weight, Some(bias), stride, padding, [1, 1], 1)
}
