//! Numbers of single units, and the conclusions from the sum of all.

use methods::Params;
use methods::learner::{UnitGradients, UnitRows};
use privacy::sensitivity::Sensitivity;
use protocol::MemberIndex;

use super::SumBasis;

/// The numbers of single units, and what follows from the sum of all: an agreed release.
pub(super) trait UnitNumbers: Send {
    /// Returns the number of numbers that a unit has.
    fn count(&self) -> usize;

    /// The steps in which the numbers of a unit are rounded.
    ///
    /// # Errors
    /// There are none, or too many numbers.
    fn sensitivity(&self) -> Result<Sensitivity, String> {
        let sensitivity = Sensitivity::new(self.count() as u64);
        sensitivity.map_err(|error| error.to_string())
    }

    /// Checks that a silo has such numbers.
    ///
    /// # Errors
    /// It has none.
    fn check(&self, of: SumBasis<'_>) -> Result<(), String>;

    /// Gives `add` the numbers of every unit of the silo, and returns the mean loss of its rows under the model that
    /// the round starts from.
    ///
    /// # Errors
    /// The silo has no such numbers.
    fn each(
        &self,
        of: SumBasis<'_>,
        unit: UnitRows,
        add: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, String>;

    /// Sums are checked against at least this reach, which decides the size of a word.
    fn least_reach(&self) -> u64 {
        0
    }

    /// Returns how many units a silo may have for each row that it declared.
    fn units_per_row(&self) -> u64 {
        1
    }

    /// The model that an opened sum gives.
    ///
    /// # Errors
    /// It gives none in this round, or one that is not finite.
    fn model(&self, of: SumBasis<'_>, sum: &NoisySum<'_>) -> Result<Params, String>;
}

/// The units of a silo's learner.
///
/// # Errors
/// It has none.
pub(super) fn units_of(of: SumBasis<'_>) -> Result<&dyn UnitGradients, String> {
    let units = of.config.learner.units();
    units.map_err(|error| error.to_string())
}

/// An opened sum with noise.
pub(super) struct NoisySum<'a> {
    /// Its integers, in steps of this size.
    pub(super) total: &'a [i64],
    pub(super) step: f64,
    /// Its authors, ascending.
    pub(super) authors: &'a [MemberIndex],
    /// The rows that they declared.
    pub(super) rows: u64,
    /// Standard deviation of its noise in each number.
    pub(super) noise: f64,
}
