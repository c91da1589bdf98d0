//! The optimisers over plain slices, for models too small for a tensor framework.

use methods::Pull;
use methods::learner::Optimiser;

/// β₁ and β₂ of Adam (Kingma & Ba 2015), and its ε.
pub(crate) const ADAM: (f64, f64, f64) = (0.9, 0.999, 1e-8);

/// What a [`Pull`] is to one value.
#[derive(Debug, Clone, Copy, Default)]
struct Tug {
    mu: f64,
    anchor: f64,
    shift: f64,
    still: bool,
}

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
    /// One for every value, or none.
    tugs: Vec<Tug>,
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
            tugs: Vec::new(),
        }
    }

    /// With the gradient changed by `pull`, the values being those of these tensors one after the
    /// other.
    pub(crate) fn pulled(mut self, pull: &Pull<'_>, tensors: &[(&str, usize)]) -> Self {
        for &(name, len) in tensors {
            let still = pull
                .still
                .is_some_and(|still| still.position(name).is_some());
            let anchor = pull.anchor.tensor(name);
            let shift = pull.shift.and_then(|shift| shift.tensor(name));
            self.tugs.extend((0..len).map(|at| Tug {
                mu: anchor.map_or(0.0, |_| pull.mu),
                anchor: anchor.map_or(0.0, |anchor| anchor[at].into()),
                shift: shift.map_or(0.0, |shift| shift[at].into()),
                still,
            }));
        }
        self
    }

    /// Moves `values` against `gradient`.
    pub(crate) fn step(&mut self, values: &mut [f64], gradient: &[f64]) {
        self.steps = self.steps.saturating_add(1);
        let (decayed, tugs) = (self.decayed, &self.tugs);
        // None for a value that stays as it is.
        let slope = |index: usize, value: f64, weight_decay: f64| {
            let decay = if index < decayed { weight_decay } else { 0.0 };
            let slope = gradient[index] + decay * value;
            match tugs.get(index) {
                None => Some(slope),
                Some(Tug { still: true, .. }) => None,
                Some(tug) => Some(slope + tug.mu * (value - tug.anchor) + tug.shift),
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
