//! burn's optimisers on single tensors, for the families that run on burn.
//!
//! They keep weights and state in `f32` on the device. The optimisers over slices
//! ([`OptimiserState`](methods::learner::OptimiserState)) keep them in `f64`, so the two differ in
//! last bits and cannot take each other's place (`models/tests.rs` compares them).

use burn_core::tensor::{Device, Tensor, TensorData};
use burn_optim::{Adam, AdamConfig, Optimizer, Sgd, SgdConfig};
use burn_optim::{decay::WeightDecayConfig, momentum::MomentumConfig};
use methods::Params;
use methods::learner::{ADAM, GradientModifier, Optimiser};

/// Optimiser of a training by tensors: those that are decayed, and those that are not.
pub(super) struct BurnOptimiser {
    rate: f64,
    decayed: OptimiserKind,
    plain: OptimiserKind,
}

enum OptimiserKind {
    Sgd(Sgd),
    Adam(Adam),
}

/// The state that an optimiser keeps of one tensor.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for every tensor, and tensors are larger"
)]
pub(super) enum OptimiserMemory<const D: usize> {
    /// No step was taken yet, or the optimiser keeps nothing.
    Empty,
    Sgd(<Sgd as Optimizer>::State<D>),
    Adam(<Adam as Optimizer>::State<D>),
}

impl BurnOptimiser {
    pub(super) fn new(optimiser: &Optimiser) -> Self {
        match *optimiser {
            Optimiser::Sgd {
                rate,
                momentum,
                weight_decay,
            } => {
                let kind = |decay| {
                    let config = SgdConfig::new()
                        .with_momentum((momentum > 0.0).then_some(MomentumConfig {
                            momentum,
                            dampening: 0.0,
                            nesterov: false,
                        }))
                        .with_weight_decay(penalty(decay));
                    OptimiserKind::Sgd(config.build())
                };
                Self {
                    rate,
                    decayed: kind(weight_decay),
                    plain: kind(0.0),
                }
            }
            Optimiser::Adam { rate, weight_decay } => {
                let kind = |decay| {
                    let config = AdamConfig::new()
                        .with_beta_1(ADAM.0 as f32)
                        .with_beta_2(ADAM.1 as f32)
                        .with_epsilon(ADAM.2 as f32)
                        .with_weight_decay(penalty(decay));
                    OptimiserKind::Adam(config.build())
                };
                Self {
                    rate,
                    decayed: kind(weight_decay),
                    plain: kind(0.0),
                }
            }
        }
    }

    /// One step of one tensor against `gradient`.
    pub(super) fn step<const D: usize>(
        &self,
        decayed: bool,
        tensor: &mut Tensor<D>,
        gradient: Tensor<D>,
        memory: &mut OptimiserMemory<D>,
    ) {
        // Handing over the only reference lets burn work in place.
        let value = std::mem::replace(tensor, Tensor::empty([0; D], &gradient.device()));
        let kind = if decayed { &self.decayed } else { &self.plain };
        let past = std::mem::replace(memory, OptimiserMemory::Empty);
        (*tensor, *memory) = match kind {
            OptimiserKind::Sgd(rule) => {
                let past = match past {
                    OptimiserMemory::Sgd(past) => Some(past),
                    _ => None,
                };
                let (value, next) = rule.step(self.rate, value, gradient, past);
                (
                    value,
                    next.map_or(OptimiserMemory::Empty, OptimiserMemory::Sgd),
                )
            }
            OptimiserKind::Adam(rule) => {
                let past = match past {
                    OptimiserMemory::Adam(past) => Some(past),
                    _ => None,
                };
                let (value, next) = rule.step(self.rate, value, gradient, past);
                (
                    value,
                    next.map_or(OptimiserMemory::Empty, OptimiserMemory::Adam),
                )
            }
        };
    }
}

fn penalty(decay: f64) -> Option<WeightDecayConfig> {
    (decay > 0.0).then(|| WeightDecayConfig::new(decay as f32))
}

/// The part of a [`GradientModifier`] that concerns one tensor.
pub(super) struct TensorModification<const D: usize> {
    mu: f64,
    anchor: Option<Tensor<D>>,
    shift: Option<Tensor<D>>,
    pub(super) frozen: bool,
}

impl<const D: usize> TensorModification<D> {
    pub(super) fn new(
        modifier: &GradientModifier<'_>,
        name: &str,
        shape: [usize; D],
        device: &Device,
    ) -> Self {
        let (shift, frozen) = (modifier.shift, modifier.frozen);
        Self {
            mu: modifier.mu,
            anchor: tensor(modifier.anchor, name, shape, device),
            shift: shift.and_then(|shift| tensor(shift, name, shape, device)),
            frozen: frozen.is_some_and(|frozen| frozen.position(name).is_some()),
        }
    }

    /// The changed gradient at `value`; `None` where the tensor is frozen.
    pub(super) fn change(&self, value: &Tensor<D>, mut gradient: Tensor<D>) -> Option<Tensor<D>> {
        if self.frozen {
            return None;
        }
        if let Some(anchor) = &self.anchor {
            gradient = gradient + (value.clone() - anchor.clone()).mul_scalar(self.mu);
        }
        if let Some(shift) = &self.shift {
            gradient = gradient + shift.clone();
        }
        Some(gradient)
    }
}

/// The values of that name on the device, if there are any.
pub(super) fn tensor<const D: usize>(
    from: &Params,
    name: &str,
    shape: [usize; D],
    device: &Device,
) -> Option<Tensor<D>> {
    let values = from.tensor(name)?.to_vec();
    Some(Tensor::from_data(TensorData::new(values, shape), device))
}

/// The values of a tensor, row-major.
pub(super) fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor
        .into_data()
        .try_into_vec::<f32>()
        .expect("the device computes in f32")
}

/// The values of a matrix as `f64`, row-major.
pub(super) fn host(tensor: Tensor<2>) -> Vec<f64> {
    floats(tensor).into_iter().map(f64::from).collect()
}

pub(super) fn matrix(values: Vec<f32>, rows: usize, columns: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, [rows, columns]), device)
}
