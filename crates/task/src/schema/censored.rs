//! Values that could not be measured, of which a file says only that they are below or above a limit.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::LimitSide;

/// The number that takes the place of a censored value: one below the limit of detection, as `<0.5`, or above
/// what could be measured, as `>100`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Censored {
    /// The limit itself: 0.5 for `<0.5`, and 100 for `>100`.
    Limit,
    /// Half of a limit below which a value is: 0.25 for `<0.5`. For `>100` the limit itself.
    Half,
}

impl Censored {
    /// The number that is computed with.
    pub fn number(self, limit: f64, bound: LimitSide) -> f64 {
        match (self, bound) {
            (Self::Half, LimitSide::Below) if limit > 0.0 => limit / 2.0,
            _ => limit,
        }
    }
}

/// In words.
impl fmt::Display for Censored {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(match self {
            Self::Limit => "a bound such as <0.5 is read as its limit",
            Self::Half => "a bound such as <0.5 is read as half of its limit",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_positive_lower_limits_are_halved() {
        for (rule, limit, bound, expected) in [
            (Censored::Limit, 0.5, LimitSide::Below, 0.5),
            (Censored::Half, 0.5, LimitSide::Below, 0.25),
            (Censored::Half, 100.0, LimitSide::Above, 100.0),
            (Censored::Half, -5.0, LimitSide::Below, -5.0),
            (Censored::Half, 0.0, LimitSide::Below, 0.0),
        ] {
            assert_eq!(rule.number(limit, bound), expected, "{rule:?} {limit}");
        }
    }
}
