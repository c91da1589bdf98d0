//! A step on rows that pass through models of their own and are normalised together.

use burn_core::tensor::Tensor;
use methods::Role;
use methods::learner::RowsOfModel;

use super::NetworkModel;
use super::fit::{backward, leaf};
use super::forward::ForwardRows;
use crate::data::Rows;
use crate::models::burn_optimiser::floats;
use crate::models::{Loss, NamedValues};
use crate::random::stream;

impl NetworkModel {
    /// One step of plain descent of all parts; the tensors of each after it, and the mean loss of
    /// all rows before it.
    pub(super) fn step_jointly(
        &self,
        parts: &[RowsOfModel<'_>],
        rows: &Rows,
        loss: Loss,
        rate: f64,
        seed: u64,
    ) -> (Vec<NamedValues>, f64) {
        let _slot = self.device.slot();
        let buffer: Vec<bool> = self
            .plan
            .tensors
            .iter()
            .map(|slot| slot.spec.role == Role::Buffer)
            .collect();
        let leaves: Vec<Vec<Tensor<1>>> = parts
            .iter()
            .map(|part| {
                let tensors = self.load(part.model).into_iter().zip(&buffer);
                tensors
                    .map(|(tensor, &buffer)| leaf(&tensor, !buffer))
                    .collect()
            })
            .collect();
        let own = parts.iter().zip(&leaves).map(|(part, leaves)| ForwardRows {
            rows: part.rows.len(),
            tensors: leaves,
        });
        let own: Vec<ForwardRows<'_>> = own.collect();
        let picked: Vec<u32> = parts.iter().flat_map(|part| part.rows).copied().collect();
        let mut rng = stream(seed, "dropout");
        let passed = backward(self, &own, &rows.pick(&picked), loss, &mut rng);
        let mut gradients = passed.gradients;
        let models = leaves.into_iter().map(|leaves| {
            let mut tensors: Vec<Tensor<1>> = leaves
                .into_iter()
                .map(|leaf| {
                    let gradient = gradients.as_mut().and_then(|all| leaf.grad_remove(all));
                    let value = leaf.inner();
                    match gradient {
                        Some(gradient) => value - gradient.mul_scalar(rate),
                        None => value,
                    }
                })
                .collect();
            for (position, value) in &passed.statistics {
                tensors[*position] = value.clone();
            }
            let slots = self.plan.tensors.iter().zip(tensors);
            slots
                .map(|(slot, tensor)| (slot.spec.name.clone(), floats(tensor)))
                .collect()
        });
        (models.collect(), passed.loss)
    }
}
