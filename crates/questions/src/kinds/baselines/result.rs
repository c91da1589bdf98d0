//! The losses of own and common models, and what they say of learning together.

use serde::{Deserialize, Serialize};

use crate::Estimate;

/// The mean losses of the sites, each of which counts once: the log loss of a probability, or the mean squared error of a
/// number in its squared unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselinesOutcome {
    /// The outcome as it was asked for.
    pub outcome: String,
    /// True if the outcome is a condition, and losses are log losses.
    pub is_probability: bool,
    /// Complete rows of all sites.
    pub rows: f64,
    /// Sites with rows in every fold, whose losses these are.
    pub sites: f64,
    /// Folds.
    pub folds: usize,
    /// Of the constant of a site's own other rows.
    pub own_constant: f64,
    /// Of the model of a site's own other rows, with a penalty that it chooses by folds inside them.
    pub own_model: f64,
    /// Of the constant of the other rows of all sites.
    pub common_constant: f64,
    /// Of the model of the other rows of all sites.
    pub common_model: f64,
    /// Mean difference: by how much the common model loses less than a site's own. Its standard error is that of a mean over
    /// sites.
    pub gain: Estimate,
    /// Sites where it loses less.
    pub gaining: f64,
}

/// What the interval of the gain says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TogetherOrAlone {
    /// The common model is better at such sites.
    Together,
    /// The own models are.
    Alone,
    /// Either may be.
    CannotTell,
}

impl BaselinesOutcome {
    /// What the gain's interval of this level says, such as 0.95: of the mean over sites like these, and not of each.
    pub fn says(&self, level: f64) -> TogetherOrAlone {
        let [low, high] = self.gain.interval(level);
        if low > 0.0 {
            TogetherOrAlone::Together
        } else if high < 0.0 {
            TogetherOrAlone::Alone
        } else {
            TogetherOrAlone::CannotTell
        }
    }
}
