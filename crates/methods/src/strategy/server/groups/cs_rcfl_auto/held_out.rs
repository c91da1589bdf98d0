//! Losses on a silo's own rows, each of them by a model that has not seen it.

use std::sync::Arc;

use crate::learner::{LearnError, Learner, Split, Update, Watch, mixed_seed};
use crate::params::Params;
use crate::selection::{mean, mean_and_error};
use crate::strategy::wrappers::learner_wrapper::later;
use crate::strategy::{Fitting, Participant};

/// A silo's models of all its rows but one fold, one for every fold.
pub(crate) struct FoldModels {
    folds: Vec<Fold>,
}

struct Fold {
    /// The silo without the fold, which is its validation part.
    learner: Arc<dyn Learner>,
    /// Update that the silo learned without the fold.
    update: Update,
    /// Rows of the fold.
    rows: u64,
}

impl FoldModels {
    /// Finds a model without each of `folds` folds, or as many as there are rows or groups of them, from `start`.
    pub(crate) fn fit(
        participant: Participant<'_>,
        start: &Params,
        fit: &Fitting,
        folds: usize,
        progress: &mut Watch<'_>,
    ) -> Result<Self, LearnError> {
        let learner = participant.learner;
        let rows = learner.samples();
        let learners = learner.row_access()?.without_folds(folds, participant.seed);
        let learners = learners.ok_or_else(|| {
            LearnError::Failed(format!(
                "\"auto\" holds rows, or persons where rows belong to such, out for cross-validation, and the {rows} \
                 training rows of this silo cannot be divided: give the number of coalitions or groups"
            ))
        })?;
        let steps: Vec<u64> = learners
            .iter()
            .map(|learner| fit.steps(learner.samples()))
            .collect();
        let mut done = 0;
        let folds = learners.into_iter().enumerate().map(|(fold, learner)| {
            let mut watch = later(progress, done, steps.iter().sum());
            let part = Participant {
                learner: &*learner,
                seed: mixed_seed(participant.seed, fold as u64),
                ..participant
            };
            let update = fit.update(part, start, &mut watch)?;
            done += steps[fold];
            Ok(Fold {
                rows: rows.saturating_sub(learner.samples()),
                learner,
                update,
            })
        });
        Ok(Self {
            folds: folds.collect::<Result<_, LearnError>>()?,
        })
    }

    /// The robust loss within `radius` of what `model` makes of every fold's model, on that fold.
    pub(crate) fn losses(
        &self,
        radius: f64,
        model: impl Fn(&Params) -> Result<Params, LearnError>,
    ) -> Result<Vec<f64>, LearnError> {
        let each = self.folds.iter().map(|fold| {
            let (model, personal) = (model(&fold.update.shared)?, &fold.update.personal);
            let split = Split::Validation;
            fold.learner.loss(&model, personal, radius, split)
        });
        each.collect()
    }

    /// The mean robust loss within `radius` of every fold's own model, on that fold.
    pub(crate) fn own_loss(&self, radius: f64) -> Result<f64, LearnError> {
        let losses = self.losses(radius, |fold| Ok(fold.clone()))?;
        Ok(self.mean(&losses))
    }

    /// The mean of losses by fold, every row counting once.
    pub(crate) fn mean(&self, losses: &[f64]) -> f64 {
        mean(losses, &self.rows())
    }

    /// The standard error over the folds of the difference of two means.
    pub(crate) fn error(&self, losses: &[f64], others: &[f64]) -> f64 {
        let each = losses.iter().zip(others).map(|(one, other)| one - other);
        mean_and_error(&each.collect::<Vec<_>>(), &self.rows()).1
    }

    fn rows(&self) -> Vec<f64> {
        self.folds.iter().map(|fold| fold.rows as f64).collect()
    }
}
