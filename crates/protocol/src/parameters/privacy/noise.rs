//! The noise of the sums of a federation, as the parameter set says it.

use serde::{Deserialize, Serialize};

use crate::parameters::ParametersError;

/// The agreement on noise: with or without one unit of a silo, all opened sums look nearly the same. How
/// nearly follows from z, δ and the number of rounds; the formulas are not the protocol's business.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noise {
    /// What is opened.
    pub release: Release,
    /// What one bound holds for.
    pub unit: Unit,
    /// C: the norm to which the vector of a unit is clipped.
    pub clip: Real,
    /// z: the standard deviation of the noise of a sum, in largest changes of it by one unit.
    pub z: Real,
    /// δ, for which ε is told.
    pub delta: Real,
}

/// What the noised sums of a federation are sums of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Release {
    /// One full-batch gradient a round.
    Steps,
    /// Once, the sums of products from which a linear model is solved. C follows from the first two.
    Once {
        /// R: the norm to which a row with a 1 for the intercept is shortened.
        rows_norm: Real,
        /// Y: what the size of a target is brought to at most.
        targets_within: Real,
        /// λ: what is added to the eigenvalues of the mean. Without it, it follows from the noise.
        ridge: Option<Real>,
    },
}

/// Whose presence the noise hides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// A row.
    Row,
    /// A person with all rows that name this person in a column.
    Person(String),
}

/// A number with a floating point that is agreed on: equal if its bits are.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Real(u64);

impl Real {
    /// This number.
    pub fn new(number: f64) -> Self {
        Self(number.to_bits())
    }

    /// The number.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl std::fmt::Debug for Real {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value().fmt(f)
    }
}

/// A number by its key, its range, and the range in words.
type Ranged = (&'static str, Real, (f64, f64), &'static str);

impl Release {
    /// The numbers that a model is solved with.
    fn numbers(self) -> Vec<Ranged> {
        let Self::Once {
            rows_norm,
            targets_within,
            ridge,
        } = self
        else {
            return Vec::new();
        };
        // The 1 for the intercept alone has norm 1.
        let rows = (1.0_f64.next_up(), 1e20);
        let sizes = [
            ("max-row-norm", rows_norm, rows, "above 1 and at most 1e20"),
            (
                "max-target",
                targets_within,
                (1e-20, 1e20),
                "between 1e-20 and 1e20",
            ),
        ];
        let ridge = ridge.map(|ridge| {
            let words = "between 1e-100 and 1e100";
            ("ridge", ridge, (1e-100, 1e100), words)
        });
        sizes.into_iter().chain(ridge).collect()
    }
}

impl Noise {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`ParametersError::Noise`]: the first one that is out of range.
    pub(super) fn validate(&self) -> Result<(), ParametersError> {
        let ranges = [
            (
                "clipping-norm",
                self.clip,
                (1e-100, 1e100),
                "between 1e-100 and 1e100",
            ),
            (
                "noise-multiplier",
                self.z,
                (1.0 / 128.0, 1_048_575.0),
                "between 1/128 and 1048575",
            ),
            ("delta", self.delta, (1e-30, 0.1), "between 1e-30 and 0.1"),
        ];
        let all = ranges.into_iter().chain(self.release.numbers());
        for (key, number, (least, most), allowed) in all {
            // A number that is none is in no range.
            if !(least..=most).contains(&number.value()) {
                return Err(ParametersError::Noise {
                    key,
                    number,
                    allowed,
                });
            }
        }
        Ok(())
    }
}
