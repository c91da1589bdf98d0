//! The losses of local and global models, and what they say of learning together.

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
    pub local_constant: f64,
    /// Of the model of a site's own other rows, with a penalty that it chooses by folds inside them.
    pub local_model: f64,
    /// Of the constant of the other rows of all sites.
    pub global_constant: f64,
    /// Of the model of the other rows of all sites.
    pub global_model: f64,
    /// Mean difference: by how much the global model loses less than the local ones. Its standard error is that of a mean over
    /// sites.
    pub gain: Estimate,
    /// Sites where it loses less.
    pub gaining: f64,
}

/// Conclusion from the interval of the gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TogetherOrAlone {
    /// The global model is better at such sites.
    Together,
    /// The local models are.
    Alone,
    /// Either may be.
    CannotTell,
}

impl BaselinesOutcome {
    /// Conclusion from the gain's interval of this level, such as 0.95: about the mean over sites like these, and not about
    /// each.
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
