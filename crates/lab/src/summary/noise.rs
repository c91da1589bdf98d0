//! What the noise of a federation bounds, for its report.

use agreement::bound;
use protocol::Charter;
use serde::{Deserialize, Serialize};

/// With or without one unit, all opened sums are as likely up to a factor e^ε, but for a probability of
/// about δ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseBound {
    /// ε, as long as at most the agreed number of members pool what they know; none if there is no bound.
    pub epsilon: Option<f64>,
    /// ε if all others pool what they know; none if there is no bound.
    pub epsilon_alone: Option<f64>,
    /// δ.
    pub delta: f64,
    /// The three in words, rounded up.
    pub words: String,
}

impl NoiseBound {
    /// That of all agreed rounds; `None` without noise.
    pub(crate) fn of(charter: &Charter) -> Option<Self> {
        let bound = bound(charter)?;
        let finite = |number: f64| Some(number).filter(|number| number.is_finite());
        Some(Self {
            epsilon: finite(bound.epsilon().value()),
            epsilon_alone: finite(bound.alone().value()),
            delta: bound.delta().value(),
            words: bound.to_string(),
        })
    }

    /// A sentence about it, without a full stop.
    pub(super) fn sentence(&self) -> String {
        format!(
            "sums have noise: everything that is opened satisfies {} together, if every institution trains on the \
             rows that it declared",
            self.words
        )
    }
}
