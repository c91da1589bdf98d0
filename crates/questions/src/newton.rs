//! Newton's method on sums: one step a round, the same for all who take it.

use serde::{Deserialize, Serialize};

use crate::QuestionStopped;
use crate::algebra::{Symmetric, dot};

/// Most rounds of a fit.
const ROUNDS: usize = 25;
/// The expected gain of log likelihood below which a fit has converged.
const CONVERGED: f64 = 1e-10;
/// The gain below which a long step means that the estimate is infinite.
const FLAT: f64 = 1e-4;
/// A long step, of columns scaled to ±1.
const LONG: f64 = 0.1;
/// An eigenvalue of the information with unit diagonal that counts as 0.
const SINGULAR: f64 = 1e-10;
/// Entries of eigenvectors that name a column.
const NAMED: f64 = 0.1;
/// Rounding of one encoded number.
const STEP: f64 = 1.0 / 1_073_741_824.0;
/// The longest step of a coordinate whose likelihood may curve upwards.
const CURVED_STEP: f64 = 1.5;

/// A fit between two rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Newton {
    /// Coefficients, of scaled columns.
    pub at: Vec<f64>,
    /// The last step.
    step: Vec<f64>,
    /// The penalised log likelihood before it.
    before: Option<f64>,
    /// Rounds so far.
    pub rounds: usize,
}

/// A fit that has converged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewtonFit {
    /// Coefficients, of scaled columns.
    pub at: Vec<f64>,
    /// Information, with the ridge.
    pub information: Symmetric,
    /// Its inverse.
    pub inverse: Symmetric,
    /// Log likelihood, without the ridge.
    pub log_likelihood: f64,
    /// Rounds that it took.
    pub rounds: usize,
}

/// Step or end that a sum leads to.
pub(crate) enum Moved {
    On(Newton),
    Converged(NewtonFit),
}

/// The sums of a round.
pub(crate) struct NewtonSum<'a> {
    pub(crate) log_likelihood: f64,
    pub(crate) score: &'a [f64],
    pub(crate) information: &'a [f64],
}

/// Model that is fitted.
pub(crate) struct NewtonModel<'a> {
    /// Names of coefficients, for messages.
    pub(crate) names: &'a [String],
    /// The penalty ½·ridge·β² of each.
    pub(crate) ridge: &'a [f64],
    /// Number of added vectors, for the rounding.
    pub(crate) sites: f64,
    /// True if the last coordinate may have no maximum nearby: its steps are short, and directions in which the
    /// likelihood curves upwards are followed by the absolute curvature.
    pub(crate) curved: bool,
}

impl Newton {
    /// At the coefficients of a fit, for a last round.
    pub(crate) fn end(fit: &NewtonFit) -> Self {
        Self {
            rounds: fit.rounds,
            ..Self::start(fit.at.clone())
        }
    }

    /// Before the first round, at these coefficients.
    pub(crate) fn start(at: Vec<f64>) -> Self {
        Self {
            step: vec![0.0; at.len()],
            at,
            before: None,
            rounds: 0,
        }
    }

    /// The longest change of a coefficient in the last step.
    pub(crate) fn longest_step(&self) -> f64 {
        self.step
            .iter()
            .fold(0.0, |longest, step| longest.max(step.abs()))
    }

    /// The next step.
    pub(crate) fn advance(
        &self,
        model: &NewtonModel<'_>,
        sum: &NewtonSum<'_>,
    ) -> Result<Moved, QuestionStopped> {
        let rounds = self.rounds + 1;
        let penalty: f64 = model
            .ridge
            .iter()
            .zip(&self.at)
            .map(|(r, b)| 0.5 * r * b * b)
            .sum();
        let reached = sum.log_likelihood - penalty;
        let fell = |before: f64| reached < before - 1e-9 * (1.0 + before.abs());
        if self.before.is_some_and(fell) && rounds < ROUNDS {
            let step: Vec<f64> = self.step.iter().map(|step| 0.5 * step).collect();
            let at = self
                .at
                .iter()
                .zip(&step)
                .map(|(at, step)| at - step)
                .collect();
            return Ok(Moved::On(Self {
                at,
                step,
                before: self.before,
                rounds,
            }));
        }
        let mut score = sum.score.to_vec();
        let mut information = Symmetric::of_triangle(score.len(), sum.information);
        for (at, ridge) in model.ridge.iter().enumerate() {
            score[at] -= ridge * self.at[at];
            information.set(at, at, information.at(at, at) + ridge);
        }
        let step = self.direction(model, &information, &score)?;
        let gain = 0.5 * dot(&score, &step);
        let long = |at: &usize| step[*at].abs() > LONG && model.ridge[*at] == 0.0;
        let long: Vec<usize> = (0..step.len()).filter(long).collect();
        if gain.abs() < FLAT && !long.is_empty() && !model.curved {
            return Err(QuestionStopped::Separated(named(model.names, &long)));
        }
        let at: Vec<f64> = self
            .at
            .iter()
            .zip(&step)
            .map(|(at, step)| at + step)
            .collect();
        if gain.abs() < CONVERGED {
            let inverse = information.inverse();
            let inverse =
                inverse.ok_or_else(|| QuestionStopped::Collinear(named(model.names, &all(&at))))?;
            let log_likelihood = sum.log_likelihood + 0.5 * dot(sum.score, &step);
            return Ok(Moved::Converged(NewtonFit {
                at,
                information,
                inverse,
                log_likelihood,
                rounds,
            }));
        }
        if rounds >= ROUNDS || !gain.is_finite() {
            return Err(QuestionStopped::NoConvergence(ROUNDS));
        }
        Ok(Moved::On(Self {
            at,
            step,
            before: Some(reached),
            rounds,
        }))
    }

    fn direction(
        &self,
        model: &NewtonModel<'_>,
        information: &Symmetric,
        score: &[f64],
    ) -> Result<Vec<f64>, QuestionStopped> {
        let width = score.len();
        let diagonal = information.diagonal();
        let rounding = model.sites * STEP;
        let slopes = if model.curved {
            width.saturating_sub(1)
        } else {
            width
        };
        let nothing = |entry: &f64| *entry <= 2.0 * rounding || entry.is_nan();
        if let Some(at) = diagonal[..slopes].iter().position(nothing) {
            let first = self.rounds == 0;
            let constant = QuestionStopped::Constant(model.names[at].clone());
            return Err(if first {
                constant
            } else {
                QuestionStopped::Separated(named(model.names, &[at]))
            });
        }
        let roots: Vec<f64> = diagonal
            .iter()
            .map(|entry| entry.abs().max(rounding).sqrt())
            .collect();
        let mut scaled = Symmetric::zeros(width);
        for row in 0..width {
            for column in row..width {
                scaled.set(
                    row,
                    column,
                    information.at(row, column) / (roots[row] * roots[column]),
                );
            }
        }
        let eigen = scaled.eigen();
        if !model.curved && width > 0 {
            let least = diagonal.iter().copied().fold(f64::INFINITY, f64::min);
            let noise = 2.0 * rounding * width as f64 / least;
            if eigen.least() < SINGULAR.max(noise) {
                let vector = &eigen.pairs[0].1;
                let loud: Vec<usize> = (0..width).filter(|at| vector[*at].abs() > NAMED).collect();
                let names = named(model.names, &loud);
                let first = self.rounds == 0;
                return Err(if first {
                    QuestionStopped::Collinear(names)
                } else {
                    QuestionStopped::Separated(names)
                });
            }
        }
        // The step by eigenvectors, so that a direction of upward curvature can be turned round.
        let right: Vec<f64> = score
            .iter()
            .zip(&roots)
            .map(|(score, root)| score / root)
            .collect();
        let mut step = vec![0.0; width];
        for (value, vector) in &eigen.pairs {
            let part = dot(vector, &right)
                / if model.curved {
                    value.abs().max(1e-6)
                } else {
                    *value
                };
            step.iter_mut()
                .zip(vector)
                .for_each(|(step, entry)| *step += part * entry);
        }
        step.iter_mut()
            .zip(&roots)
            .for_each(|(step, root)| *step /= root);
        if model.curved
            && let Some(last) = step.last_mut()
        {
            *last = last.clamp(-CURVED_STEP, CURVED_STEP);
        }
        Ok(step)
    }
}

fn all(of: &[f64]) -> Vec<usize> {
    (0..of.len()).collect()
}

/// The names of some columns in one sentence.
fn named(names: &[String], at: &[usize]) -> String {
    let quoted: Vec<String> = at.iter().map(|at| format!("\"{}\"", names[*at])).collect();
    quoted.join(", ")
}
