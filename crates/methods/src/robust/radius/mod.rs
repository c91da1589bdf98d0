//! Chooses the radius of a Wasserstein ball, by cross-validation or by the number of rows.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::fit::FitError;
use super::folds::FoldsError;
use super::{FitConfig, Folds, Samples, fit, robust_loss, validate_radius};

/// Losses that differ by less than this, relative or absolute, count as equal: fits are solved to a
/// tolerance.
const SAME: f64 = 1e-7;

/// Options of the cross-validation of radii.
#[derive(Debug, Clone, PartialEq)]
pub struct RadiusSearch {
    /// The radii to choose from, ascending, all at least 0.
    pub radii: Vec<f64>,
    /// Number of folds, from 2 to the number of rows.
    pub folds: usize,
    /// Seed of the partition into folds.
    pub seed: u64,
    /// `true` to take the largest radius whose loss is within one standard error of the least,
    /// instead of the radius with the least loss (Breiman et al. 1984).
    pub one_standard_error: bool,
}

/// Cross-validation score of a radius.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RadiusScore {
    /// The radius of the fits.
    pub radius: f64,
    /// Mean loss on the held-out rows, without robustness; every row counts once.
    pub loss: f64,
    /// Standard error of that mean, from its variance over the folds.
    pub standard_error: f64,
}

/// The chosen radius, and the scores of all radii.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenRadius {
    /// The chosen radius.
    pub radius: f64,
    /// The scores of all radii, in ascending order of radius.
    pub scores: Vec<RadiusScore>,
}

/// Errors of choosing a radius.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RadiusError {
    /// Radii that are empty, not ascending, not finite or negative.
    #[error("the radii to choose from must be finite, at least 0 and ascending, at least one")]
    Radii,
    /// An impossible number of folds.
    #[error(transparent)]
    Folds(#[from] FoldsError),
    /// A fit failed.
    #[error("the fit with radius {radius} without fold {fold}: {error}")]
    Fit {
        /// Radius of the fit.
        radius: f64,
        /// The fold that was left out, from 0.
        fold: usize,
        /// Cause of the failure.
        error: FitError,
    },
}

/// The radius of least loss in cross-validation (Konti et al. 2024): models are fitted robustly
/// to all folds but one, and scored by their mean loss, without robustness, on that one. Ties go to
/// the smallest radius.
///
/// Folds and radii are fitted in parallel; the number of threads does not change the result.
///
/// # Errors
/// [`RadiusError`]: invalid radii or number of folds; a fit failed, for example because none
/// exists at radius 0.
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
                Ok(robust_loss(unseen, &model, 0.0, config.loss, config.cost)?.loss)
            };
            plain().map_err(|error| RadiusError::Fit {
                radius,
                fold,
                error,
            })
        })
        // Collect all results first, so that the first error does not depend on scheduling.
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

/// Mean of the folds' losses, weighted by size, and its standard error.
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

/// The chosen radius, from scores in ascending order of radius.
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

/// One of two radii, by the number of rows: an estimate from few rows needs a larger radius.
///
/// The paper's experiments use such a rule; its numbers are not published.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TwoRadii {
    /// Number of training rows from which the small radius applies.
    #[schemars(extend("x-unit" = "rows"))]
    pub threshold: usize,
    /// Radius of a silo with at least `threshold` rows.
    #[schemars(range(min = 0))]
    pub small: f64,
    /// Radius of a silo with fewer rows.
    #[schemars(range(min = 0))]
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
