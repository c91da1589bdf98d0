//! Training of a network: steps with gradients from autodiff.

use burn_core::tensor::{Gradients, Tensor, TensorData};
use methods::learner::{GradientModifier, Optimiser};
use methods::{Params, Role};
use rand_chacha::ChaCha8Rng;

use super::NetworkModel;
use super::forward::{ForwardRows, Pass, TrainingPass};
use crate::data::Rows;
use crate::device::DeviceSlot;
use crate::models::burn_optimiser::{BurnOptimiser, OptimiserMemory, TensorModification, floats};
use crate::models::{Loss, ModelFit, NamedValues};
use crate::random::stream;

/// The weights stay on the device from step to step; what comes to the host in every step is the
/// outputs, of which [`Loss`] computes value and slopes in `f64` as for every other family.
pub(super) struct NetworkFit {
    network: NetworkModel,
    /// Flat, in the order of the plan.
    tensors: Vec<Tensor<1>>,
    memory: Vec<OptimiserMemory<1>>,
    /// One for every tensor, or none.
    modifications: Vec<TensorModification<1>>,
    loss: Loss,
    optimiser: BurnOptimiser,
    rng: ChaCha8Rng,
    _slot: DeviceSlot,
}

impl NetworkFit {
    pub(super) fn new(
        network: NetworkModel,
        start: &Params,
        loss: Loss,
        optimiser: &Optimiser,
        modifier: Option<&GradientModifier<'_>>,
        seed: u64,
    ) -> Self {
        let slot = network.device.slot();
        let slots = &network.plan.tensors;
        let modifications = |modifier| {
            let each = slots.iter().map(|slot| {
                let shape = [slot.spec.len()];
                TensorModification::new(modifier, &slot.spec.name, shape, network.device.tensors())
            });
            each.collect()
        };
        Self {
            tensors: network.load(start),
            memory: slots.iter().map(|_| OptimiserMemory::Empty).collect(),
            modifications: modifier.map_or(Vec::new(), modifications),
            loss,
            optimiser: BurnOptimiser::new(optimiser),
            rng: stream(seed, "dropout"),
            network,
            _slot: slot,
        }
    }

    /// Returns whether a tensor is moved by its gradient.
    fn moves(&self, position: usize) -> bool {
        let buffer = self.network.plan.tensors[position].spec.role == Role::Buffer;
        !buffer
            && self
                .modifications
                .get(position)
                .is_none_or(|own| !own.frozen)
    }
}

/// A tensor of which a gradient is asked for or not. Below the lowest that moves, burn then goes
/// forward only.
pub(super) fn leaf(tensor: &Tensor<1>, moves: bool) -> Tensor<1> {
    tensor.clone().autodiff().set_require_grad(moves)
}

/// Result of a pass forward and back through a network.
pub(super) struct Passed {
    /// The mean loss of the rows.
    pub(super) loss: f64,
    /// Gradients of the loss; `None` if no tensor asks for one.
    pub(super) gradients: Option<Gradients>,
    /// The new running statistics, by position of the tensor.
    pub(super) statistics: Vec<(usize, Tensor<1>)>,
}

/// Sends rows through a network and back, in parts with tensors of their own.
pub(super) fn backward(
    network: &NetworkModel,
    parts: &[ForwardRows<'_>],
    rows: &Rows,
    loss: Loss,
    rng: &mut ChaCha8Rng,
) -> Passed {
    let mut statistics = Vec::new();
    let mut pass = Pass {
        parts,
        training: Some(TrainingPass {
            rng,
            statistics: &mut statistics,
        }),
    };
    let input = network.images(rows.all().to_vec()).autodiff();
    let output = pass.all(&network.plan.ops, input);
    let outputs: Vec<f64> = floats(output.clone().inner())
        .into_iter()
        .map(f64::from)
        .collect();
    let mut slopes = vec![0.0; outputs.len()];
    let loss = loss.mean(&outputs, rows.targets(), &mut slopes);
    let gradients = output.is_tracked().then(|| {
        let slopes: Vec<f32> = slopes.into_iter().map(|slope| slope as f32).collect();
        let slopes = TensorData::new(slopes, output.dims());
        let slopes = Tensor::from_data(slopes, &output.device());
        // The gradient of this sum is the loss's: slopes are constants in it.
        (output * slopes).sum().backward()
    });
    Passed {
        loss,
        gradients,
        statistics,
    }
}

impl ModelFit for NetworkFit {
    fn step(&mut self, rows: &Rows, batch: &[u32]) -> f64 {
        let rows = rows.pick(batch);
        let leaves: Vec<Tensor<1>> = (0..self.tensors.len())
            .map(|position| leaf(&self.tensors[position], self.moves(position)))
            .collect();
        let parts = [ForwardRows {
            rows: rows.len(),
            tensors: &leaves,
        }];
        let passed = backward(&self.network, &parts, &rows, self.loss, &mut self.rng);
        if let Some(mut gradients) = passed.gradients {
            let each = leaves.into_iter().enumerate().map(|(position, leaf)| {
                let gradient = leaf.grad_remove(&mut gradients);
                (position, gradient)
            });
            let gradients: Vec<_> = each.collect();
            for (position, gradient) in gradients {
                let Some(mut gradient) = gradient else {
                    continue;
                };
                let tensor = &mut self.tensors[position];
                if let Some(modification) = self.modifications.get(position) {
                    match modification.change(tensor, gradient) {
                        Some(changed) => gradient = changed,
                        None => continue,
                    }
                }
                let decayed = self.network.plan.tensors[position].decayed;
                let memory = &mut self.memory[position];
                self.optimiser.step(decayed, tensor, gradient, memory);
            }
        }
        for (position, value) in passed.statistics {
            self.tensors[position] = value;
        }
        passed.loss
    }

    fn finish(self: Box<Self>) -> NamedValues {
        let slots = self.network.plan.tensors.iter();
        slots
            .zip(self.tensors)
            .map(|(slot, tensor)| (slot.spec.name.clone(), floats(tensor)))
            .collect()
    }
}
