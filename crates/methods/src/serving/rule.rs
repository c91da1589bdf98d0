//! The ways to a silo's own model, and the rules by which one is chosen.

use serde::{Deserialize, Serialize};

use super::folds::{mean, mean_and_error};

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
pub(super) struct Tried {
    pub(super) way: Way,
    pub(super) losses: Vec<f64>,
}

/// The rule of a choice by cross-validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// The way of least loss; of equals the first.
    Least,
    /// The fit with the strongest ridge of those whose loss is larger than the least by no more than the
    /// standard error of the difference, fold by fold: the one-standard-error rule (Breiman et al.
    /// 1984, section 3.4.3) for losses on the same rows. For exact fits.
    Strongest,
}

impl Rule {
    /// The way that is chosen; `None` where there is none. `rows` are those of every fold.
    pub(super) fn choose<'a>(self, all: &'a [Tried], rows: &[f64]) -> Option<&'a Tried> {
        self.without(all, rows, None)
    }

    /// The loss on every fold of the way that is chosen on the others. The least of many losses is smaller
    /// than what the way is worth on new rows; no fold has a say in what it measures here.
    pub(super) fn chosen_on_others(self, all: &[Tried], rows: &[f64]) -> Vec<f64> {
        let fold = |fold| self.without(all, rows, Some(fold));
        (0..rows.len())
            .map(|at| fold(at).map_or(f64::NAN, |one| one.losses[at]))
            .collect()
    }

    fn without<'a>(self, all: &'a [Tried], rows: &[f64], fold: Option<usize>) -> Option<&'a Tried> {
        let kept = |values: &[f64]| -> Vec<f64> {
            let each = values.iter().enumerate();
            let each = each.filter(|(at, _)| Some(*at) != fold);
            each.map(|(_, value)| *value).collect()
        };
        let rows = kept(rows);
        let loss = |one: &Tried| mean(&kept(&one.losses), &rows);
        let best = all.iter().min_by(|a, b| loss(a).total_cmp(&loss(b)))?;
        let near = |one: &&Tried| {
            let pairs = one.losses.iter().zip(&best.losses);
            let behind: Vec<f64> = pairs.map(|(one, best)| one - best).collect();
            let (behind, error) = mean_and_error(&kept(&behind), &rows);
            behind <= error
        };
        let strength = |one: &&Tried| match one.way {
            Way::Fit { ridge, .. } => ridge,
            Way::Training { .. } => 0.0,
        };
        match self {
            Self::Least => Some(best),
            Self::Strongest => all
                .iter()
                .filter(near)
                .max_by(|a, b| strength(a).total_cmp(&strength(b))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(ridge: f64, losses: &[f64]) -> Tried {
        Tried {
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
        let measured = Rule::Least.chosen_on_others(&all, &[1.0; 3]);
        assert_eq!(measured, [3.5, 3.5, 4.0]);
        // The losses of a way that is best on every fold are its own.
        let best = tried(4.0, &[0.5, 0.6, 0.7]);
        let measured = Rule::Least.chosen_on_others(&[best], &[1.0; 3]);
        assert_eq!(measured, [0.5, 0.6, 0.7]);
    }

    #[test]
    fn of_fits_that_differ_by_chance_the_strongest_ridge_is_taken() {
        let ridge = |all: &[Tried], rule: Rule| match rule.choose(all, &[2.0; 4]).unwrap().way {
            Way::Fit { ridge, .. } => ridge,
            Way::Training { .. } => panic!("a fit"),
        };
        // The strong one is behind by .1 in the mean, in one fold only.
        let mut all = vec![
            tried(0.01, &[0.5, 0.5, 0.5, 0.5]),
            tried(1.0, &[0.5, 0.5, 0.5, 0.9]),
        ];
        assert_eq!(ridge(&all, Rule::Least), 0.01);
        assert_eq!(ridge(&all, Rule::Strongest), 1.0);
        // This one is behind by .1 in every fold.
        all.push(tried(10.0, &[0.6, 0.6, 0.6, 0.6]));
        assert_eq!(ridge(&all, Rule::Strongest), 1.0);
    }
}
