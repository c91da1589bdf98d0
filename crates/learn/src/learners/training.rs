//! The loop of a local training: epochs, order of rows, batches, progress.

use std::ops::ControlFlow;

use methods::learner::Optimiser;
use methods::{LearnError, Progress, Training};

use crate::data::Rows;
use crate::models::Fit;
use crate::random::{shuffle, stream};

/// Steps between reports within an epoch.
const REPORT: u64 = 256;

/// In which order an epoch goes through the rows.
pub(crate) enum Order<'a> {
    /// Shuffled anew for every epoch, from a seed.
    Seeded(u64),
    /// As given, in every epoch.
    Given(&'a [u32]),
}

/// Trains to the end; the mean loss of the last epoch.
///
/// # Errors
/// [`LearnError`]: no rows, no epochs, a loss that is not finite, stopped by `progress`.
pub(crate) fn train(
    fit: &mut dyn Fit,
    rows: &Rows,
    training: &Training,
    order: Order<'_>,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<f64, LearnError> {
    if rows.len() == 0 {
        return Err(LearnError::NoRows("training"));
    }
    if training.epochs == 0 {
        return Err(LearnError::Unsupported(
            "a training needs at least one epoch".into(),
        ));
    }
    let batch = if training.batch == 0 {
        rows.len()
    } else {
        training.batch as usize
    };
    let steps = training.steps(rows.len() as u64);
    let (mut numbers, mut rng): (Vec<u32>, _) = match order {
        Order::Given(order) => (order.to_vec(), None),
        Order::Seeded(seed) => (
            (0..rows.len() as u32).collect(),
            Some(stream(seed, "row order")),
        ),
    };
    let (mut step, mut last) = (0, f64::NAN);
    for epoch in 0..training.epochs {
        if let Some(rng) = &mut rng {
            shuffle(rng, &mut numbers);
        }
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

/// That weights or loss left the finite numbers at `step`.
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
