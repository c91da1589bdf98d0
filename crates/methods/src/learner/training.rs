//! Local training: its settings, its progress and its result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::LearnError;
use crate::params::{Layout, Params};

/// Local training, as every participant of a round carries it out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Training {
    /// Number of passes over the silo's training rows in a round.
    #[schemars(range(min = 1), extend("x-unit" = "epochs"))]
    pub epochs: u32,
    /// Number of rows per step; the last batch of an epoch may be smaller. 0: all rows at once.
    #[schemars(extend("x-unit" = "rows"))]
    pub batch: u32,
    /// Optimiser of the local steps.
    pub optimiser: Optimiser,
    /// Decay of the learning rate from round to round; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decay: Option<Decay>,
}

/// Decay of the learning rate of local training from round to round. The rounds in which silos train
/// are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Decay {
    /// The rate is multiplied with a factor each time a number of rounds has passed.
    Step {
        /// Number of rounds with the same rate.
        #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
        every: u64,
        /// The factor, above 0 and at most 1.
        #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
        factor: f64,
    },
    /// After every round the rate is multiplied with this factor, above 0 and at most 1 (0.995 in HCCT's
    /// code).
    Exponential(#[schemars(range(max = 1), extend("exclusiveMinimum" = 0))] f64),
    /// The rate falls like half a cosine over all rounds of the federation (Loshchilov & Hutter 2017).
    Cosine {
        /// The fraction of the rate that it falls towards. Default 0.
        #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
        #[serde(default)]
        least: f64,
        /// Rounds of the federation in which silos train: no key of the table, see
        /// [`StrategyConfig::set_rounds`](crate::strategy::StrategyConfig::set_rounds).
        #[serde(skip)]
        rounds: u64,
    },
}

impl Decay {
    /// Returns what the rate is multiplied with in the `round`-th training, from 1.
    pub fn factor(self, round: u64) -> f64 {
        let before = round.saturating_sub(1);
        match self {
            Self::Step { every, factor } => libm::pow(factor, (before / every.max(1)) as f64),
            Self::Exponential(factor) => libm::pow(factor, before as f64),
            Self::Cosine { least, rounds } => {
                let part = before.min(rounds) as f64 / rounds.max(1) as f64;
                let half = (1.0 + libm::cos(std::f64::consts::PI * part)) / 2.0;
                least + (1.0 - least) * half
            }
        }
    }
}

impl Training {
    /// The training of one round, the `round`-th in which silos train, from 1: with the rate that it has
    /// fallen to, and no decay of its own.
    #[must_use]
    pub fn at(&self, round: u64) -> Self {
        let factor = self.decay.map_or(1.0, |decay| decay.factor(round));
        let mut optimiser = self.optimiser.clone();
        let (Optimiser::Sgd { rate, .. } | Optimiser::Adam { rate, .. }) = &mut optimiser;
        *rate *= factor;
        Self {
            optimiser,
            decay: None,
            ..self.clone()
        }
    }

    /// Steps that a training over this many rows takes.
    pub fn steps(&self, rows: u64) -> u64 {
        let batch = match self.batch {
            0 => rows,
            batch => batch.into(),
        };
        u64::from(self.epochs) * rows.div_ceil(batch.max(1))
    }
}

/// The optimiser of local training. Learning rates are per step, in units of the standardised data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "name", deny_unknown_fields, rename_all = "kebab-case")]
pub enum Optimiser {
    /// Stochastic gradient descent: `v ← momentum·v + (g + decay·w)`, `w ← w − rate·v`.
    Sgd {
        /// Learning rate.
        #[schemars(extend("exclusiveMinimum" = 0))]
        rate: f64,
        /// Momentum: the share of the last step's direction that is kept.
        #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
        #[serde(default)]
        momentum: f64,
        /// Weight decay (L2): this times the weights is added to the gradient, never for biases or
        /// buffers.
        #[schemars(range(min = 0))]
        #[serde(default, rename = "weight-decay")]
        weight_decay: f64,
    },
    /// Adam (Kingma & Ba 2015) with bias correction, β = (.9, .999), ε = 1e-8.
    Adam {
        /// Learning rate.
        #[schemars(extend("exclusiveMinimum" = 0))]
        rate: f64,
        /// Weight decay (L2): this times the weights is added to the gradient, never for biases or
        /// buffers.
        #[schemars(range(min = 0))]
        #[serde(default, rename = "weight-decay")]
        weight_decay: f64,
    },
}

impl Optimiser {
    /// The learning rate.
    pub fn rate(&self) -> f64 {
        let (Self::Sgd { rate, .. } | Self::Adam { rate, .. }) = *self;
        rate
    }
}

/// Terms that a strategy adds to the gradient of a local training: a proximal term, a shift term, and
/// tensors that are frozen. With the loss's gradient `g` at the weights `w`, the optimiser is given
/// `g + mu·(w − anchor) + shift`. Only trained tensors are concerned, never buffers.
#[derive(Debug, Clone, Copy)]
pub struct GradientModifier<'a> {
    /// Strength of the proximal term, ≥ 0: the loss gains `mu/2·‖w − anchor‖²`.
    pub mu: f64,
    /// Tensors by name, in the model's shapes; those that it lacks have no proximal term.
    pub anchor: &'a Params,
    /// Tensors by name, in the model's shapes, added to the gradient; nothing is added for those
    /// that it lacks.
    pub shift: Option<&'a Params>,
    /// Tensors, by name, that are not trained at all.
    pub frozen: Option<&'a Layout>,
}

impl<'a> GradientModifier<'a> {
    /// One that changes nothing, to set single fields of.
    pub fn none(anchor: &'a Params) -> Self {
        Self {
            mu: 0.0,
            anchor,
            shift: None,
            frozen: None,
        }
    }

    /// Returns whether the modifier changes nothing.
    pub fn is_none(&self) -> bool {
        self.mu == 0.0 && self.shift.is_none() && self.frozen.is_none()
    }
}

/// Progress of a training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Steps in all.
    pub steps: u64,
    /// Mean training loss of the last finished epoch, or of the steps so far in the first.
    pub loss: f64,
}

/// The result of a training.
#[derive(Debug, Clone)]
pub struct Update {
    /// Contribution: the trained model, or the summary.
    pub shared: Params,
    /// State that stays at the silo and comes back in as `personal` next time. Empty layout if nothing.
    pub personal: Params,
    /// Training rows used.
    pub samples: u64,
    /// Training metrics (`loss`: mean training loss of the last epoch).
    pub metrics: Metrics,
}

impl Update {
    /// The result where nothing was trained, at a silo of this number of training rows.
    pub fn kept(start: &Params, personal: &Params, samples: u64) -> Self {
        Self {
            shared: start.clone(),
            personal: personal.clone(),
            samples,
            metrics: Metrics {
                samples,
                values: BTreeMap::new(),
            },
        }
    }
}

/// Measurements by name over a number of rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Rows measured on.
    pub samples: u64,
    /// Values by name: `loss` always; `mae`, `mse`, `rmse` for regression (in the target's own units);
    /// `accuracy`, `log-loss`, `roc-auc` for classification.
    pub values: BTreeMap<String, f64>,
}

impl Metrics {
    /// The value of this name.
    ///
    /// # Errors
    /// [`LearnError::Metric`] where it was not measured.
    pub fn get(&self, name: &str) -> Result<f64, LearnError> {
        let value = self.values.get(name).copied();
        value.ok_or_else(|| LearnError::Metric(name.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fall_as_computed_by_hand() {
        let training = |decay| Training {
            epochs: 1,
            batch: 0,
            optimiser: Optimiser::Adam {
                rate: 0.5,
                weight_decay: 0.1,
            },
            decay: Some(decay),
        };
        let rates = |decay, rounds: [u64; 5]| {
            rounds.map(|round| {
                let at = training(decay).at(round);
                assert_eq!((at.decay, at.epochs), (None, 1));
                at.optimiser.rate()
            })
        };
        let step = Decay::Step {
            every: 2,
            factor: 0.5,
        };
        assert_eq!(rates(step, [1, 2, 3, 4, 5]), [0.5, 0.5, 0.25, 0.25, 0.125]);
        let exponential = Decay::Exponential(0.5);
        assert_eq!(
            rates(exponential, [1, 2, 3, 4, 5]),
            [0.5, 0.25, 0.125, 0.0625, 0.03125]
        );
        let cosine = |least| Decay::Cosine { least, rounds: 4 };
        let close = |found: [f64; 5], wanted: [f64; 5]| {
            let mut pairs = found.iter().zip(wanted);
            assert!(pairs.all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        };
        let half = 0.5f64.sqrt();
        let wanted = [0.5, 0.25 * (1.0 + half), 0.25, 0.25 * (1.0 - half), 0.0];
        close(rates(cosine(0.0), [1, 2, 3, 4, 5]), wanted);
        close(
            rates(cosine(0.5), [1, 3, 5, 6, 60]),
            [0.5, 0.375, 0.25, 0.25, 0.25],
        );
        let none = Training {
            decay: None,
            ..training(exponential)
        };
        assert_eq!(none.at(7), none);
    }
}
