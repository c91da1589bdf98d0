//! Measures of survival by the training rows of a silo.

use methods::{Params, Split};
use task::survival::{NUMBERS, SurvivalBasis, horizon, observed};

use super::TableLearner;
use crate::data::Rows;

impl TableLearner {
    /// Returns what the training rows give to measure survival by, for these risk scores of held-out rows: where they are those
    /// of `model`, or the same for all rows. Of others nobody knows what they are for the training rows. `None` for
    /// these, and where there is [no basis](task::survival::NoBasis).
    pub(super) fn survival_basis(
        &self,
        model: &Params,
        outputs: &[f64],
        rows: &Rows,
    ) -> Option<SurvivalBasis> {
        let train = self.part(Split::Train).ok()?;
        if train.targets().len() != NUMBERS * train.len() {
            return None;
        }
        let times = observed(train.targets());
        // Before anything is computed for nothing.
        horizon(&times, self.horizon).ok()?;
        let train = self.scaled(model, train);
        let scores = match outputs {
            _ if self.model.outputs(model, rows) == outputs => self.model.outputs(model, &train),
            // One score alone does not show whether it is the same for all rows.
            [first, second, others @ ..]
                if first == second && others.iter().all(|other| other == first) =>
            {
                vec![*first; train.len()]
            }
            _ => return None,
        };
        SurvivalBasis::of(&scores, &times, self.horizon).ok()
    }
}
