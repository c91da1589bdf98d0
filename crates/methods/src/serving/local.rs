//! The best model that a silo can train alone: how long, with which learning rate and which weight
//! decay, or fitted exactly, chosen by cross-validation on its own training rows.
//!
//! A federation's training suits the federation. Alone, on few rows, the same number of epochs may
//! overtrain, and a model that is worse than it needs to be is no fair reference.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::alone::Alone;
use super::folds::{has_classes, loss, mean, without_folds};
use super::rule::{TriedWay, Way, least, least_on_others, plausible_ridge};
use crate::learner::{ExactFit, Job, LearnError, Learner, Optimiser, Split, Task, Training, Work};
use crate::params::Params;
use crate::robust::Ridge;

/// Folds of the cross-validation where none are given.
pub const TUNING_FOLDS: usize = 5;
/// The step between the learning rates that are tried, from the federation's in both directions.
const RATE_STEP: f64 = 3.0;
/// Most learning rates that are tried: at least three, and more where the best is at an edge.
const RATES: usize = 6;
/// Weight decays that are tried with the best rate, beside the federation's.
const DECAYS: [f64; 3] = [0.001, 0.01, 0.1];
/// Strengths of the ridge penalty of exact fits. With the largest, hardly more than an intercept is left.
/// With few rows a strength between them is taken, see [`plausible_ridge`].
const RIDGES: [f64; 6] = [0.01, 0.03, 0.1, 0.3, 1.0, 10.0];
/// Radii of robust fits, with the best ridge penalty of the exact ones.
const RADII: [f64; 2] = [0.03, 0.1];
/// Training rows below which a model of classes that has exact fits is not trained in steps as well.
pub(super) const FEW_ROWS: u64 = 50;
/// Most training rows for exact fits, whose time grows fast with rows.
pub const FIT_ROWS: u64 = 1_000;
/// Checkpoints in a row without a smaller loss, after which a training is given up.
const PATIENCE: usize = 2;
/// Most work, in parameters times rows times epochs over all silos that a process tunes, for which
/// learning rates and weight decays are searched. Above it, only the number of epochs is chosen.
pub const WORK: f64 = 1e9;

/// Extent of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Learning rates, weight decays, epochs, exact fits.
    Full,
    /// The epochs of the federation's training, and exact fits.
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
    /// True if learning rates and weight decays were searched.
    pub rates: bool,
    /// Work of the search, in trainings of as many epochs as the federation's: the final one included.
    pub trainings: f64,
    /// Exact fits.
    pub fits: u64,
}

/// A model with its losses in cross-validation, by fold.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// Way in which the model was made.
    pub way: Way,
    /// The model, of all training rows, and the personal state.
    pub model: (Params, Params),
    /// The loss of the models without each fold, on that fold, each made in the way that is best on
    /// the other folds.
    pub(super) losses: Vec<f64>,
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
    /// Losses of the best way: on every fold those of the way that is best on the others.
    pub(super) best: Vec<f64>,
    /// Amount by which a training on a fold lowers its loss: of the federation's training alone, without
    /// the fold and with it. Empty where it diverged.
    pub(super) seen: Vec<f64>,
}

impl LocalModels {
    /// Trains alone, in the best of several ways.
    ///
    /// # Errors
    /// [`LearnError`] of the learner, where no way leads to a model.
    pub fn tune(
        learner: &dyn Learner,
        alone: &Alone,
        folds: usize,
        effort: Effort,
    ) -> Result<Self, LearnError> {
        let search = LocalSearch::new(learner, alone, folds);
        let found = search.and_then(|search| search.run(effort));
        match found {
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

struct LocalSearch<'a> {
    learner: &'a dyn Learner,
    alone: &'a Alone,
    training: &'a Training,
    /// Epochs of the federation.
    epochs: u64,
    without: Vec<Arc<dyn Learner>>,
    rows: Vec<f64>,
    /// Epochs trained over all folds, and fits.
    spent: (u64, u64),
}

impl<'a> LocalSearch<'a> {
    fn new(learner: &'a dyn Learner, alone: &'a Alone, folds: usize) -> Option<Self> {
        let (training, epochs) = alone.training()?;
        let without = without_folds(learner, folds, alone.seed)?;
        let held_out = |one: &Arc<dyn Learner>| learner.samples().saturating_sub(one.samples());
        Some(Self {
            rows: without.iter().map(|one| held_out(one) as f64).collect(),
            learner,
            alone,
            training,
            epochs,
            without,
            spent: (0, 0),
        })
    }

    fn run(mut self, effort: Effort) -> Option<LocalModels> {
        let (rate, decay) = rate_and_decay(&self.training.optimiser);
        let own = self.path(rate, decay, usize::MAX);
        let untuned = own
            .last()
            .filter(|one| matches!(one.way, Way::Training { epochs, .. } if epochs == self.epochs))
            .map(|one| one.losses.clone());
        let exact: Vec<TriedWay> = RIDGES
            .iter()
            .filter_map(|&ridge| self.fits(0.0, ridge))
            .collect();
        let few = !exact.is_empty() && self.learner.samples() < FEW_ROWS && self.has_classes();
        let rates = effort == Effort::Full && !few;
        let (best, losses, robust) = if few {
            let ridge = plausible_ridge(&exact, &self.rows, None)?;
            let losses = self.plausible_on_others(&exact)?;
            (self.fits(0.0, ridge)?, losses, self.robust(ridge))
        } else {
            let mut all = own;
            if rates {
                let rate = self.rates(rate, decay, &mut all);
                for other in DECAYS.into_iter().filter(|other| *other != decay) {
                    let more = self.path(rate, other, PATIENCE);
                    all.extend(more);
                }
            }
            let ridge = least(&exact, &self.rows).map(|one| one.way);
            let robust = match ridge {
                Some(Way::Fit { ridge, .. }) => self.robust(ridge),
                _ => None,
            };
            all.extend(exact);
            let losses = least_on_others(&all, &self.rows);
            let best = least(&all, &self.rows)?;
            let (way, own) = (best.way, best.losses.clone());
            (TriedWay { way, losses: own }, losses, robust)
        };
        let (way, loss) = (best.way, mean(&best.losses, &self.rows));
        let model = self.make(self.learner, way)?;
        let seen = self.seen(untuned.as_deref()).unwrap_or_default();
        let tuned = Tuned {
            way,
            loss,
            untuned: untuned.map(|losses| mean(&losses, &self.rows)),
            rates,
            trainings: self.spent.0 as f64 / self.epochs.max(1) as f64,
            fits: self.spent.1,
        };
        Some(LocalModels {
            model,
            tuned: Some(tuned),
            robust,
            folds: Some(FoldLosses {
                rows: self.rows,
                best: losses,
                seen,
            }),
        })
    }

    /// Tries learning rates around that of the federation, and further out in the direction where the
    /// best is at the edge. Returns the best of all.
    fn rates(&mut self, rate: f64, decay: f64, all: &mut Vec<TriedWay>) -> f64 {
        let (mut low, mut high) = (rate, rate);
        let mut best = rate;
        for nth in 1..RATES {
            let next = match nth {
                1 => low / RATE_STEP,
                2 => high * RATE_STEP,
                _ if best == low => low / RATE_STEP,
                _ if best == high => high * RATE_STEP,
                _ => break,
            };
            (low, high) = (low.min(next), high.max(next));
            all.extend(self.path(next, decay, PATIENCE));
            let chosen = least(all, &self.rows);
            if let Some(Way::Training { rate, .. }) = chosen.map(|best| best.way) {
                best = rate;
            }
        }
        best
    }

    /// The loss on every fold of a fit without it, with the ridge that the other folds make plausible.
    fn plausible_on_others(&mut self, exact: &[TriedWay]) -> Option<Vec<f64>> {
        let without = self.without.clone();
        let each = without.iter().enumerate().map(|(fold, learner)| {
            let ridge = plausible_ridge(exact, &self.rows, Some(fold))?;
            let model = self.make(&**learner, Way::Fit { radius: 0.0, ridge })?;
            loss(&**learner, &model, self.count()).ok()
        });
        each.collect()
    }

    /// The best robust fit, with this ridge penalty.
    fn robust(&mut self, ridge: f64) -> Option<Fitted> {
        let tried: Vec<TriedWay> = RADII
            .iter()
            .filter_map(|&radius| self.fits(radius, ridge))
            .collect();
        let way = least(&tried, &self.rows)?.way;
        Some(Fitted {
            model: self.make(self.learner, way)?,
            way,
            losses: least_on_others(&tried, &self.rows),
        })
    }

    /// A training without each fold, measured after 1, 2, 4, … epochs. It ends where it diverges, or
    /// after `patience` checkpoints in a row without a smaller loss.
    fn path(&mut self, rate: f64, weight_decay: f64, patience: usize) -> Vec<TriedWay> {
        let mut tried = Vec::new();
        let initial = (
            self.alone.start.clone(),
            self.learner.initial_personal(self.alone.initial),
        );
        let mut models = vec![initial; self.without.len()];
        let (mut epochs, mut least, mut waited) = (0, f64::INFINITY, 0);
        for (nth, chunk) in chunks(self.epochs).into_iter().enumerate() {
            let mut losses = Vec::new();
            let count = self.count();
            for (learner, model) in self.without.iter().zip(&mut models) {
                let next = self.chunk(&**learner, model, (rate, weight_decay), (nth, chunk));
                let measured = next.and_then(|next| {
                    *model = next;
                    loss(&**learner, model, count)
                });
                let Ok(measured) = measured else {
                    return tried;
                };
                losses.push(measured);
                self.spent.0 += u64::from(chunk);
            }
            epochs += u64::from(chunk);
            let own = mean(&losses, &self.rows);
            waited = if own < least { 0 } else { waited + 1 };
            least = least.min(own);
            let way = Way::Training {
                rate,
                weight_decay,
                epochs,
            };
            tried.push(TriedWay { way, losses });
            if waited >= patience {
                break;
            }
        }
        tried
    }

    /// Trains on, for this number of epochs.
    fn chunk(
        &self,
        learner: &dyn Learner,
        (model, personal): &(Params, Params),
        (rate, weight_decay): (f64, f64),
        (nth, epochs): (usize, u32),
    ) -> Result<(Params, Params), LearnError> {
        let training = Training {
            epochs,
            optimiser: with(&self.training.optimiser, rate, weight_decay),
            ..self.training.clone()
        };
        // A falling rate is that of the round in which the federation trains these epochs.
        let before = epochs_before(nth) / u64::from(self.training.epochs.max(1));
        let task = Task::Train(training.at(before + 1));
        let round = self.alone.rounds.start() + nth as u64;
        self.alone
            .carry_out(learner, (model, personal), &task, round)
    }

    /// An exact fit without each fold; `None` where there is none, or for too many rows.
    fn fits(&mut self, radius: f64, ridge: f64) -> Option<TriedWay> {
        let way = Way::Fit { radius, ridge };
        let mut losses = Vec::new();
        for learner in self.without.clone() {
            let model = self.make(&*learner, way)?;
            losses.push(loss(&*learner, &model, self.count()).ok()?);
        }
        Some(TriedWay { way, losses })
    }

    /// The model that a way leads to.
    fn make(&mut self, learner: &dyn Learner, way: Way) -> Option<(Params, Params)> {
        let personal = learner.initial_personal(self.alone.initial);
        let start = &self.alone.start;
        match way {
            Way::Fit { radius, ridge } => {
                if self.learner.samples() > FIT_ROWS {
                    return None;
                }
                let plain = ExactFit {
                    ridge: Ridge::Fixed(ridge),
                    around_start: false,
                };
                let work = if radius > 0.0 {
                    Work::RobustFit { radius, ridge }
                } else {
                    Work::ExactFit(&plain)
                };
                if !learner.has(work.needs()?) {
                    return None;
                }
                self.spent.1 += 1;
                let go_on = &mut |_| ControlFlow::Continue(());
                let job = Job::without_draws(start, &personal, work);
                let update = job.run(learner, go_on).ok()?;
                Some((update.shared, update.personal))
            }
            Way::Training {
                rate,
                weight_decay,
                epochs,
            } => {
                let mut model = (start.clone(), personal);
                for (nth, chunk) in chunks(epochs).into_iter().enumerate() {
                    model = self
                        .chunk(learner, &model, (rate, weight_decay), (nth, chunk))
                        .ok()?;
                    self.spent.0 += u64::from(chunk);
                }
                Some(model)
            }
        }
    }

    /// Returns whether the loss is one of classes, of which a model may be too sure.
    fn has_classes(&self) -> bool {
        let personal = self.learner.initial_personal(self.alone.initial);
        let start = (self.alone.start.clone(), personal);
        let first = self.without.first();
        let start = (&start.0, &start.1);
        first.is_some_and(|learner| has_classes(&**learner, start, Split::Validation))
    }

    /// Rows of all folds.
    fn count(&self) -> f64 {
        self.rows.iter().sum()
    }

    /// Returns how much the federation's training, alone, lowers the loss of a fold by training on it.
    fn seen(&mut self, without: Option<&[f64]>) -> Option<Vec<f64>> {
        let without = without?;
        let (rate, weight_decay) = rate_and_decay(&self.training.optimiser);
        let way = Way::Training {
            rate,
            weight_decay,
            epochs: self.epochs,
        };
        let model = self.make(self.learner, way)?;
        let each = self.without.iter().zip(without);
        let count = self.count();
        let seen = each.map(|(learner, without)| {
            let with = loss(&**learner, &model, count).ok()?;
            Some(without - with)
        });
        seen.collect()
    }
}

/// Epochs between checkpoints after 1, 2, 4, … and all epochs.
fn chunks(epochs: u64) -> Vec<u32> {
    let (mut chunks, mut done) = (Vec::new(), 0u64);
    while done < epochs {
        let chunk = done.max(1).min(epochs - done).min(u64::from(u32::MAX));
        chunks.push(chunk as u32);
        done += chunk;
    }
    chunks
}

/// Epochs before the chunk at this place.
fn epochs_before(nth: usize) -> u64 {
    match nth {
        0 => 0,
        nth => 1 << (nth - 1),
    }
}

fn rate_and_decay(optimiser: &Optimiser) -> (f64, f64) {
    match *optimiser {
        Optimiser::Sgd {
            rate, weight_decay, ..
        }
        | Optimiser::Adam { rate, weight_decay } => (rate, weight_decay),
    }
}

/// This optimiser with this learning rate and weight decay.
fn with(optimiser: &Optimiser, rate: f64, weight_decay: f64) -> Optimiser {
    match *optimiser {
        Optimiser::Sgd { momentum, .. } => Optimiser::Sgd {
            rate,
            momentum,
            weight_decay,
        },
        Optimiser::Adam { .. } => Optimiser::Adam { rate, weight_decay },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_double_and_end_with_the_last_epoch() {
        assert_eq!(chunks(1), [1]);
        assert_eq!(chunks(8), [1, 1, 2, 4]);
        assert_eq!(chunks(70), [1, 1, 2, 4, 8, 16, 32, 6]);
        assert_eq!(chunks(0), [0; 0]);
        // A shorter training goes through the same checkpoints.
        assert_eq!(chunks(16)[..], chunks(70)[..5]);
        assert_eq!([0, 1, 2, 3, 4].map(epochs_before), [0, 1, 2, 4, 8]);
    }

    #[test]
    fn the_search_is_smaller_above_the_bound() {
        assert_eq!(Effort::within(WORK), Effort::Full);
        assert_eq!(Effort::within(2.0 * WORK), Effort::Epochs);
    }
}
