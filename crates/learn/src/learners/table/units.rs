//! Gradients of single rows and of single persons, for the model families that consist of dense layers; and
//! their rows, for linear models that least squares finds.

use methods::learner::{
    Capability, LeastSquares, MissingCapability, SquaresRow, UnitGradients, UnitRows, together,
};
use methods::{LearnError, Params};

use super::{TableLearner, fits};
use crate::data::Rows;
use crate::models::{DenseLayers, Loss, RegressionLoss};

impl TableLearner {
    /// Returns whether rows have gradients of their own: not those at risk together.
    pub(super) fn has_unit_gradients(&self) -> bool {
        let dense = self.model.linear().is_some() || self.model.widths().is_some();
        let alone = !self.loss.joins_rows() && !matches!(self.loss, Loss::Dice { .. });
        dense && self.scale.is_none() && alone
    }
}

impl UnitGradients for TableLearner {
    fn unit_gradients(
        &self,
        model: &Params,
        unit: UnitRows,
        with: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, LearnError> {
        fits(&self.layout, model)?;
        // A silo without rows has no unit, and takes part as any other.
        let rows = &*self.train;
        let mut layers = DenseLayers::of(&*self.model, model)
            .filter(|_| self.has_unit_gradients())
            .ok_or(MissingCapability(Capability::UnitGradients))?;
        let mut gradient = vec![0.0; self.layout.len()];
        let mut total = 0.0;
        let mut of_unit = |unit: &[u32]| {
            gradient.fill(0.0);
            for &row in unit {
                let (features, target) = (rows.features(row as usize), rows.target(row as usize));
                total += layers.add(features, target, self.loss, &mut gradient);
            }
            with(&gradient);
        };
        each_unit(rows, unit, &mut of_unit)?;
        Ok(total / rows.len() as f64)
    }

    fn least_squares(&self) -> Option<&dyn LeastSquares> {
        let squared = matches!(
            self.loss,
            Loss::Regression(RegressionLoss::Squared) | Loss::Logistic
        );
        let fits = squared && self.scale.is_none() && self.model.linear().is_some();
        fits.then_some(self as _)
    }
}

impl LeastSquares for TableLearner {
    fn unit_rows(
        &self,
        unit: UnitRows,
        with: &mut dyn FnMut(&[SquaresRow<'_>]),
    ) -> Result<(), LearnError> {
        let rows = &*self.train;
        let target = |row: usize| match (self.loss, rows.target(row)) {
            (Loss::Logistic, [class]) => 4.0 * f64::from(*class) - 2.0,
            (_, target) => target.first().map_or(f64::NAN, |number| f64::from(*number)),
        };
        each_unit(rows, unit, &mut |unit| {
            let places = unit.iter().map(|&row| row as usize);
            let unit: Vec<_> = places
                .map(|row| (rows.features(row), target(row)))
                .collect();
            with(&unit);
        })
    }
}

/// Gives `with` the rows of every unit.
fn each_unit(rows: &Rows, unit: UnitRows, with: &mut dyn FnMut(&[u32])) -> Result<(), LearnError> {
    if unit == UnitRows::One {
        (0..rows.len() as u32).for_each(|row| with(&[row]));
        return Ok(());
    }
    if rows.groups().len() != rows.len() {
        let why = "the rows name no person: agree on `group` in `[task.table.split]`";
        return Err(LearnError::Failed(why.into()));
    }
    for mut person in persons(rows) {
        // The last bit of a sum depends on the order: it must not depend on other persons.
        person.sort_by_cached_key(|&row| bits(rows, row));
        with(&person);
    }
    Ok(())
}

/// The rows of every person.
fn persons(rows: &Rows) -> Vec<Vec<u32>> {
    let together = together(rows.groups(), rows.len());
    let rows = together.into_iter();
    rows.map(|rows| rows.into_iter().map(|row| row as u32).collect())
        .collect()
}

/// The bits of a row: equal rows have equal gradients, so their order does not matter.
fn bits(rows: &Rows, row: u32) -> Vec<u32> {
    let (features, target) = (rows.features(row as usize), rows.target(row as usize));
    let numbers = features.iter().chain(target);
    numbers.map(|number| number.to_bits()).collect()
}
