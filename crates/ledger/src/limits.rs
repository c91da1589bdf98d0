//! Limits of an institution on the privacy loss of a source.

use std::fmt;

use privacy::accountant::{Bound, Delta};

/// The limits of an institution for one source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Largest ε, if there is a limit.
    pub epsilon: Option<f64>,
    /// Largest ε_alone, if there is a limit.
    pub alone: Option<f64>,
    /// δ of both.
    pub delta: Delta,
}

/// A limit that is exceeded, as the policy has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Of ε.
    Epsilon(f64),
    /// Of ε_alone.
    Alone(f64),
}

impl Limit {
    /// Its key in the policy.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Epsilon(_) => "epsilon",
            Self::Alone(_) => "epsilon-all-collude",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Epsilon(most) | Self::Alone(most)) = self;
        write!(f, "{} = {most}", self.key())
    }
}

impl Limits {
    /// No limit: the ledger only counts.
    pub fn none(delta: Delta) -> Self {
        Self {
            epsilon: None,
            alone: None,
            delta,
        }
    }

    /// The limit that a bound exceeds.
    pub fn exceeded(&self, bound: &Bound) -> Option<Limit> {
        let above = |limit: Option<f64>, found: f64| limit.filter(|most| found > *most);
        let epsilon = above(self.epsilon, bound.epsilon().value()).map(Limit::Epsilon);
        epsilon.or_else(|| above(self.alone, bound.alone().value()).map(Limit::Alone))
    }
}
