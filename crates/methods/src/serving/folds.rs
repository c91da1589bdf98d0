//! Losses by fold, and what follows for the candidates.

use std::ops::{Add, Sub};
use std::sync::Arc;

use super::{Advantage, Candidate, ComparedOn, Measured};
use crate::learner::{LearnError, Learner, RowResults, Split};
use crate::params::Params;
use crate::robust::with_one_more_of_each;
use crate::selection::{mean, mean_and_error};

/// Rows of classes from which on a row more of each says little of what is measured.
pub(super) const MANY_ROWS: f64 = 50.0;
/// The least probability that a class is given in a loss, so that the loss is finite.
const LEAST: f64 = 1e-9;

/// The silo [without each of the folds](crate::learner::RowAccess::without_folds) of its training rows, which is then
/// its validation part. `None` where there are not even two.
pub(super) fn without_folds(
    learner: &dyn Learner,
    folds: usize,
    seed: u64,
) -> Option<Vec<Arc<dyn Learner>>> {
    learner.row_access().ok()?.without_folds(folds, seed)
}

/// A loss, or a difference of losses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct HeldOutLoss {
    /// As if there were one row more of each class: what a silo goes by that has no rows but its own.
    pub(super) alone: f64,
    /// The same as if the silo had [`MANY_ROWS`] at least: what it goes by that decides with others. Both are the plain
    /// loss for numbers.
    pub(super) together: f64,
}

impl HeldOutLoss {
    /// Of a model of numbers.
    pub(super) fn plain(loss: f64) -> Self {
        Self {
            alone: loss,
            together: loss,
        }
    }

    /// Returns whether both are finite.
    pub(super) fn is_finite(self) -> bool {
        self.alone.is_finite() && self.together.is_finite()
    }

    /// This change of both.
    fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self {
            alone: change(self.alone),
            together: change(self.together),
        }
    }
}

impl Add for HeldOutLoss {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            alone: self.alone + other.alone,
            together: self.together + other.together,
        }
    }
}

impl Sub for HeldOutLoss {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            alone: self.alone - other.alone,
            together: self.together - other.together,
        }
    }
}

/// The amount by which a training on a fold lowers its loss, times a share; nothing where it does not.
pub(super) fn share_of_seen(seen: &[HeldOutLoss], share: f64) -> Vec<HeldOutLoss> {
    let each = seen.iter();
    each.map(|seen| seen.map(|by| share * by.max(0.0)))
        .collect()
}

/// Those of losses that a silo goes by alone.
pub(super) fn alone(losses: &[HeldOutLoss]) -> Vec<f64> {
    losses.iter().map(|loss| loss.alone).collect()
}

/// The mean loss on the rows held out, smoothed with one row more of each class than the `rows` of all folds.
pub(super) fn loss(
    learner: &dyn Learner,
    of: &(Params, Params),
    rows: f64,
) -> Result<HeldOutLoss, LearnError> {
    loss_on(learner, of, Split::Validation, rows)
}

/// The mean loss on a part of the rows, smoothed with one row more of each class than these `rows`.
pub(super) fn loss_on(
    learner: &dyn Learner,
    (model, personal): &(Params, Params),
    split: Split,
    rows: f64,
) -> Result<HeldOutLoss, LearnError> {
    let loss = match learner.outputs() {
        Ok(outputs) => {
            let values = outputs.outputs(model, personal, split)?;
            let results = outputs.row_results(model, personal, &values, split)?;
            let losses = losses_of(&results, rows);
            let sum = losses
                .iter()
                .fold(HeldOutLoss::default(), |sum, one| sum + *one);
            sum.map(|sum| sum / losses.len() as f64)
        }
        Err(_) => {
            let plain = learner.evaluate(model, personal, split)?.get("loss")?;
            HeldOutLoss::plain(plain)
        }
    };
    if loss.is_finite() {
        Ok(loss)
    } else {
        Err(LearnError::Failed("the loss is not finite".into()))
    }
}

/// The loss of every row, smoothed with [one row more of each class](with_one_more_of_each) than these `rows`.
///
/// Seven stays that were all long are no reason for a certainty of one: the loss of a model that is as
/// sure as that is 0 on them, and large on the eighth. This is Laplace's rule of succession, for
/// any model. Its weight falls with the number of rows. Losses other than those of classes stay as they are.
pub(super) fn losses_of(results: &RowResults, rows: f64) -> Vec<HeldOutLoss> {
    let losses = results.scores.get("loss").map_or(&[][..], Vec::as_slice);
    let classes = results.classes();
    if classes < 2 {
        return losses.iter().copied().map(HeldOutLoss::plain).collect();
    }
    let count = classes as f64;
    let each = losses
        .iter()
        .zip(results.probabilities.chunks_exact(classes));
    each.map(|(&plain, probabilities)| {
        let any: f64 = probabilities.iter().map(|p| -libm::log(p.max(LEAST))).sum();
        let smoothed = |rows| with_one_more_of_each(plain, any, rows, count);
        HeldOutLoss {
            alone: smoothed(rows),
            together: smoothed(rows.max(MANY_ROWS)),
        }
    })
    .collect()
}

/// The mean loss of every group of rows, and its rows: rows of one patient do not count as so many
/// patients. Every row by itself where rows have no groups.
pub(super) fn by_groups(
    losses: &[HeldOutLoss],
    results: &RowResults,
) -> (Vec<HeldOutLoss>, Vec<f64>) {
    let groups = results.together();
    let mean = |rows: &Vec<usize>| {
        let sum = rows
            .iter()
            .fold(HeldOutLoss::default(), |sum, &row| sum + losses[row]);
        let count = rows.len() as f64;
        (sum.map(|sum| sum / count), count)
    };
    groups.iter().map(mean).unzip()
}

/// The standard error of a mean over `folds`, with what folds that were trained on the same rows have in common
/// (Nadeau and Bengio 2003, "Inference for the generalization error", Machine Learning 52): a variance of
/// `1/k + n₂/n₁` in place of `1/k`, where each of `k` folds holds out `n₂` rows for `n₁` that are trained on.
fn of_overlapping(error: f64, folds: usize) -> f64 {
    let k = folds as f64;
    error * (1.0 + k / (k - 1.0)).sqrt()
}

/// Losses of a candidate by fold, or by validation row.
pub(super) struct CandidateLosses {
    pub(super) candidate: Candidate,
    /// As measured.
    pub(super) losses: Vec<HeldOutLoss>,
    /// Correction to be added to each because the model has seen the fold; empty for none.
    pub(super) seen: Vec<HeldOutLoss>,
}

/// Mean loss, advantages over the first and their standard errors, of every candidate. Where silos decide together, the
/// models of its coalition are less ahead by the [bias](crate::selection::selection_bias) of its `selection`, in standard errors.
pub(super) fn measured(
    all: &[CandidateLosses],
    (on, rows): (ComparedOn, &[f64]),
    selection: f64,
) -> Vec<Measured> {
    let honest = |one: &CandidateLosses| -> Vec<HeldOutLoss> {
        let seen = one.seen.iter().copied();
        let seen = seen.chain(std::iter::repeat(HeldOutLoss::default()));
        let each = one.losses.iter().zip(seen);
        each.map(|(loss, seen)| *loss + seen).collect()
    };
    let Some(local) = all.first().map(honest) else {
        return Vec::new();
    };
    let measure = |one: &CandidateLosses| {
        let own = honest(one);
        let ahead: Vec<HeldOutLoss> = local.iter().zip(&own).map(|(a, b)| *a - *b).collect();
        let (advantage, error) = mean_and_error(&alone(&ahead), rows);
        let together: Vec<f64> = ahead.iter().map(|ahead| ahead.together).collect();
        let (mean_together, plain) = mean_and_error(&together, rows);
        let bias = match one.candidate.is_of_coalition() {
            true => selection * plain,
            false => 0.0,
        };
        let together = Advantage {
            mean: mean_together - bias,
            error: match on {
                ComparedOn::Folds => of_overlapping(plain, rows.len()),
                ComparedOn::ValidationRows | ComparedOn::Nothing => plain,
            },
        };
        Measured {
            candidate: one.candidate,
            loss: mean(&alone(&own), rows),
            advantage,
            error,
            together,
            parts: rows.len() as u64,
            seen: if one.seen.is_empty() {
                0.0
            } else {
                mean(&alone(&one.seen), rows)
            },
        }
    };
    all.iter().map(measure).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::robust::certainty_costs_one_row_more_of_each;
    use crate::serving::choose;

    fn of(candidate: Candidate, losses: [f64; 4]) -> CandidateLosses {
        CandidateLosses {
            candidate,
            losses: numbers(&losses),
            seen: Vec::new(),
        }
    }

    /// Losses without classes.
    fn numbers(of: &[f64]) -> Vec<HeldOutLoss> {
        of.iter().copied().map(HeldOutLoss::plain).collect()
    }

    fn chosen(others: Vec<CandidateLosses>) -> Candidate {
        let mut all = vec![of(Candidate::Local, [1.0, 2.0, 3.0, 4.0])];
        all.extend(others);
        choose(&measured(&all, (ComparedOn::Folds, &[5.0; 4]), 0.0))
    }

    #[test]
    fn another_model_must_beat_the_local_one_by_a_standard_error() {
        assert_eq!(chosen(Vec::new()), Candidate::Local);
        // Better on average by 0.1, but by luck: better in one fold only.
        let lucky = || of(Candidate::Coalition, [1.2, 2.2, 3.2, 3.0]);
        assert_eq!(chosen(vec![lucky()]), Candidate::Local);
        let surely = || of(Candidate::Coalition, [0.9, 1.9, 2.9, 3.9]);
        assert_eq!(chosen(vec![surely()]), Candidate::Coalition);
        let best = of(Candidate::FineTuned, [0.7, 1.8, 2.7, 3.8]);
        assert_eq!(chosen(vec![surely(), best, lucky()]), Candidate::FineTuned);
        let worse = of(Candidate::Global, [1.1, 2.1, 3.1, 4.1]);
        assert_eq!(chosen(vec![worse]), Candidate::Local);
    }

    #[test]
    fn an_advantage_from_having_seen_the_rows_is_none() {
        let seen = |by: f64| CandidateLosses {
            seen: numbers(&[by; 4]),
            ..of(Candidate::Coalition, [0.8, 1.8, 2.8, 3.8])
        };
        assert_eq!(chosen(vec![seen(0.1)]), Candidate::Coalition);
        assert_eq!(chosen(vec![seen(0.3)]), Candidate::Local);
    }

    #[test]
    fn certainty_costs_as_much_as_one_row_more_of_each_class_would() {
        let results = |sure: f64| RowResults {
            scores: [("loss".to_owned(), vec![-libm::log(sure); 7])].into(),
            probabilities: [1.0 - sure, sure].repeat(7),
            ..RowResults::default()
        };
        let mean = |sure: f64| {
            let losses = losses_of(&results(sure), 7.0);
            // Together the seven count as fifty.
            let plain = -libm::log(sure);
            let rest = plain - libm::log(1.0 - sure);
            let together = (50.0 * plain + rest) / 52.0;
            assert!(sure == 1.0 || (losses[0].together - together).abs() < 1e-12);
            alone(&losses).iter().sum::<f64>() / 7.0
        };
        certainty_costs_one_row_more_of_each(mean);
        assert!(mean(1.0).is_finite() && mean(1.0) > 2.0);
        // Numbers have no classes.
        let number = RowResults {
            probabilities: Vec::new(),
            ..results(0.5)
        };
        assert_eq!(losses_of(&number, 7.0), numbers(&number.scores["loss"]));
    }

    #[test]
    fn visits_of_one_patient_count_as_one_with_as_many_rows() {
        let mut results = RowResults {
            scores: [("loss".to_owned(), vec![1.0, 5.0, 3.0])].into(),
            ..RowResults::default()
        };
        let losses = numbers(&[1.0, 5.0, 3.0]);
        assert_eq!(by_groups(&losses, &results), (losses.clone(), vec![1.0; 3]));
        results.groups = vec![4, 9, 4];
        assert_eq!(
            by_groups(&losses, &results),
            (numbers(&[2.0, 5.0]), vec![2.0, 1.0])
        );
        // The same patients with ten visits each are no surer a choice.
        let error = |visits: usize| {
            let each: Vec<f64> = [1.0, 5.0, 3.0, 2.0]
                .iter()
                .flat_map(|&loss| vec![loss; visits])
                .collect();
            let results = RowResults {
                scores: [("loss".to_owned(), each.clone())].into(),
                groups: (0..4).flat_map(|patient| vec![patient; visits]).collect(),
                ..RowResults::default()
            };
            let (losses, rows) = by_groups(&numbers(&each), &results);
            mean_and_error(&alone(&losses), &rows).1
        };
        assert!((error(1) - error(10)).abs() < 1e-12);
    }

    #[test]
    fn advantages_are_weighted_by_rows_with_their_standard_error() {
        let two = |candidate, losses: [f64; 2], seen: &[f64]| CandidateLosses {
            candidate,
            losses: numbers(&losses),
            seen: numbers(seen),
        };
        let losses = [
            two(Candidate::Local, [1.0, 1.0], &[]),
            two(Candidate::Coalition, [0.5, 0.7], &[0.1, 0.1]),
        ];
        let [local, other] = &measured(&losses, (ComparedOn::Folds, &[1.0, 3.0]), 0.0)[..] else {
            panic!("two candidates");
        };
        assert_eq!((local.advantage, local.error), (0.0, 0.0));
        assert!((other.loss - 0.75).abs() < 1e-12 && (other.advantage - 0.25).abs() < 1e-12);
        assert!((other.seen - 0.1).abs() < 1e-12);
        // Deviations .15 and −.05 with weights ¼ and ¾.
        let (first, second): (f64, f64) = (0.15 * 0.25, 0.05 * 0.75);
        let spread = first * first + second * second;
        assert!((other.error - (2.0 * spread).sqrt()).abs() < 1e-12);
        // Two folds: each is measured by what the other trained, ½ + 1 in place of ½.
        let together = other.together;
        assert!((together.error - (6.0 * spread).sqrt()).abs() < 1e-12);
        let on_rows = (ComparedOn::ValidationRows, &[1.0, 3.0][..]);
        let on_rows = measured(&losses, on_rows, 0.0).remove(1);
        assert_eq!(on_rows.together.error, on_rows.error);
        // Together, a model of one of several coalitions is less ahead by its selection bias, in plain standard errors.
        let biased = measured(&losses, (ComparedOn::Folds, &[1.0, 3.0]), 0.5).remove(1);
        assert!((biased.together.mean - (0.25 - 0.5 * biased.error)).abs() < 1e-12);
        let unbiased = Measured {
            together: other.together,
            ..biased
        };
        assert_eq!(unbiased, *other);
    }

    #[test]
    fn only_models_of_the_coalition_have_a_selection_bias() {
        let biased = [
            (Candidate::Robust, false),
            (Candidate::Coalition, true),
            (Candidate::Global, false),
            (Candidate::FineTuned, true),
            (Candidate::OwnIntercept, true),
            (Candidate::Shrunken, true),
        ];
        for (candidate, expected) in biased {
            let all = [
                of(Candidate::Local, [1.0, 2.0, 3.0, 4.0]),
                of(candidate, [1.0, 1.5, 2.0, 2.5]),
            ];
            let mean = |selection| {
                let folds = (ComparedOn::Folds, &[5.0; 4][..]);
                measured(&all, folds, selection).remove(1).together.mean
            };
            assert_eq!(mean(1.0) < mean(0.0), expected, "{candidate:?}");
        }
    }
}
