//! Which radius: by cross-validation, or by the number of rows.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::fit::FitError;
use super::folds::FoldsError;
use super::{FitConfig, Folds, Samples, fit, robust_loss, validate_radius};

/// Losses that differ by less than this part, or than this, are the same: fits are solved to a
/// tolerance.
const SAME: f64 = 1e-7;

/// How a radius is looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct RadiusSearch {
    /// The radii to choose from, rising, all at least 0.
    pub radii: Vec<f64>,
    /// Number of folds, from 2 to the number of rows.
    pub folds: usize,
    /// Seed of the division into folds.
    pub seed: u64,
    /// Takes the largest radius whose loss is within one standard error of the least, instead of
    /// the one of least loss (Breiman et al. 1984): more robust for the same evidence.
    pub one_standard_error: bool,
}

/// What a radius lost in cross-validation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RadiusScore {
    /// The radius of the fits.
    pub radius: f64,
    /// Mean plain loss on rows that the fits had not seen, every row counting once.
    pub loss: f64,
    /// Standard error of that mean, from its spread over the folds.
    pub standard_error: f64,
}

/// A radius, and how all of them did.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenRadius {
    /// The chosen one.
    pub radius: f64,
    /// All candidates, in rising order.
    pub scores: Vec<RadiusScore>,
}

/// Why no radius was chosen.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RadiusError {
    /// No radii, or not rising, or not finite, or negative.
    #[error(
        "the radii to choose from must be finite, at least 0 and rising, and there must be one"
    )]
    Radii,
    /// Not a number of folds for these rows.
    #[error(transparent)]
    Folds(#[from] FoldsError),
    /// A fit failed.
    #[error("the fit with radius {radius} without fold {fold}: {error}")]
    Fit {
        /// Its radius.
        radius: f64,
        /// The fold that was left out, from 0.
        fold: usize,
        /// What went wrong.
        error: FitError,
    },
}

/// The radius of least loss in cross-validation (Konti et al. 2024): models are fitted robustly
/// to all folds but one, and scored by their plain loss on that one. Radii that lose the same
/// give way to the smallest.
///
/// Folds and radii are fitted in parallel; the number of threads does not change a bit.
///
/// # Errors
/// [`RadiusError`]: impossible radii or number of folds; a fit failed, for instance because one
/// does not exist at radius 0.
pub fn choose_radius(
    rows: &Samples,
    config: &FitConfig,
    search: &RadiusSearch,
) -> Result<ChosenRadius, RadiusError> {
    let radii = &search.radii;
    let valid = radii.iter().all(|&radius| validate_radius(radius).is_ok());
    if radii.is_empty() || !valid || !radii.windows(2).all(|pair| pair[0] < pair[1]) {
        return Err(RadiusError::Radii);
    }
    let splits = Folds::new(rows, config.loss, search.folds, search.seed)?.splits(rows);
    let losses = (0..radii.len() * splits.len())
        .into_par_iter()
        .map(|at| {
            let (radius, fold) = (radii[at / splits.len()], at % splits.len());
            let (seen, unseen) = &splits[fold];
            let plain = || -> Result<f64, FitError> {
                let model = fit(seen, radius, config)?.model;
                Ok(robust_loss(unseen, &model, 0.0, config.loss, config.norm)?.loss)
            };
            plain().map_err(|error| RadiusError::Fit {
                radius,
                fold,
                error,
            })
        })
        // All of them, so that the first error is the same however they were shared out.
        .collect::<Vec<_>>()
        .into_iter()
        .collect::<Result<Vec<f64>, _>>()?;

    let sizes: Vec<f64> = splits.iter().map(|(_, own)| own.len() as f64).collect();
    let scores: Vec<RadiusScore> = radii
        .iter()
        .zip(losses.chunks(splits.len()))
        .map(|(&radius, losses)| score(radius, losses, &sizes))
        .collect();
    let radius = choice(&scores, search.one_standard_error);
    Ok(ChosenRadius { radius, scores })
}

/// Mean of the folds' losses by size, and its standard error.
fn score(radius: f64, losses: &[f64], sizes: &[f64]) -> RadiusScore {
    let rows: f64 = sizes.iter().sum();
    let mean_by_size = |of: &dyn Fn(f64) -> f64| {
        let each = losses.iter().zip(sizes);
        each.map(|(&loss, size)| of(loss) * size).sum::<f64>() / rows
    };
    let loss = mean_by_size(&|loss| loss);
    let variance = mean_by_size(&|other| (other - loss) * (other - loss));
    RadiusScore {
        radius,
        loss,
        standard_error: (variance / (losses.len() - 1) as f64).sqrt(),
    }
}

/// The chosen among scores in rising order of radius.
fn choice(scores: &[RadiusScore], one_standard_error: bool) -> f64 {
    let best = scores
        .iter()
        .min_by(|a, b| a.loss.total_cmp(&b.loss))
        .expect("there is at least one radius");
    let rounding = SAME * best.loss.max(1.0);
    let chosen = if one_standard_error {
        let limit = best.loss + best.standard_error + rounding;
        scores.iter().rfind(|score| score.loss <= limit)
    } else {
        scores
            .iter()
            .find(|score| score.loss <= best.loss + rounding)
    };
    chosen.unwrap_or(best).radius
}

/// Two radii by the number of rows: few rows say little about where others are.
///
/// The paper's experiments have such a rule; its numbers are not known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TwoRadii {
    /// Rows from which on a silo has many.
    pub threshold: usize,
    /// The radius with many rows.
    pub small: f64,
    /// The radius with fewer.
    pub large: f64,
}

impl TwoRadii {
    /// The radius of a silo with this many rows.
    pub fn radius(&self, rows: usize) -> f64 {
        if rows >= self.threshold {
            self.small
        } else {
            self.large
        }
    }
}

#[cfg(test)]
mod tests;
