//! A generalised linear model from sums with noise: one intercept for all sites, and errors that contain the noise.
//!
//! A row tells of the coefficients by `1` and its columns, all within ±1, so the products that it adds to a sum have a
//! largest norm. A linear model is solved from one sum. A logistic one takes a fixed number of Newton's steps, because
//! nobody can tell from sums with noise whether another one is needed; its last sum tells whether they were enough.
//!
//! With S the norm of the row squared, `t = |y − π|` and Q the sum of its squared products, a row adds numbers of squared
//! norm `t²·(S + (1 − t)²·Q)` to a step, because the weight is `t·(1 − t)`. That is largest at `t = 1`, where the row
//! tells nothing of the information, unless there are more than 21 coefficients.

use serde::{Deserialize, Serialize};

use super::result::{Coefficient, CommonIntercept, GlmOutcome};
use super::{Glm, GlmFamily};
use crate::algebra::{Symmetric, dot};
use crate::noise::determined;
use crate::sums::CommonKnowledge;
use crate::table::{CellValue, complete};
use crate::{DecodedSum, Estimate, QuestionStopped, Step, SumLayout};

/// Newton's steps of a logistic regression.
const STEPS: usize = 6;
/// The squared score that is left may exceed what noise makes of it by so many standard deviations.
const CONVERGED: f64 = 20.0;

/// A model between two rounds, the intercept first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoisedFit {
    /// Coefficients, of scaled columns.
    at: Vec<f64>,
    /// Rounds so far.
    rounds: usize,
}

/// Estimates in scaled columns, with the variance that chance and noise give them, and noise alone.
struct NoisedEstimates {
    at: Vec<f64>,
    covariance: Symmetric,
    of_noise: Symmetric,
    /// Variance of the residuals; `None` where noise hides it.
    dispersion: Option<f64>,
}

impl Glm {
    /// Why no noise can be added to its sums, in a sentence; `None` if it can.
    pub(crate) fn without_noise(&self) -> Option<&'static str> {
        match self.family {
            GlmFamily::Gaussian | GlmFamily::Binomial => {}
            GlmFamily::Poisson | GlmFamily::Gamma | GlmFamily::NegativeBinomial => {
                return Some(
                    "outcomes of this family have no bound, and one row could change the sums by any number: ask for \
                     family \"binomial\" of a condition, or \"gaussian\" of a column with an agreed range",
                );
            }
        }
        let more = self.offset.is_some()
            || self.weights.is_some()
            || self.ridge > 0.0
            || self.robust
            || self.clustered
            || !self.without.is_empty();
        more.then_some(
            "every further sum would need noise of its own: ask for a regression without `offset`, `weights`, `ridge`, \
             `robust`, `clustered` and `without`",
        )
    }

    /// The rounds that it takes with noise, the first one included, which opens counts.
    pub(crate) fn noised_rounds(&self) -> u64 {
        match self.family {
            GlmFamily::Gaussian => 2,
            _ => 1 + STEPS as u64,
        }
    }

    /// Coefficients, the intercept among them.
    fn noised_width(&self) -> usize {
        self.terms.len() + 1
    }

    fn noised_names(&self) -> Vec<String> {
        let intercept = ["(intercept)".to_owned()];
        intercept.into_iter().chain(self.terms.clone()).collect()
    }

    /// Before the first round.
    pub(super) fn noised_start(&self) -> NoisedFit {
        NoisedFit {
            at: vec![0.0; self.noised_width()],
            rounds: 0,
        }
    }

    pub(super) fn noised_layout(&self) -> SumLayout {
        let q = self.noised_width();
        let layout = SumLayout::default();
        if self.family == GlmFamily::Gaussian {
            return layout.reals(
                "products",
                Symmetric::triangle_len(q + 1),
                "sums of products of 1, the columns and the outcome, scaled to ±1",
            );
        }
        layout
            .reals(
                "score",
                q,
                "derivatives of the log likelihood, of 1 and columns scaled to ±1",
            )
            .reals(
                "information",
                Symmetric::triangle_len(q),
                "negative second derivatives",
            )
    }

    /// The largest norm of what one row adds to a sum.
    pub(super) fn noised_norm(&self) -> f64 {
        let q = self.noised_width() as f64;
        if self.family == GlmFamily::Gaussian {
            // All products are within ±1.
            return ((q + 1.0) * (q + 2.0) / 2.0).sqrt();
        }
        let (score, products) = (q, q * (q + 1.0) / 2.0);
        let squared = |t: f64| t * t * (score + (1.0 - t) * (1.0 - t) * products);
        // Where the derivative by t is 0 before 1, if it is anywhere.
        let below = 1.0 - 8.0 * score / products;
        let inner = if below > 0.0 {
            squared(0.25 * (3.0 - below.sqrt()))
        } else {
            0.0
        };
        squared(1.0).max(inner).sqrt()
    }

    /// The sums of these rows. One whose outcome is of neither kind adds nothing, because a refusal would tell of it.
    pub(super) fn noised_sums(&self, rows: &[Vec<CellValue>], fit: &NoisedFit) -> Vec<f64> {
        let (p, q) = (self.terms.len(), self.noised_width());
        if self.family == GlmFamily::Gaussian {
            let mut products = Symmetric::zeros(q + 1);
            for row in complete(rows) {
                let all: Vec<f64> = [1.0].into_iter().chain(row).collect();
                products.add_outer(1.0, &all);
            }
            return products.triangle();
        }
        let mut score = vec![0.0; q];
        let mut information = Symmetric::zeros(q);
        for row in complete(rows) {
            let y = row[p];
            if y != 0.0 && y != 1.0 {
                continue;
            }
            let x: Vec<f64> = [1.0].into_iter().chain(row[..p].iter().copied()).collect();
            let told = self.family.row(y, dot(&x, &fit.at), None);
            let pairs = score.iter_mut().zip(&x);
            pairs.for_each(|(sum, x)| *sum += told.score * x);
            information.add_outer(told.weight, &x);
        }
        score.extend(information.triangle());
        score
    }

    /// The next round, or the answer.
    pub(super) fn noised_step(
        &self,
        known: &CommonKnowledge,
        fit: &NoisedFit,
        sum: &DecodedSum,
    ) -> Step<NoisedFit, GlmOutcome> {
        let deviation = known.deviation(self.noised_norm(), sum.numbers.len());
        let rounds = fit.rounds + 1;
        let found = if self.family == GlmFamily::Gaussian {
            self.solved(known, deviation, sum.block("products"))
        } else {
            match self.newton_step(known, deviation, fit, sum) {
                Ok((at, None)) => return Step::Next(NoisedFit { at, rounds }),
                Ok((_, Some(found))) => Ok(found),
                Err(why) => Err(why),
            }
        };
        match found {
            Ok(found) => Step::Done(self.noised_outcome(known, (deviation, rounds), &found)),
            Err(why) => Step::Stopped(why),
        }
    }

    fn determined(
        &self,
        known: &CommonKnowledge,
        deviation: f64,
        information: &Symmetric,
    ) -> Result<Symmetric, QuestionStopped> {
        let names = self.noised_names();
        determined(information, deviation, (known.counts.complete, &names))?;
        let inverse = information.inverse();
        inverse
            .ok_or_else(|| QuestionStopped::Collinear(format!("among {}", self.terms.join(", "))))
    }

    /// One step of a logistic regression: the next coefficients, and after the last one the estimates.
    fn newton_step(
        &self,
        known: &CommonKnowledge,
        deviation: f64,
        fit: &NoisedFit,
        sum: &DecodedSum,
    ) -> Result<(Vec<f64>, Option<NoisedEstimates>), QuestionStopped> {
        let q = self.noised_width();
        let information = Symmetric::of_triangle(q, sum.block("information"));
        let inverse = self.determined(known, deviation, &information)?;
        let score = sum.block("score");
        let step = inverse.times(score);
        let at: Vec<f64> = fit
            .at
            .iter()
            .zip(step)
            .map(|(at, step)| at + step)
            .collect();
        if fit.rounds + 1 < STEPS {
            return Ok((at, None));
        }
        // What is left is noise of this round, and of the one before, which the coefficients have followed.
        let left = dot(score, score);
        let width = q as f64;
        let of_noise = 2.0 * deviation * deviation * (width + CONVERGED * (2.0 * width).sqrt());
        if left > of_noise.max(1e-12 * known.counts.complete * known.counts.complete) {
            return Err(QuestionStopped::Other(format!(
                "no convergence in {STEPS} rounds: some terms nearly separate the outcomes. Leave them out, or ask \
                 without noise"
            )));
        }
        // The inverse times noise in the score. The information has noise, too, which meets the error that the round before
        // has left in the coefficients.
        let squares = inverse.sandwich(&identity(q));
        let trace: f64 = squares.diagonal().iter().sum();
        let variance = deviation * deviation;
        let mut of_noise = Symmetric::zeros(q);
        of_noise.add(variance * (1.0 + variance * trace), &squares);
        let mut covariance = inverse;
        covariance.add(1.0, &of_noise);
        let found = NoisedEstimates {
            at: at.clone(),
            covariance,
            of_noise,
            dispersion: None,
        };
        Ok((at, Some(found)))
    }

    /// A linear model from the sums of all products.
    fn solved(
        &self,
        known: &CommonKnowledge,
        deviation: f64,
        products: &[f64],
    ) -> Result<NoisedEstimates, QuestionStopped> {
        let q = self.noised_width();
        let products = Symmetric::of_triangle(q + 1, products);
        let columns: Vec<usize> = (0..q).collect();
        let inverse = self.determined(known, deviation, &products.part(&columns))?;
        let outcome: Vec<f64> = columns.iter().map(|at| products.at(*at, q)).collect();
        let at = inverse.times(&outcome);
        let left = products.at(q, q) - dot(&at, &outcome);
        let freedom = (known.counts.complete - q as f64).max(1.0);
        // The noise of the products meets the coefficients: row j of it, times them, and that of the outcome.
        let variance = deviation * deviation;
        let size = dot(&at, &at);
        let mut meat = Symmetric::zeros(q);
        for row in 0..q {
            for column in row..q {
                let own = if row == column {
                    1.0 + size
                } else {
                    at[row] * at[column]
                };
                meat.set(row, column, variance * own);
            }
        }
        let of_noise = inverse.sandwich(&meat);
        // As much of the squared residuals is noise.
        let noise_left = deviation * (1.0 + 4.0 * size + 2.0 * size * size).sqrt();
        let mut covariance = Symmetric::zeros(q);
        covariance.add(left.max(noise_left) / freedom, &inverse);
        covariance.add(1.0, &of_noise);
        let told = left > 3.0 * noise_left;
        Ok(NoisedEstimates {
            at,
            covariance,
            of_noise,
            dispersion: told.then_some(left / freedom),
        })
    }

    fn noised_outcome(
        &self,
        known: &CommonKnowledge,
        (deviation, rounds): (f64, usize),
        found: &NoisedEstimates,
    ) -> GlmOutcome {
        let (p, q) = (self.terms.len(), self.noised_width());
        let outcome = &known.inputs[p];
        let unit = outcome.half();
        let to_column = |at: usize| match at {
            0 => unit,
            at => unit / known.inputs[at - 1].half(),
        };
        let error =
            |variance: &Symmetric, at: usize| variance.at(at, at).max(0.0).sqrt() * to_column(at);
        let estimate = |at: usize| {
            Estimate::normal(found.at[at] * to_column(at), error(&found.covariance, at))
        };
        let share = |at: usize| found.of_noise.at(at, at) / found.covariance.at(at, at);
        let coefficients = (1..q).map(|at| Coefficient {
            term: self.terms[at - 1].clone(),
            value: found.at[at] * to_column(at),
            estimate: Some(estimate(at)),
            robust: None,
            clustered: None,
            noise_share: Some(share(at)),
        });
        let slopes = (1..q).flat_map(|row| (row..q).map(move |column| (row, column)));
        let covariance = slopes.map(|(row, column)| {
            found.covariance.at(row, column) * to_column(row) * to_column(column)
        });
        let first = estimate(0);
        GlmOutcome {
            family: self.family,
            rows: known.counts.complete,
            rows_told: known.counts.complete,
            sites_told: known.counts.sites,
            coefficients: coefficients.collect(),
            covariance: covariance.collect(),
            log_likelihood: None,
            dispersion: found.dispersion.map(|dispersion| dispersion * unit * unit),
            log_theta: None,
            rounds,
            likelihood_ratio: None,
            common: Some(CommonIntercept {
                estimate: Estimate {
                    value: outcome.middle() + first.value,
                    ..first
                },
                noise_share: share(0),
                deviation,
            }),
        }
    }
}

fn identity(width: usize) -> Symmetric {
    let mut identity = Symmetric::zeros(width);
    (0..width).for_each(|at| identity.set(at, at, 1.0));
    identity
}

#[cfg(test)]
mod tests;
