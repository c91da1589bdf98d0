//! What the noise of a federation bounds, for its report.

use agreement::bound;
use protocol::ProtocolParameters;
use serde::{Deserialize, Serialize};

/// With or without one unit, all opened sums are as likely up to a factor e^ε, but for a probability of
/// about δ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseBound {
    /// ε, as long as at most the agreed number of members collude; none, in documents the words "no
    /// bound", if there is none.
    #[serde(with = "or_no_bound")]
    pub epsilon: Option<f64>,
    /// ε if all others collude; none, in documents the words "no bound", if there is none.
    #[serde(with = "or_no_bound")]
    pub epsilon_alone: Option<f64>,
    /// δ.
    pub delta: f64,
    /// The three in words, rounded up.
    pub words: String,
}

/// What documents and tables have in place of a number where nothing bounds what is told.
pub const NO_BOUND: &str = "no bound";

/// A bound in a document: its number, or words, which nobody takes for 0.
pub(crate) mod or_no_bound {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::NO_BOUND;

    /// What stands in a document; nothing in one of an earlier version.
    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum WrittenBound {
        Number(f64),
        Words(String),
        Nothing,
    }

    pub(crate) fn serialize<S: Serializer>(bound: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        let words = || WrittenBound::Words(NO_BOUND.into());
        bound.map_or_else(words, WrittenBound::Number).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(match WrittenBound::deserialize(from)? {
            WrittenBound::Number(bound) => Some(bound),
            WrittenBound::Words(_) | WrittenBound::Nothing => None,
        })
    }
}

impl NoiseBound {
    /// That of all agreed rounds; `None` without noise.
    pub(crate) fn of(protocol: &ProtocolParameters) -> Option<Self> {
        let bound = bound(protocol)?;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_document_says_in_words_that_there_is_no_bound_and_is_read_again() {
        let bound = NoiseBound {
            epsilon: Some(2.5),
            epsilon_alone: None,
            delta: 1e-5,
            words: String::new(),
        };
        let written = serde_json::to_string(&bound).unwrap();
        assert!(
            written.starts_with(r#"{"epsilon":2.5,"epsilon_alone":"no bound","#),
            "{written}"
        );
        assert_eq!(serde_json::from_str::<NoiseBound>(&written).unwrap(), bound);
        let earlier = written.replace("\"no bound\"", "null");
        assert_eq!(serde_json::from_str::<NoiseBound>(&earlier).unwrap(), bound);
    }
}
