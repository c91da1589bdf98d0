//! The optimisers over plain slices of `f64`: SGD and Adam, with or without a gradient modifier.
//!
//! For models too small for a tensor framework, and for strategies that take the steps themselves.

use super::{GradientModifier, Optimiser};

/// β₁ and β₂ of Adam (Kingma & Ba 2015), and its ε.
pub const ADAM: (f64, f64, f64) = (0.9, 0.999, 1e-8);

/// The part of a [`GradientModifier`] that concerns one value.
#[derive(Debug, Clone, Copy, Default)]
struct Modification {
    mu: f64,
    anchor: f64,
    shift: f64,
    frozen: bool,
}

/// An optimiser with its state over a fixed number of values.
#[derive(Debug, Clone)]
pub struct OptimiserState {
    optimiser: Optimiser,
    /// `true` for each value that is subject to weight decay.
    decayed: Vec<bool>,
    steps: i32,
    /// Velocity, or Adam's first moment.
    first: Vec<f64>,
    /// Adam's second moment; empty for SGD.
    second: Vec<f64>,
    /// One for every value, or none.
    modifications: Vec<Modification>,
}

impl OptimiserState {
    /// At rest, over one value for every entry of `decayed`, which tells whether the value is
    /// subject to weight decay.
    pub fn new(optimiser: &Optimiser, decayed: Vec<bool>) -> Self {
        let len = decayed.len();
        Self {
            optimiser: optimiser.clone(),
            decayed,
            steps: 0,
            first: vec![0.0; len],
            second: match optimiser {
                Optimiser::Sgd { .. } => Vec::new(),
                Optimiser::Adam { .. } => vec![0.0; len],
            },
            modifications: Vec::new(),
        }
    }

    /// With a modified gradient. `tensors` are names and numbers of values, in the order of the
    /// values.
    pub fn modified(mut self, modifier: &GradientModifier<'_>, tensors: &[(&str, usize)]) -> Self {
        for &(name, len) in tensors {
            let frozen = modifier.frozen;
            let frozen = frozen.is_some_and(|frozen| frozen.position(name).is_some());
            let anchor = modifier.anchor.tensor(name);
            let shift = modifier.shift.and_then(|shift| shift.tensor(name));
            self.modifications.extend((0..len).map(|at| Modification {
                mu: anchor.map_or(0.0, |_| modifier.mu),
                anchor: anchor.map_or(0.0, |anchor| anchor[at].into()),
                shift: shift.map_or(0.0, |shift| shift[at].into()),
                frozen,
            }));
        }
        self
    }

    /// Moves `values` against `gradient`, value by value.
    #[expect(
        clippy::disallowed_methods,
        reason = "powi: a training is one silo's own, its bits are not compared between machines"
    )]
    pub fn step(&mut self, values: &mut [f64], gradient: &[f64]) {
        self.steps = self.steps.saturating_add(1);
        let (decayed, modifications) = (&self.decayed, &self.modifications);
        // None for a frozen value.
        let slope = |index: usize, value: f64, weight_decay: f64| {
            let decay = if decayed[index] { weight_decay } else { 0.0 };
            let slope = gradient[index] + decay * value;
            match modifications.get(index) {
                None => Some(slope),
                Some(Modification { frozen: true, .. }) => None,
                Some(own) => Some(slope + own.mu * (value - own.anchor) + own.shift),
            }
        };
        match self.optimiser {
            Optimiser::Sgd {
                rate,
                momentum,
                weight_decay,
            } => {
                for (index, value) in values.iter_mut().enumerate() {
                    let Some(slope) = slope(index, *value, weight_decay) else {
                        continue;
                    };
                    self.first[index] = momentum * self.first[index] + slope;
                    *value -= rate * self.first[index];
                }
            }
            Optimiser::Adam { rate, weight_decay } => {
                let (beta1, beta2, epsilon) = ADAM;
                let unbias1 = 1.0 - beta1.powi(self.steps);
                let unbias2 = 1.0 - beta2.powi(self.steps);
                for (index, value) in values.iter_mut().enumerate() {
                    let Some(slope) = slope(index, *value, weight_decay) else {
                        continue;
                    };
                    self.first[index] = beta1 * self.first[index] + (1.0 - beta1) * slope;
                    self.second[index] = beta2 * self.second[index] + (1.0 - beta2) * slope * slope;
                    let spread = (self.second[index] / unbias2).sqrt();
                    *value -= rate * (self.first[index] / unbias1) / (spread + epsilon);
                }
            }
        }
    }
}
