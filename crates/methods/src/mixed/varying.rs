//! Coefficients that differ between sites.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Coefficients that may differ between sites, and those of them that share a variance.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Varying {
    /// None: one model for all sites.
    Nothing,
    /// The intercept alone.
    Intercept,
    /// All; the intercept has a variance of its own, all slopes have the same.
    OneStrength,
    /// All, each with a variance of its own.
    Slopes,
}

impl Varying {
    /// In the order of their number of variances.
    pub const ALL: [Self; 4] = [
        Self::Nothing,
        Self::Intercept,
        Self::OneStrength,
        Self::Slopes,
    ];

    /// The name, as in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Intercept => "intercept",
            Self::OneStrength => "one-strength",
            Self::Slopes => "slopes",
        }
    }

    /// Coefficients that share a variance, where there are `width` of them, the intercept first; those that
    /// do not vary are in none.
    pub fn groups(self, width: usize) -> Vec<Range<usize>> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Intercept => std::iter::once(0..1).collect(),
            Self::OneStrength if width > 1 => vec![0..1, 1..width],
            Self::OneStrength | Self::Slopes => (0..width).map(|at| at..at + 1).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_counted_from_the_intercept() {
        let ends = |varying: Varying| {
            let groups = varying.groups(3).into_iter();
            groups
                .map(|group| (group.start, group.end))
                .collect::<Vec<_>>()
        };
        assert_eq!(ends(Varying::Nothing), []);
        assert_eq!(ends(Varying::Intercept), [(0, 1)]);
        assert_eq!(ends(Varying::OneStrength), [(0, 1), (1, 3)]);
        assert_eq!(ends(Varying::Slopes), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(Varying::OneStrength.groups(1).len(), 1);
    }
}
