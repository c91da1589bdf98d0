//! The best model that a silo can make alone, by cross-validation on its own training rows: an exact fit of a
//! linear or logistic model, or a training in steps whose length, learning rate and weight decay are chosen.
//!
//! A federation's training suits the federation. Alone, on few rows, the same number of epochs may
//! overtrain, and a model that is worse than it needs to be is no fair reference. Nor is the best of sixty ways:
//! on few rows it is the luckiest one. So a model that has exact fits is fitted, by the
//! [one rule](crate::robust::ridge::choose_ridge) for the strength of their ridge, and is not trained in steps as well.

mod exact;
mod steps;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::alone::Alone;
use super::folds::{self, HeldOutLoss, without_folds};
use super::rule::{Way, least, least_on_others};
use crate::learner::{LearnError, Learner};
use crate::params::Params;
use crate::selection::mean;

use exact::ExactFits;
use steps::StepSearch;

/// Folds of the cross-validation where none are given.
pub const TUNING_FOLDS: usize = 5;
/// Most training rows for exact fits, whose time grows fast with rows.
pub const FIT_ROWS: u64 = 1_000;
/// Most work, in parameters times rows times epochs over all silos that a process tunes, for which
/// learning rates and weight decays are searched. Above it, only the number of epochs is chosen.
pub const WORK: f64 = 1e9;

/// Extent of the search where models are trained in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Learning rates, weight decays, epochs.
    Full,
    /// The epochs of the federation's training.
    Epochs,
}

impl Effort {
    /// The effort for so much work in all, see [`WORK`].
    pub fn within(work: f64) -> Self {
        if work <= WORK {
            Self::Full
        } else {
            Self::Epochs
        }
    }

    /// The work of one training alone: parameters times rows times epochs.
    pub fn work(learner: &dyn Learner, alone: &Alone) -> f64 {
        let epochs = alone.training().map_or(0, |(_, epochs)| epochs);
        let parameters = learner.layout().trained().len();
        parameters as f64 * learner.samples() as f64 * epochs as f64
    }
}

/// The choice, and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Tuned {
    /// The way of least loss.
    pub way: Way,
    /// Loss of the chosen way in cross-validation, with one row more of each class.
    pub loss: f64,
    /// The loss of the federation's own training alone, for as many epochs.
    pub untuned: Option<f64>,
    /// True if learning rates and weight decays were searched: not for a model that is fitted exactly.
    pub rates: bool,
    /// Work of the search, in trainings of as many epochs as the federation's: the final one included.
    pub trainings: f64,
    /// Exact and robust fits, without those by which each chooses its ridge.
    pub fits: u64,
}

/// A model with its losses in cross-validation, by fold.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// Way in which the model was made.
    pub way: Way,
    /// The model, of all training rows, and the personal state.
    pub model: (Params, Params),
    /// The loss of the models without each fold, on that fold, each made as the other folds say.
    pub(super) losses: Vec<HeldOutLoss>,
}

/// The models that a silo made alone.
#[derive(Debug, Clone)]
pub struct LocalModels {
    /// The best one, and the personal state.
    pub model: (Params, Params),
    /// Tuning by which the model was chosen; `None` where the rows cannot be divided into folds, and the model is
    /// trained as the federation trains.
    pub tuned: Option<Tuned>,
    /// The best robust fit, where the learner can fit robustly.
    pub robust: Option<Fitted>,
    pub(super) folds: Option<FoldLosses>,
}

/// Results of the cross-validation that the comparison needs.
#[derive(Debug, Clone)]
pub(super) struct FoldLosses {
    /// Rows by fold.
    pub(super) rows: Vec<f64>,
    /// The loss on every fold of a model that is made without it, as the other folds say.
    pub(super) best: Vec<HeldOutLoss>,
    /// The federation's training alone; `None` where it diverged.
    pub(super) federations: Option<TrainedAlone>,
}

/// Models that the silo trained alone as long as the federation does.
#[derive(Debug, Clone)]
pub(super) struct TrainedAlone {
    /// On all training rows.
    pub(super) with: Params,
    /// Without each fold.
    pub(super) without: Vec<Params>,
}

impl LocalModels {
    /// Fits exactly, or trains alone in the best of several ways.
    ///
    /// # Errors
    /// [`LearnError`] of the learner, where no way leads to a model.
    pub fn tune(
        learner: &dyn Learner,
        alone: &Alone,
        folds: usize,
        effort: Effort,
    ) -> Result<Self, LearnError> {
        match search(learner, alone, folds, effort) {
            Some(local) => Ok(local),
            None => Ok(Self {
                model: alone.train(learner)?,
                tuned: None,
                robust: None,
                folds: None,
            }),
        }
    }
}

fn search(
    learner: &dyn Learner,
    alone: &Alone,
    folds: usize,
    effort: Effort,
) -> Option<LocalModels> {
    let without = without_folds(learner, folds, alone.seed)?;
    let held_out = |one: &Arc<dyn Learner>| learner.samples().saturating_sub(one.samples());
    let rows: Vec<f64> = without.iter().map(|one| held_out(one) as f64).collect();
    let mut steps = StepSearch::new(alone, &without, &rows)?;
    let (mut trained, models) = steps.federations();
    let untuned = trained.iter().find(|one| one.way == steps.untuned());
    let untuned = untuned.map(|one| mean(&folds::alone(&one.losses), &rows));
    let mut exact = ExactFits::new(learner, alone, &without);
    let plain = exact.as_mut().and_then(ExactFits::plain);
    let robust = exact.as_mut().and_then(|fits| fits.robust(&rows));
    let rates = plain.is_none() && effort == Effort::Full;
    let best = match plain {
        Some(plain) => plain,
        None => {
            if rates {
                steps.widen(&mut trained);
            }
            let best = least(&trained, &rows)?.way;
            Fitted {
                way: best,
                model: steps.make(learner, best)?,
                losses: least_on_others(&trained, &rows),
            }
        }
    };
    let federations = untuned.and_then(|_| {
        let (with, _) = steps.make(learner, steps.untuned())?;
        Some(TrainedAlone {
            with,
            without: models,
        })
    });
    let tuned = Tuned {
        way: best.way,
        loss: mean(&folds::alone(&best.losses), &rows),
        untuned,
        rates,
        trainings: steps.trainings(),
        fits: exact.map_or(0, |exact| exact.count),
    };
    Some(LocalModels {
        model: best.model,
        tuned: Some(tuned),
        robust,
        folds: Some(FoldLosses {
            rows,
            best: best.losses,
            federations,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_is_smaller_above_the_bound() {
        assert_eq!(Effort::within(WORK), Effort::Full);
        assert_eq!(Effort::within(2.0 * WORK), Effort::Epochs);
    }
}
