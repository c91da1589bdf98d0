//! The ways to a silo's local model, and the rules by which one is chosen.

use serde::{Deserialize, Serialize};

use super::folds::mean;

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
    pub(super) losses: Vec<f64>,
}

/// The way of least loss; of equals the first. `None` where there is none. `rows` are those of every fold.
pub(super) fn least<'a>(all: &'a [TriedWay], rows: &[f64]) -> Option<&'a TriedWay> {
    least_without(all, rows, None)
}

/// The loss on every fold of the way that is best on the others. The least of many losses is smaller than
/// what the way is worth on new rows; no fold has a say in what it measures here.
pub(super) fn least_on_others(all: &[TriedWay], rows: &[f64]) -> Vec<f64> {
    let fold = |fold| least_without(all, rows, Some(fold));
    (0..rows.len())
        .map(|at| fold(at).map_or(f64::NAN, |one| one.losses[at]))
        .collect()
}

fn least_without<'a>(
    all: &'a [TriedWay],
    rows: &[f64],
    fold: Option<usize>,
) -> Option<&'a TriedWay> {
    let rows = kept(rows, fold);
    let loss = |one: &TriedWay| mean(&kept(&one.losses, fold), &rows);
    all.iter().min_by(|a, b| loss(a).total_cmp(&loss(b)))
}

/// The strength of a ridge between those of these fits, in the mean of their logarithms. A fit counts
/// `exp(−n/2 · (L − L₀))` with its mean loss `L` over the `n` rows of the folds, `fold` excepted, and the
/// least `L₀`: all alike where losses differ by chance, the best alone where rows tell them apart. `None`
/// without fits.
///
/// With few rows the least of the losses is the luckiest one, and mostly of too weak a ridge; the strongest
/// of those near it, as in the one-standard-error rule, is too strong where features tell much. A mean is
/// wrong by little in both cases. The half stands for folds whose models share most of their rows.
pub(super) fn plausible_ridge(fits: &[TriedWay], rows: &[f64], fold: Option<usize>) -> Option<f64> {
    let rows = kept(rows, fold);
    let count: f64 = rows.iter().sum();
    let strengths = fits.iter().filter_map(|one| match one.way {
        Way::Fit { ridge, .. } => Some((ridge, mean(&kept(&one.losses, fold), &rows))),
        Way::Training { .. } => None,
    });
    let strengths: Vec<(f64, f64)> = strengths.collect();
    let losses = strengths.iter().map(|(_, loss)| *loss);
    let least = losses.min_by(f64::total_cmp)?;
    let weight = |loss: f64| libm::exp(-0.5 * count * (loss - least));
    let all: f64 = strengths.iter().map(|(_, loss)| weight(*loss)).sum();
    let logarithms = strengths
        .iter()
        .map(|(ridge, loss)| weight(*loss) * libm::log(*ridge));
    Some(libm::exp(logarithms.sum::<f64>() / all))
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
            losses: losses.to_vec(),
        }
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
        assert_eq!(measured, [3.5, 3.5, 4.0]);
        // The losses of a way that is best on every fold are its own.
        let best = tried(4.0, &[0.5, 0.6, 0.7]);
        let measured = least_on_others(&[best], &[1.0; 3]);
        assert_eq!(measured, [0.5, 0.6, 0.7]);
    }

    #[test]
    fn similar_ridges_are_averaged_and_a_clearly_best_one_is_taken() {
        let ridge = |all: &[TriedWay], rows: f64| {
            plausible_ridge(all, &[rows; 4], None).map(|ridge| (1e6 * ridge).round() / 1e6)
        };
        let alike = vec![tried(0.01, &[0.5; 4]), tried(1.0, &[0.5; 4])];
        assert_eq!(ridge(&alike, 5.0), Some(0.1));
        // With twenty rows a difference of .05 is e^−½ to 1; with two thousand it is clear.
        let behind = vec![tried(0.01, &[0.5; 4]), tried(1.0, &[0.55; 4])];
        let share = 1.0 / (1.0 + libm::exp(0.5));
        let expected = libm::exp((1.0 - share) * libm::log(0.01));
        assert_eq!(ridge(&behind, 5.0), Some((1e6 * expected).round() / 1e6));
        assert_eq!(ridge(&behind, 500.0), Some(0.01));
        assert_eq!(ridge(&[], 5.0), None);
        // The fold that is left out has no say.
        let lucky = vec![tried(0.01, &[9.0, 0.5, 0.5]), tried(1.0, &[0.0, 0.5, 0.5])];
        let without = plausible_ridge(&lucky, &[5.0; 3], Some(0)).unwrap();
        assert!((without - 0.1).abs() < 1e-12);
    }
}
