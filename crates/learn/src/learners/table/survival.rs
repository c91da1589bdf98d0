//! The baseline of a silo whose rows have a time to an event, and what it takes to measure survival.

use methods::{Params, Split};
use task::survival::{Baseline, NUMBERS, SurvivalBasis, observed};

use super::{TableLearner, fits};
use crate::data::Rows;
use crate::models::Loss;

impl TableLearner {
    /// The baseline hazard of the silo's training rows with the risk scores that `model` gives them. It is the silo's
    /// own and is sent nowhere. `None` where the target is no time to an event, without an event, and for a model of
    /// another layout.
    pub fn baseline(&self, model: &Params) -> Option<Baseline> {
        if self.loss != Loss::Cox || fits(&self.layout, model).is_err() {
            return None;
        }
        let train = self.scaled(model, self.part(Split::Train).ok()?);
        let scores = self.model.outputs(model, &train);
        Baseline::of(&scores, &observed(train.targets()))
    }

    /// Returns what the training rows give to measure survival by, for these risk scores of held-out rows: where they are those
    /// of `model`, or the same for all rows. Of others nobody knows what they are for the training rows. `None` for
    /// these, and where there is [no basis](task::survival::NoBasis).
    pub(super) fn survival_basis(
        &self,
        model: &Params,
        outputs: &[f64],
        rows: &Rows,
    ) -> Option<SurvivalBasis> {
        let train = self.scaled(model, self.part(Split::Train).ok()?);
        if train.targets().len() != NUMBERS * train.len() {
            return None;
        }
        let scores = match outputs {
            _ if self.model.outputs(model, rows) == outputs => self.model.outputs(model, &train),
            [first, others @ ..] if others.iter().all(|other| other == first) => {
                vec![*first; train.len()]
            }
            _ => return None,
        };
        SurvivalBasis::of(&scores, &observed(train.targets()), self.horizon).ok()
    }
}
