//! Losses by fold, and what follows for the candidates.

use std::sync::Arc;

use super::{Candidate, Measured};
use crate::learner::{LearnError, Learner, Split};
use crate::params::Params;

/// The silo without each of the folds of its training rows, which is then its validation part;
/// `None` where the rows cannot be divided.
pub(super) fn without_folds(
    learner: &dyn Learner,
    folds: usize,
    seed: u64,
) -> Option<Vec<Arc<dyn Learner>>> {
    let access = learner.row_access().ok()?;
    let each = (0..folds).map(|fold| access.holding_out(fold, folds, seed));
    let all: Vec<_> = each.collect::<Option<_>>()?;
    (!all.is_empty()).then_some(all)
}

/// The loss on the rows held out.
pub(super) fn loss(learner: &dyn Learner, model: &(Params, Params)) -> Result<f64, LearnError> {
    let metrics = learner.evaluate(&model.0, &model.1, Split::Validation)?;
    let loss = metrics.get("loss")?;
    match loss.is_finite() {
        true => Ok(loss),
        false => Err(LearnError::Failed("the loss is not finite".into())),
    }
}

/// The mean of values by fold, each weighed by the rows of its fold.
pub(super) fn mean(values: &[f64], rows: &[f64]) -> f64 {
    let all: f64 = rows.iter().sum();
    let each = values.iter().zip(rows);
    each.map(|(value, rows)| value * rows / all).sum()
}

/// Losses of a candidate by fold, or by validation row.
pub(super) struct Losses {
    pub(super) candidate: Candidate,
    /// As measured.
    pub(super) losses: Vec<f64>,
    /// What is to be added to each because the model has seen the fold; empty for nothing.
    pub(super) seen: Vec<f64>,
}

/// Mean loss, advantage over the first and its standard error, of every candidate. Folds weigh by
/// their rows; the error is that of their weighted mean, `√(Σ w_i² (a_i − ā)² · k/(k−1))` over `k`
/// folds with weights `w` that sum to 1.
pub(super) fn measured(all: &[Losses], rows: &[f64]) -> Vec<Measured> {
    let honest = |one: &Losses| -> Vec<f64> {
        let seen = one.seen.iter().copied().chain(std::iter::repeat(0.0));
        one.losses
            .iter()
            .zip(seen)
            .map(|(loss, seen)| loss + seen)
            .collect()
    };
    let Some(local) = all.first().map(honest) else {
        return Vec::new();
    };
    let total: f64 = rows.iter().sum();
    let measure = |one: &Losses| {
        let own = honest(one);
        let ahead: Vec<f64> = local.iter().zip(&own).map(|(a, b)| a - b).collect();
        let advantage = mean(&ahead, rows);
        let spread: f64 = ahead
            .iter()
            .zip(rows)
            .map(|(one, rows)| rows / total * (one - advantage))
            .map(|apart| apart * apart)
            .sum();
        let k = rows.len() as f64;
        Measured {
            candidate: one.candidate,
            loss: mean(&own, rows),
            advantage,
            error: (spread * k / (k - 1.0)).sqrt(),
            seen: match one.seen.is_empty() {
                true => 0.0,
                false => mean(&one.seen, rows),
            },
        }
    };
    all.iter().map(measure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::choose;

    fn of(candidate: Candidate, losses: [f64; 4]) -> Losses {
        Losses {
            candidate,
            losses: losses.to_vec(),
            seen: Vec::new(),
        }
    }

    fn chosen(others: Vec<Losses>) -> Candidate {
        let mut all = vec![of(Candidate::Local, [1.0, 2.0, 3.0, 4.0])];
        all.extend(others);
        choose(&measured(&all, &[5.0; 4]))
    }

    #[test]
    fn the_local_model_is_served_unless_another_is_better_by_more_than_its_standard_error() {
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
    fn an_advantage_that_only_comes_from_having_seen_the_rows_is_none() {
        let seen = |by: f64| Losses {
            seen: vec![by; 4],
            ..of(Candidate::Coalition, [0.8, 1.8, 2.8, 3.8])
        };
        assert_eq!(chosen(vec![seen(0.1)]), Candidate::Coalition);
        assert_eq!(chosen(vec![seen(0.3)]), Candidate::Local);
    }

    #[test]
    fn advantages_are_weighted_by_rows_with_the_standard_error_of_their_mean() {
        let two = |candidate, losses: [f64; 2], seen: &[f64]| Losses {
            candidate,
            losses: losses.to_vec(),
            seen: seen.to_vec(),
        };
        let losses = [
            two(Candidate::Local, [1.0, 1.0], &[]),
            two(Candidate::Coalition, [0.5, 0.7], &[0.1, 0.1]),
        ];
        let [local, other] = &measured(&losses, &[1.0, 3.0])[..] else {
            panic!("two candidates");
        };
        assert_eq!((local.advantage, local.error), (0.0, 0.0));
        assert!((other.loss - 0.75).abs() < 1e-12 && (other.advantage - 0.25).abs() < 1e-12);
        assert!((other.seen - 0.1).abs() < 1e-12);
        // Deviations .15 and −.05 with weights ¼ and ¾.
        let (first, second): (f64, f64) = (0.15 * 0.25, 0.05 * 0.75);
        let spread = first * first + second * second;
        assert!((other.error - (2.0 * spread).sqrt()).abs() < 1e-12);
    }
}
