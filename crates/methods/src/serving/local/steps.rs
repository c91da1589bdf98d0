//! Training alone in steps: how long, with which learning rate and which weight decay.

use std::sync::Arc;

use super::super::alone::Alone;
use super::super::folds::{self, loss};
use super::super::rule::{TriedWay, Way, least};
use crate::learner::{LearnError, Learner, Optimiser, Task, Training};
use crate::params::Params;
use crate::selection::mean;

/// The step between the learning rates that are tried, from the federation's in both directions.
const RATE_STEP: f64 = 3.0;
/// Most learning rates that are tried: at least three, and more where the best is at an edge.
const RATES: usize = 6;
/// Weight decays that are tried with the best rate, beside the federation's.
const DECAYS: [f64; 3] = [0.001, 0.01, 0.1];
/// Checkpoints in a row without a smaller loss, after which a training is given up.
const PATIENCE: usize = 2;

/// Trainings of a silo without each of its folds.
pub(super) struct StepSearch<'a> {
    alone: &'a Alone,
    training: &'a Training,
    /// Epochs of the federation.
    epochs: u64,
    without: &'a [Arc<dyn Learner>],
    /// Rows by fold.
    rows: &'a [f64],
    /// Epochs trained, over all folds.
    spent: u64,
}

impl<'a> StepSearch<'a> {
    /// `None` where the silo does not train.
    pub(super) fn new(
        alone: &'a Alone,
        without: &'a [Arc<dyn Learner>],
        rows: &'a [f64],
    ) -> Option<Self> {
        let (training, epochs) = alone.training()?;
        Some(Self {
            alone,
            training,
            epochs,
            without,
            rows,
            spent: 0,
        })
    }

    /// The federation's training alone, at every checkpoint, and the models without each fold at the last.
    pub(super) fn federations(&mut self) -> (Vec<TriedWay>, Vec<Params>) {
        let (rate, decay) = rate_and_decay(&self.training.optimiser);
        let mut models = self.start();
        let tried = self.train(&mut models, rate, decay, usize::MAX);
        (tried, models.into_iter().map(|(model, _)| model).collect())
    }

    /// The federation's training for as many epochs.
    pub(super) fn untuned(&self) -> Way {
        let (rate, weight_decay) = rate_and_decay(&self.training.optimiser);
        Way::Training {
            rate,
            weight_decay,
            epochs: self.epochs,
        }
    }

    /// Adds other learning rates and weight decays to the ways that are tried.
    pub(super) fn widen(&mut self, all: &mut Vec<TriedWay>) {
        let (rate, decay) = rate_and_decay(&self.training.optimiser);
        let rate = self.rates(rate, decay, all);
        for other in DECAYS.into_iter().filter(|other| *other != decay) {
            let more = self.path(rate, other, PATIENCE);
            all.extend(more);
        }
    }

    /// Work so far, in trainings as long as the federation's.
    pub(super) fn trainings(&self) -> f64 {
        self.spent as f64 / self.epochs.max(1) as f64
    }

    /// The model of a training; `None` for a fit.
    pub(super) fn make(&mut self, learner: &dyn Learner, way: Way) -> Option<(Params, Params)> {
        let Way::Training {
            rate,
            weight_decay,
            epochs,
        } = way
        else {
            return None;
        };
        let personal = learner.initial_personal(self.alone.initial);
        let mut model = (self.alone.start.clone(), personal);
        for (nth, chunk) in chunks(epochs).into_iter().enumerate() {
            model = self
                .chunk(learner, &model, (rate, weight_decay), (nth, chunk))
                .ok()?;
            self.spent += u64::from(chunk);
        }
        Some(model)
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
            let chosen = least(all, self.rows);
            if let Some(Way::Training { rate, .. }) = chosen.map(|best| best.way) {
                best = rate;
            }
        }
        best
    }

    /// A training without each fold, measured after 1, 2, 4, … epochs. It ends where it diverges, or
    /// after `patience` checkpoints in a row without a smaller loss.
    fn path(&mut self, rate: f64, weight_decay: f64, patience: usize) -> Vec<TriedWay> {
        self.train(&mut self.start(), rate, weight_decay, patience)
    }

    /// The model that a training without each fold starts from.
    fn start(&self) -> Vec<(Params, Params)> {
        let personal = self.without[0].initial_personal(self.alone.initial);
        vec![(self.alone.start.clone(), personal); self.without.len()]
    }

    fn train(
        &mut self,
        models: &mut [(Params, Params)],
        rate: f64,
        weight_decay: f64,
        patience: usize,
    ) -> Vec<TriedWay> {
        let mut tried = Vec::new();
        let (mut epochs, mut least, mut waited) = (0, f64::INFINITY, 0);
        for (nth, chunk) in chunks(self.epochs).into_iter().enumerate() {
            let mut losses = Vec::new();
            let count = self.rows.iter().sum();
            for (learner, model) in self.without.iter().zip(&mut *models) {
                let next = self.chunk(&**learner, model, (rate, weight_decay), (nth, chunk));
                let measured = next.and_then(|next| {
                    *model = next;
                    loss(&**learner, model, count)
                });
                let Ok(measured) = measured else {
                    return tried;
                };
                losses.push(measured);
                self.spent += u64::from(chunk);
            }
            epochs += u64::from(chunk);
            let own = mean(&folds::alone(&losses), self.rows);
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
}
