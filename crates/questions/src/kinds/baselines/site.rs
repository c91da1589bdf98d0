//! Computations of one site: sums for the global model, and losses of local and global models by folds.

use super::Baselines;
use crate::SiteRefusal;
use crate::algebra::{Symmetric, dot};

/// The penalties that a site chooses its own among, the strongest first. No model but a constant stands before them.
const RIDGES: [f64; 5] = [100.0, 10.0, 1.0, 0.1, 0.01];
/// Most steps to the coefficients of an local model.
const STEPS: usize = 100;
/// The gain of log likelihood below which an local model is fitted.
const FITTED: f64 = 1e-12;

/// A complete row.
struct FoldedRow {
    /// 1 and the terms.
    features: Vec<f64>,
    /// 0 or 1, or a number scaled to ±1.
    outcome: f64,
    fold: usize,
}

/// The complete rows of a site with their folds.
pub(super) struct FoldedRows {
    rows: Vec<FoldedRow>,
    folds: usize,
    is_condition: bool,
}

/// Sums of rows at some coefficients.
pub(super) struct FitSums {
    pub(super) log_likelihood: f64,
    pub(super) score: Vec<f64>,
    pub(super) information: Symmetric,
}

/// Model of rows of one site.
enum LocalModel {
    /// One score for all rows.
    Constant(f64),
    /// Coefficients, the intercept first.
    Linear(Vec<f64>),
}

impl LocalModel {
    fn score(&self, row: &FoldedRow) -> f64 {
        match self {
            Self::Constant(score) => *score,
            Self::Linear(at) => dot(at, &row.features),
        }
    }
}

impl FoldedRows {
    /// Deals complete rows to folds.
    pub(super) fn of(kind: &Baselines, rows: &[Vec<f64>]) -> Self {
        let p = kind.terms.len();
        let folded = |row: &Vec<f64>| FoldedRow {
            features: [1.0].into_iter().chain(row[..p].iter().copied()).collect(),
            outcome: row[p],
            fold: kind.fold(row),
        };
        Self {
            rows: rows.iter().map(folded).collect(),
            folds: kind.folds,
            is_condition: kind.is_condition(),
        }
    }

    /// Returns whether there are rows in every fold.
    pub(super) fn has_every_fold(&self) -> bool {
        (0..self.folds).all(|fold| self.rows.iter().any(|row| row.fold == fold))
    }

    /// Rows outside of these folds.
    fn outside(&self, folds: &[usize]) -> Vec<&FoldedRow> {
        let rows = self.rows.iter();
        rows.filter(|row| !folds.contains(&row.fold)).collect()
    }

    /// Rows outside of a fold, and the sum of their outcomes.
    pub(super) fn outcomes_outside(&self, fold: usize) -> [f64; 2] {
        let rows = self.outside(&[fold]);
        let outcomes = rows.iter().map(|row| row.outcome).sum();
        [rows.len() as f64, outcomes]
    }

    /// The sums at these coefficients over all rows, or over those outside of a fold.
    pub(super) fn sums(&self, at: &[f64], fold: Option<usize>) -> FitSums {
        let folds: Vec<usize> = fold.into_iter().collect();
        self.sums_of(&self.outside(&folds), at)
    }

    fn sums_of(&self, rows: &[&FoldedRow], at: &[f64]) -> FitSums {
        let mut sums = FitSums {
            log_likelihood: 0.0,
            score: vec![0.0; at.len()],
            information: Symmetric::zeros(at.len()),
        };
        for row in rows {
            let score = dot(at, &row.features);
            let (residual, weight) = match self.is_condition {
                true => {
                    let probability = probability(score);
                    (
                        row.outcome - probability,
                        probability * probability_of_not(score),
                    )
                }
                false => (row.outcome - score, 1.0),
            };
            // Half of a squared error, so that its derivative is the residual.
            let loss = self.loss(score, row.outcome);
            sums.log_likelihood -= if self.is_condition { loss } else { 0.5 * loss };
            for (sum, feature) in sums.score.iter_mut().zip(&row.features) {
                *sum += residual * feature;
            }
            sums.information.add_outer(weight, &row.features);
        }
        sums
    }

    /// The log loss, or the squared error.
    fn loss(&self, score: f64, outcome: f64) -> f64 {
        if self.is_condition {
            let against = if outcome > 0.0 { -score } else { score };
            // ln(1 + e^x) without overflow.
            against.max(0.0) + libm::log1p(libm::exp(-against.abs()))
        } else {
            (score - outcome) * (score - outcome)
        }
    }

    /// The score of a probability, or of a mean.
    fn score_of(&self, constant: f64) -> f64 {
        match self.is_condition {
            true => libm::log(constant / (1.0 - constant)),
            false => constant,
        }
    }

    /// The constant of some rows, with half a row of each outcome more, so that no probability is 0 or 1.
    fn constant(&self, rows: &[&FoldedRow]) -> f64 {
        let outcomes: f64 = rows.iter().map(|row| row.outcome).sum();
        let rows = rows.len() as f64;
        self.score_of(match self.is_condition {
            true => (outcomes + 0.5) / (rows + 1.0),
            false => outcomes / rows,
        })
    }

    /// The model of some rows with this penalty, or a constant; a constant, too, where all outcomes are alike.
    fn local(&self, rows: &[&FoldedRow], ridge: Option<f64>) -> Result<LocalModel, SiteRefusal> {
        let alike = rows
            .windows(2)
            .all(|pair| pair[0].outcome == pair[1].outcome);
        match ridge.filter(|_| !alike) {
            None => Ok(LocalModel::Constant(self.constant(rows))),
            Some(ridge) => self
                .linear(rows, ridge)
                .map(LocalModel::Linear)
                .ok_or_else(|| SiteRefusal::Fit("model".to_owned())),
        }
    }

    /// The coefficients of the largest penalised likelihood; `None` where the steps do not end.
    fn linear(&self, rows: &[&FoldedRow], ridge: f64) -> Option<Vec<f64>> {
        let penalised = |at: &[f64]| {
            let mut sums = self.sums_of(rows, at);
            for (place, beta) in at.iter().enumerate().skip(1) {
                sums.log_likelihood -= 0.5 * ridge * beta * beta;
                sums.score[place] -= ridge * beta;
                let entry = sums.information.at(place, place) + ridge;
                sums.information.set(place, place, entry);
            }
            sums
        };
        let mut at = vec![0.0; rows.first()?.features.len()];
        let mut sums = penalised(&at);
        for _ in 0..STEPS {
            let step = sums.information.solve(&sums.score)?;
            let moved_by = |part: f64| -> Vec<f64> {
                let pairs = at.iter().zip(&step);
                pairs.map(|(at, step)| at + part * step).collect()
            };
            if dot(&sums.score, &step) < FITTED {
                return Some(moved_by(1.0));
            }
            let mut part = 1.0;
            let (moved, found) = loop {
                let moved = moved_by(part);
                let found = penalised(&moved);
                if found.log_likelihood > sums.log_likelihood {
                    break (moved, found);
                }
                part *= 0.5;
                if part < FITTED {
                    // Rounding alone is left to gain.
                    return Some(at);
                }
            };
            (at, sums) = (moved, found);
        }
        None
    }

    /// The model of the rows outside of a fold, with the penalty that loses least in the other folds.
    fn tuned(&self, fold: usize) -> Result<LocalModel, SiteRefusal> {
        let mut best: Option<(Option<f64>, f64)> = None;
        for ridge in [None].into_iter().chain(RIDGES.map(Some)) {
            let mut loss = 0.0;
            for inner in (0..self.folds).filter(|inner| *inner != fold) {
                let model = self.local(&self.outside(&[fold, inner]), ridge)?;
                let inside = self.rows.iter().filter(|row| row.fold == inner);
                loss += inside
                    .map(|row| self.loss(model.score(row), row.outcome))
                    .sum::<f64>();
            }
            if best.is_none_or(|(_, least)| loss < least) {
                best = Some((ridge, loss));
            }
        }
        let ridge = best.and_then(|(ridge, _)| ridge);
        self.local(&self.outside(&[fold]), ridge)
    }

    /// The mean losses of the local constant, the local model, the global constant and the global model, in rows that they
    /// have not seen; `None` if there are no rows in some fold.
    pub(super) fn losses(
        &self,
        constants: &[f64],
        fits: &[&[f64]],
    ) -> Result<Option<[f64; 4]>, SiteRefusal> {
        if !self.has_every_fold() {
            return Ok(None);
        }
        let mut sums = [0.0; 4];
        for (fold, (constant, fit)) in constants.iter().zip(fits).enumerate() {
            let local_constant = self.constant(&self.outside(&[fold]));
            let local = self.tuned(fold)?;
            let global_constant = self.score_of(*constant);
            for row in self.rows.iter().filter(|row| row.fold == fold) {
                let scores = [
                    local_constant,
                    local.score(row),
                    global_constant,
                    dot(fit, &row.features),
                ];
                for (sum, score) in sums.iter_mut().zip(scores) {
                    *sum += self.loss(score, row.outcome);
                }
            }
        }
        Ok(Some(sums.map(|sum| sum / self.rows.len() as f64)))
    }
}

/// 1/(1 + e^−score).
fn probability(score: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-score))
}

/// 1 − 1/(1 + e^−score), without the rounding of the difference.
fn probability_of_not(score: f64) -> f64 {
    probability(-score)
}
