//! The loop of a local training: epochs, order of rows, batches, progress.

use std::ops::ControlFlow;

use methods::learner::Optimiser;
use methods::{LearnError, Progress, Training};
use rand_chacha::ChaCha8Rng;

use crate::data::Rows;
use crate::models::ModelFit;
use crate::random::{shuffle, stream};

/// Steps between reports within an epoch.
const REPORT: u64 = 256;

/// The order of rows in an epoch.
pub(crate) enum EpochOrder<'a> {
    /// Shuffled for every epoch, from a seed.
    Seeded(u64),
    /// Given, the same in every epoch.
    Given(&'a [u32]),
    /// The order of the table.
    Standing,
}

/// The order of all epochs of a training.
struct EpochOrders {
    numbers: Vec<u32>,
    rng: Option<ChaCha8Rng>,
}

impl EpochOrders {
    fn new(rows: usize, order: EpochOrder<'_>) -> Self {
        let all = || (0..rows as u32).collect();
        let (numbers, rng) = match order {
            EpochOrder::Given(order) => (order.to_vec(), None),
            EpochOrder::Standing => (all(), None),
            EpochOrder::Seeded(seed) => (all(), Some(stream(seed, "row order"))),
        };
        Self { numbers, rng }
    }

    /// The next epoch.
    fn next(&mut self) -> &[u32] {
        if let Some(rng) = &mut self.rng {
            shuffle(rng, &mut self.numbers);
        }
        &self.numbers
    }
}

/// Rows of a step.
fn batch(rows: &Rows, training: &Training) -> usize {
    match training.batch {
        0 => rows.len(),
        batch => batch as usize,
    }
}

/// The rows of every step of [`train`].
///
/// # Errors
/// [`LearnError::NoRows`].
pub(crate) fn batches(
    rows: &Rows,
    training: &Training,
    order: EpochOrder<'_>,
) -> Result<Vec<Vec<u32>>, LearnError> {
    if rows.is_empty() {
        return Err(LearnError::NoRows("training"));
    }
    let mut passes = EpochOrders::new(rows.len(), order);
    let mut all = Vec::new();
    for _ in 0..training.epochs {
        let batches = passes.next().chunks(batch(rows, training));
        all.extend(batches.map(<[u32]>::to_vec));
    }
    Ok(all)
}

/// Trains to the end; the mean loss of the last epoch.
///
/// # Errors
/// [`LearnError`]: no rows, no epochs, a loss that is not finite, stopped by `progress`.
pub(crate) fn train(
    fit: &mut dyn ModelFit,
    rows: &Rows,
    training: &Training,
    order: EpochOrder<'_>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<f64, LearnError> {
    if rows.is_empty() {
        return Err(LearnError::NoRows("training"));
    }
    if training.epochs == 0 {
        return Err(LearnError::Failed(
            "a training needs at least one epoch, found `epochs = 0`".into(),
        ));
    }
    let batch = batch(rows, training);
    let steps = training.steps(rows.len() as u64);
    let mut passes = EpochOrders::new(rows.len(), order);
    let (mut step, mut last) = (0, f64::NAN);
    for epoch in 0..training.epochs {
        let numbers = passes.next();
        let (mut sum, mut seen) = (0.0, 0);
        for batch in numbers.chunks(batch) {
            let loss = fit.step(rows, batch);
            step += 1;
            if !loss.is_finite() {
                return Err(diverged(step, &training.optimiser));
            }
            sum += loss * batch.len() as f64;
            seen += batch.len();
            if epoch == 0 {
                last = sum / seen as f64;
            }
            if step % REPORT == 0 && seen < numbers.len() {
                report(
                    progress,
                    Progress {
                        step,
                        steps,
                        loss: last,
                    },
                )?;
            }
        }
        last = sum / seen as f64;
        report(
            progress,
            Progress {
                step,
                steps,
                loss: last,
            },
        )?;
    }
    Ok(last)
}

/// The error that weights or loss are not finite at `step`.
pub(crate) fn diverged(step: u64, optimiser: &Optimiser) -> LearnError {
    let (Optimiser::Sgd { rate, .. } | Optimiser::Adam { rate, .. }) = *optimiser;
    LearnError::Diverged { step, rate }
}

fn report(
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    at: Progress,
) -> Result<(), LearnError> {
    match progress(at) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(LearnError::Stopped),
    }
}
