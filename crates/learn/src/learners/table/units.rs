//! Gradients of single rows and of single persons, for the model families that consist of dense layers.

use methods::learner::{Capability, MissingCapability, UnitGradients, UnitRows, together};
use methods::{LearnError, Params, Split};

use super::{TableLearner, fits};
use crate::data::Rows;
use crate::models::{DenseLayers, Loss};

impl TableLearner {
    /// Whether rows have gradients of their own.
    pub(super) fn has_unit_gradients(&self) -> bool {
        let dense = self.model.linear().is_some() || self.model.widths().is_some();
        dense && self.scale.is_none() && !matches!(self.loss, Loss::Dice { .. })
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
        let rows = self.part(Split::Train)?;
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
        match unit {
            UnitRows::One => (0..rows.len() as u32).for_each(|row| of_unit(&[row])),
            UnitRows::Group => {
                if rows.groups().len() != rows.len() {
                    let why = "the rows name no person: agree on `group` in `[task.table.split]`";
                    return Err(LearnError::Failed(why.into()));
                }
                for mut person in persons(rows) {
                    // The last bit of a sum depends on the order: it must not depend on other persons.
                    person.sort_by_cached_key(|&row| bits(rows, row));
                    of_unit(&person);
                }
            }
        }
        Ok(total / rows.len() as f64)
    }
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
