//! Synthetic hospitals whose true coalitions are known, as in CS-RCFL's experiments.
//!
//! For experiments, tests and benchmarks; scenarios read their data elsewhere.
//!
//! As in Konti et al. 2024, every hospital's features are normal with a mean and a covariance of its
//! own; its targets follow one of a few true models, which hospitals of one coalition share.
//! The paper does not state sizes and scales; the defaults are guesses.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{LinearModel, Samples};
use crate::learner::mixed_seed;
use crate::matrix::Matrix;
use crate::random::{normal, uniform};

/// Added to the diagonal of every covariance, so that the variance is positive in every direction.
const FLOOR: f64 = 0.1;

/// Options of a synthetic federation.
#[derive(Debug, Clone, PartialEq)]
pub struct Hospitals {
    /// Number of hospitals.
    pub hospitals: usize,
    /// Number of true models, from 1 to the number of hospitals; hospital `i` follows model
    /// `i mod coalitions`.
    pub coalitions: usize,
    /// Features of a row, at least 1.
    pub features: usize,
    /// Fewest and most rows of a hospital, at least 1; drawn uniformly in between.
    pub rows: (usize, usize),
    /// Standard deviation of the true weights.
    pub scale: f64,
    /// The targets of the rows.
    pub targets: Targets,
}

/// The targets of synthetic hospitals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Targets {
    /// The true model's output plus normal noise of this standard deviation.
    Numbers {
        /// Standard deviation, at least 0.
        noise: f64,
    },
    /// 1 where the true model's probability of label 1 is above the threshold, otherwise −1. There is
    /// no noise, as in the paper: the labels are separable, and the plain logistic fit does not
    /// exist.
    Labels {
        /// Between 0 and 1.
        threshold: f64,
    },
}

impl Default for Hospitals {
    fn default() -> Self {
        Self {
            hospitals: 20,
            coalitions: 4,
            features: 10,
            rows: (100, 200),
            scale: 2.0,
            targets: Targets::Numbers { noise: 0.5 },
        }
    }
}

/// Invalid options of a synthetic federation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "synthetic hospitals need at least one feature and one row each, 1 to as many coalitions as \
     hospitals, a scale and noise that are finite and at least 0, and a threshold between 0 and 1"
)]
pub struct HospitalsError;

/// One synthetic hospital.
#[derive(Debug, Clone, PartialEq)]
pub struct Hospital {
    /// Rows of the hospital.
    pub rows: Samples,
    /// True coalition of the hospital.
    pub coalition: usize,
    /// The distribution of the hospital's rows.
    pub population: Population,
}

/// The distribution that a hospital's rows are drawn from.
#[derive(Debug, Clone, PartialEq)]
pub struct Population {
    /// The true model, θ*.
    pub model: LinearModel,
    mean: Vec<f64>,
    /// `B/√d`: the covariance is `BBᵀ/d + FLOOR · I`.
    factor: Matrix,
    targets: Targets,
}

impl Hospitals {
    /// Draws the federation; a function of these numbers and `seed`.
    ///
    /// # Errors
    /// [`HospitalsError`] if an option is out of its range.
    pub fn draw(&self, seed: u64) -> Result<Vec<Hospital>, HospitalsError> {
        self.validate()?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let d = self.features;
        let models: Vec<LinearModel> = (0..self.coalitions)
            .map(|_| LinearModel {
                weights: (0..d).map(|_| self.scale * normal(&mut random)).collect(),
                intercept: 0.0,
            })
            .collect();
        let (fewest, most) = self.rows;
        let hospital = |at: usize| {
            let coalition = at % self.coalitions;
            let width = 1.0 / (d as f64).sqrt();
            let population = Population {
                model: models[coalition].clone(),
                mean: (0..d).map(|_| 2.0 * uniform(&mut random) - 1.0).collect(),
                factor: Matrix::from_fn(d, d, |_, _| width * normal(&mut random)),
                targets: self.targets,
            };
            let rows = fewest + (random.next_u64() % (most - fewest + 1) as u64) as usize;
            Hospital {
                rows: population.draw(rows, mixed_seed(seed, at as u64)),
                coalition,
                population,
            }
        };
        Ok((0..self.hospitals).map(hospital).collect())
    }

    fn validate(&self) -> Result<(), HospitalsError> {
        let (fewest, most) = self.rows;
        let sizes = self.features > 0 && fewest > 0 && fewest <= most;
        let coalitions = self.coalitions > 0 && self.coalitions <= self.hospitals;
        let at_least_zero = |value: f64| value.is_finite() && value >= 0.0;
        let targets = match self.targets {
            Targets::Numbers { noise } => at_least_zero(noise),
            Targets::Labels { threshold } => threshold > 0.0 && threshold < 1.0,
        };
        if sizes && coalitions && at_least_zero(self.scale) && targets {
            Ok(())
        } else {
            Err(HospitalsError)
        }
    }
}

impl Population {
    /// Draws further rows, such as held-out ones; a function of the population, `rows` and `seed`.
    ///
    /// # Panics
    /// If `rows` is 0.
    pub fn draw(&self, rows: usize, seed: u64) -> Samples {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let d = self.mean.len();
        let mut features = Matrix::zeros(rows, d);
        let mut targets = Vec::with_capacity(rows);
        for row in 0..rows {
            let common: Vec<f64> = (0..d).map(|_| normal(&mut random)).collect();
            for column in 0..d {
                let spread = self.factor.row(column).iter().zip(&common);
                let spread: f64 = spread.map(|(factor, common)| factor * common).sum();
                let own = FLOOR.sqrt() * normal(&mut random);
                features[(row, column)] = self.mean[column] + spread + own;
            }
            let output = self.model.output(features.row(row));
            targets.push(match self.targets {
                Targets::Numbers { noise } => output + noise * normal(&mut random),
                Targets::Labels { threshold } => {
                    let logit = libm::log(threshold / (1.0 - threshold));
                    if output > logit { 1.0 } else { -1.0 }
                }
            });
        }
        Samples::new(features, targets).expect("at least one row, and sums of finite numbers")
    }
}

#[cfg(test)]
mod tests;
