//! The configured rule for the radius of a silo.

use serde::{Deserialize, Serialize};

use super::radius::TwoRadii;
use super::validate_radius;

/// The rule for the radius of a silo's robust losses. In TOML, a number or one of the tables of the
/// variants. Every silo applies it to its own rows; the radius is not sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "a number of at least 0, { threshold, small, large }, or { folds, grid }"
)]
pub enum Radius {
    /// A fixed radius, at least 0.
    Fixed(f64),
    /// One of two, by the number of training rows: `{ threshold = 150, small = 0.05, large = 0.2 }`.
    ByRows(TwoRadii),
    /// The radius with the least loss in cross-validation: `{ folds = 5, grid = [0.01, 0.1] }`.
    CrossValidated(RadiusGrid),
}

/// Radii to choose from by cross-validation, see [`choose_radius`](super::radius::choose_radius).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RadiusGrid {
    /// Number of folds; a silo with fewer rows uses one fold per row.
    #[schemars(range(min = 2), extend("x-unit" = "folds"))]
    pub folds: usize,
    /// The radii, ascending, all at least 0; usually evenly spaced on a logarithmic scale. Leave 0 out
    /// for logistic loss, whose plain fit need not exist.
    pub grid: Vec<f64>,
    /// `true` to take the largest radius within one standard error of the best instead of the best.
    #[serde(default)]
    pub one_standard_error: bool,
}

/// Errors of a radius rule; each text follows the name of the option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RadiusRuleError {
    /// A radius below 0 or not finite.
    #[error("must be a number of at least 0, or a rule made of such numbers")]
    Number,
    /// Too few folds.
    #[error("needs at least 2 folds")]
    Folds,
    /// A grid that is empty, not ascending, negative or not finite.
    #[error("needs a grid of ascending numbers of at least 0")]
    Grid,
}

impl Default for Radius {
    /// Radius 0: losses without robustness.
    fn default() -> Self {
        Self::Fixed(0.0)
    }
}

impl From<f64> for Radius {
    fn from(radius: f64) -> Self {
        Self::Fixed(radius)
    }
}

impl Radius {
    /// Checks the rule.
    ///
    /// # Errors
    /// [`RadiusRuleError`]: the first thing that is wrong.
    pub fn validate(&self) -> Result<(), RadiusRuleError> {
        let valid = |radius: &f64| validate_radius(*radius).is_ok();
        match self {
            Self::Fixed(radius) if !valid(radius) => Err(RadiusRuleError::Number),
            Self::ByRows(two) if !valid(&two.small) || !valid(&two.large) => {
                Err(RadiusRuleError::Number)
            }
            Self::CrossValidated(RadiusGrid { folds: 0 | 1, .. }) => Err(RadiusRuleError::Folds),
            Self::CrossValidated(RadiusGrid { grid, .. }) => {
                let rising = grid.windows(2).all(|pair| pair[0] < pair[1]);
                let orderly = !grid.is_empty() && grid.iter().all(valid) && rising;
                orderly.then_some(()).ok_or(RadiusRuleError::Grid)
            }
            Self::Fixed(_) | Self::ByRows(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    fn read(value: Value) -> Result<Radius, String> {
        from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn every_rule_is_read_and_written_back() {
        let grid = json!({ "folds": 5, "grid": [0, 0.1], "one-standard-error": true });
        let rules = [
            (json!(0.05), Radius::Fixed(0.05)),
            (json!(1), Radius::Fixed(1.0)),
            (
                json!({ "threshold": 150, "small": 0.05, "large": 0.2 }),
                Radius::ByRows(TwoRadii {
                    threshold: 150,
                    small: 0.05,
                    large: 0.2,
                }),
            ),
            (
                grid,
                Radius::CrossValidated(RadiusGrid {
                    folds: 5,
                    grid: vec![0.0, 0.1],
                    one_standard_error: true,
                }),
            ),
        ];
        for (text, rule) in rules {
            assert_eq!(read(text).unwrap(), rule);
            assert_eq!(rule.validate(), Ok(()));
            assert_eq!(read(to_value(&rule).unwrap()).unwrap(), rule);
        }
        let error = read(json!({ "folds": 5, "radii": [0.1] })).unwrap_err();
        assert!(error.starts_with("a number of at least 0, {"), "{error}");
    }

    #[test]
    fn impossible_rules_are_refused() {
        let two = |small, large| {
            let threshold = 1;
            Radius::ByRows(TwoRadii {
                threshold,
                small,
                large,
            })
        };
        let grid = |folds, grid: &[f64]| {
            let (grid, one_standard_error) = (grid.to_vec(), false);
            Radius::CrossValidated(RadiusGrid {
                folds,
                grid,
                one_standard_error,
            })
        };
        let cases = [
            (Radius::Fixed(-0.1), RadiusRuleError::Number),
            (Radius::Fixed(f64::NAN), RadiusRuleError::Number),
            (two(f64::INFINITY, 0.1), RadiusRuleError::Number),
            (two(0.1, -1.0), RadiusRuleError::Number),
            (grid(1, &[0.1]), RadiusRuleError::Folds),
            (grid(2, &[]), RadiusRuleError::Grid),
            (grid(2, &[0.1, 0.1]), RadiusRuleError::Grid),
            (grid(2, &[-0.1, 0.1]), RadiusRuleError::Grid),
        ];
        for (rule, error) in cases {
            assert_eq!(rule.validate(), Err(error), "{rule:?}");
        }
    }
}
