//! The optimisers over plain slices, for models too small for a tensor framework.

use methods::learner::Optimiser;

/// β₁ and β₂ of Adam (Kingma & Ba 2015), and its ε.
pub(crate) const ADAM: (f64, f64, f64) = (0.9, 0.999, 1e-8);

/// An optimiser with its state over a fixed number of values.
pub(crate) struct Rule {
    optimiser: Optimiser,
    /// Values `0..decayed` are decayed, the rest are not.
    decayed: usize,
    steps: i32,
    /// Velocity, or Adam's first moment.
    first: Vec<f64>,
    /// Adam's second moment.
    second: Vec<f64>,
}

impl Rule {
    /// At rest, over `len` values of which the first `decayed` are subject to weight decay.
    pub(crate) fn new(optimiser: &Optimiser, len: usize, decayed: usize) -> Self {
        Self {
            optimiser: optimiser.clone(),
            decayed,
            steps: 0,
            first: vec![0.0; len],
            second: vec![0.0; len],
        }
    }

    /// Moves `values` against `gradient`.
    pub(crate) fn step(&mut self, values: &mut [f64], gradient: &[f64]) {
        self.steps = self.steps.saturating_add(1);
        let decay = |index: usize, weight_decay: f64| {
            if index < self.decayed {
                weight_decay
            } else {
                0.0
            }
        };
        match self.optimiser {
            Optimiser::Sgd {
                rate,
                momentum,
                weight_decay,
            } => {
                for (index, value) in values.iter_mut().enumerate() {
                    let slope = gradient[index] + decay(index, weight_decay) * *value;
                    self.first[index] = momentum * self.first[index] + slope;
                    *value -= rate * self.first[index];
                }
            }
            Optimiser::Adam { rate, weight_decay } => {
                let (beta1, beta2, epsilon) = ADAM;
                let unbias1 = 1.0 - beta1.powi(self.steps);
                let unbias2 = 1.0 - beta2.powi(self.steps);
                for (index, value) in values.iter_mut().enumerate() {
                    let slope = gradient[index] + decay(index, weight_decay) * *value;
                    self.first[index] = beta1 * self.first[index] + (1.0 - beta1) * slope;
                    self.second[index] = beta2 * self.second[index] + (1.0 - beta2) * slope * slope;
                    let spread = (self.second[index] / unbias2).sqrt();
                    *value -= rate * (self.first[index] / unbias1) / (spread + epsilon);
                }
            }
        }
    }
}
