//! The ways to a silo's local model, and the rules by which one is chosen.

use serde::{Deserialize, Serialize};

use super::folds::{HeldOutLoss, alone};
use crate::selection::mean;

/// A way to a model of a silo's own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "by",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
pub enum Way {
    /// Training.
    Training {
        /// Learning rate.
        rate: f64,
        /// Weight decay.
        weight_decay: f64,
        /// Epochs.
        epochs: u64,
    },
    /// The model of least loss, by a convex solver.
    Fit {
        /// Radius around the rows within which the worst loss counts; 0 for the plain loss.
        radius: f64,
        /// Strength ρ of the ridge penalty, `ρ/2·‖w‖²`.
        ridge: f64,
    },
}

/// A way with its losses by fold.
pub(super) struct TriedWay {
    pub(super) way: Way,
    pub(super) losses: Vec<HeldOutLoss>,
}

/// The way of least loss; of equals the first. `None` where there is none. `rows` are those of every fold.
pub(super) fn least<'a>(all: &'a [TriedWay], rows: &[f64]) -> Option<&'a TriedWay> {
    least_without(all, rows, None)
}

/// The loss on every fold of the way that is best on the others. The least of many losses is smaller than
/// what the way is worth on new rows; no fold has a say in what it measures here.
pub(super) fn least_on_others(all: &[TriedWay], rows: &[f64]) -> Vec<HeldOutLoss> {
    let fold = |fold| least_without(all, rows, Some(fold));
    (0..rows.len())
        .map(|at| fold(at).map_or(HeldOutLoss::plain(f64::NAN), |one| one.losses[at]))
        .collect()
}

fn least_without<'a>(
    all: &'a [TriedWay],
    rows: &[f64],
    fold: Option<usize>,
) -> Option<&'a TriedWay> {
    let rows = kept(rows, fold);
    let loss = |one: &TriedWay| mean(&kept(&alone(&one.losses), fold), &rows);
    all.iter().min_by(|a, b| loss(a).total_cmp(&loss(b)))
}

/// The values of all folds but one.
fn kept(values: &[f64], fold: Option<usize>) -> Vec<f64> {
    let each = values.iter().enumerate();
    let each = each.filter(|(at, _)| Some(*at) != fold);
    each.map(|(_, value)| *value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(ridge: f64, losses: &[f64]) -> TriedWay {
        TriedWay {
            way: Way::Fit { radius: 0.0, ridge },
            losses: numbers(losses),
        }
    }

    fn numbers(of: &[f64]) -> Vec<HeldOutLoss> {
        of.iter().copied().map(HeldOutLoss::plain).collect()
    }

    #[test]
    fn a_fold_has_no_say_in_the_way_that_it_measures() {
        // Each is lucky on one fold. Its own choice would give 0 everywhere.
        let all = [
            tried(1.0, &[0.0, 3.0, 4.0]),
            tried(2.0, &[3.0, 0.0, 4.0]),
            tried(3.0, &[3.5, 3.5, 0.0]),
        ];
        let measured = least_on_others(&all, &[1.0; 3]);
        assert_eq!(measured, numbers(&[3.5, 3.5, 4.0]));
        // The losses of a way that is best on every fold are its own.
        let best = tried(4.0, &[0.5, 0.6, 0.7]);
        let measured = least_on_others(&[best], &[1.0; 3]);
        assert_eq!(measured, numbers(&[0.5, 0.6, 0.7]));
    }
}
