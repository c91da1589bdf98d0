//! Operations recorded by LibTorch's autograd.
//!
//! LibTorch's functions for the gradients of a convolution or a normalisation have no binding in Rust.
//! Its autograd calls them: the way forward is recorded on tensors that share the memory of burn's, and
//! the way back asks for the gradients of the recorded output.

use burn_core::backend::libtorch::TchTensor;
use tch::Tensor;

/// An operation as LibTorch's autograd recorded it.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    inputs: [TchTensor; 3],
    output: TchTensor,
    /// burn's tensors with the same memory: as long as they are there, burn does not write into it.
    _shared: [TchTensor; 3],
}

impl Recorded {
    /// The output of `operation` on `shared`, and the record.
    pub(super) fn of(
        shared: [TchTensor; 3],
        operation: impl FnOnce(&[Tensor; 3]) -> Tensor,
    ) -> (TchTensor, Self) {
        let inputs = shared.each_ref().map(|own| own.tensor.detach());
        let inputs = inputs.map(|input| input.set_requires_grad(true));
        let output = operation(&inputs);
        let recorded = Self {
            output: TchTensor::new(output.shallow_clone()),
            inputs: inputs.map(TchTensor::new),
            _shared: shared,
        };
        (TchTensor::new(output.detach()), recorded)
    }

    /// The gradients for the inputs for which they are wanted, from that of the output.
    pub(super) fn back(self, slope: TchTensor, wanted: [bool; 3]) -> [Option<TchTensor>; 3] {
        let asked = self.inputs.iter().zip(wanted).filter(|(_, wanted)| *wanted);
        let asked: Vec<&Tensor> = asked.map(|(input, _)| &input.tensor).collect();
        // LibTorch starts with ones: times the slopes they are the slopes.
        let weighted = &self.output.tensor * slope.tensor;
        let mut found = Tensor::run_backward(&[weighted], &asked, false, false).into_iter();
        wanted.map(|wanted| wanted.then(|| found.next().map(TchTensor::new)).flatten())
    }
}
