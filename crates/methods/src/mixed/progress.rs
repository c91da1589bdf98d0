//! Common knowledge of one model, and the step that follows from a sum over sites.

use super::symmetric::Factor;
use super::{Prior, SiteSums, SumsShape, Varying};
use crate::matrix::Matrix;

/// The variance of a coefficient that may vary, before the first round.
const FIRST_STRENGTH: f64 = 0.1;
/// A coefficient whose variance adds less than this to the mean information of a site counts as common.
const LEAST_STRENGTH: f64 = 1e-4;
/// No coefficient moves by more in a round.
const LONGEST_STEP: f64 = 2.0;
/// The most by which the precision of the slopes changes in a round, as a factor.
const MOST_PRECISION: f64 = 8.0;
/// The most by which a variance changes in a round, as a factor.
const MOST_VARIANCE: f64 = 16.0;
/// Variances and precisions stay between this and its inverse.
const RANGE: f64 = 1e12;
/// The first and the largest exponent of the factor by which a variance changes, in halves.
const POWERS: (u64, u64) = (2, 5);

/// Settings of the steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixedSettings {
    /// The precision λ of the common slopes around 0; `None`: it is estimated, too.
    pub precision: Option<f64>,
    /// Rounds end once no estimate moves by more than this: coefficients and deviations in units of their
    /// standard errors, the noise as a part of itself.
    pub tolerance: f64,
}

impl Default for MixedSettings {
    fn default() -> Self {
        Self {
            precision: None,
            tolerance: 0.02,
        }
    }
}

/// Returns whether W is sent whole in this round, from 1, where diagonals are enough in most.
pub fn is_whole(round: u64) -> bool {
    matches!(round, 1 | 3 | 6)
}

/// Common knowledge of one model. The intercept is first everywhere.
#[derive(Debug, Clone, PartialEq)]
pub struct MixedProgress {
    /// Coefficients that may vary.
    pub varying: Varying,
    /// The common coefficients μ.
    pub mean: Vec<f64>,
    /// The variance T of every coefficient.
    pub strengths: Vec<f64>,
    /// The variance s² of the noise.
    pub noise: f64,
    /// The precision λ of the slopes around 0.
    pub precision: f64,
    /// The last sum of W that was sent whole.
    pub pattern: Option<Matrix>,
    /// The diagonal of the last sum of W; empty before the first round.
    pub diagonal: Vec<f64>,
    /// Of every group of coefficients with a variance: the exponent of its factor in halves, and whether the
    /// variance was too small.
    pub powers: Vec<(u64, bool)>,
    /// The sum of [`SiteSums::predictive`] over all sites, at the estimates before the last step.
    pub predictive: f64,
    /// True if the last step was short enough to end.
    pub done: bool,
}

impl MixedProgress {
    /// Before the first round, for `width` coefficients.
    pub fn start(varying: Varying, width: usize, settings: &MixedSettings) -> Self {
        let mut strengths = vec![0.0; width];
        let groups = varying.groups(width);
        for group in &groups {
            strengths[group.clone()].fill(FIRST_STRENGTH);
        }
        Self {
            varying,
            mean: vec![0.0; width],
            strengths,
            noise: 1.0,
            precision: settings.precision.unwrap_or(1.0),
            pattern: None,
            diagonal: Vec::new(),
            powers: vec![(0, false); groups.len()],
            predictive: f64::NEG_INFINITY,
            done: false,
        }
    }

    /// Number of coefficients.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// The prior of a site.
    pub fn prior(&self) -> Prior<'_> {
        Prior {
            mean: &self.mean,
            strengths: &self.strengths,
            noise: self.noise,
        }
    }

    /// The shape of what a site sends of this model.
    pub fn shape(&self, whole: bool, noise: bool) -> SumsShape {
        SumsShape {
            width: self.width(),
            varying: self.varying,
            whole,
            noise,
        }
    }

    /// `−2·predictive + 2·variances`: the less, the more the model [weighs](super::model_weights); infinite before the
    /// first round. It is the conditional information criterion of Vaida & Blanchard (2005), about new rows of the same sites, in which every
    /// estimated variance counts as a coefficient, because it ignores that they are estimated (Greven & Kneib 2010).
    /// The likelihood with the deviations integrated out is about rows of other sites: with few of them it has one
    /// model for all where sites differ.
    pub fn criterion(&self) -> f64 {
        2.0 * self.powers.len() as f64 - 2.0 * self.predictive
    }

    /// The inverse of S, the sum of W and the precision of the slopes: by the last whole sum, scaled to the last
    /// diagonal. `None` before the first round, and where S is not positive definite.
    pub fn inverse(&self) -> Option<Matrix> {
        let pattern = self.pattern.as_ref()?;
        let ratio: Vec<f64> = self
            .diagonal
            .iter()
            .enumerate()
            .map(|(at, entry)| {
                let before = pattern[(at, at)];
                let holds = before > 0.0 && *entry > 0.0;
                if holds { (entry / before).sqrt() } else { 0.0 }
            })
            .collect();
        let width = self.width();
        let sum = Matrix::from_fn(width, width, |row, column| {
            if row != column {
                return pattern[(row, column)] * ratio[row] * ratio[column];
            }
            let precision = if row > 0 { self.precision } else { 0.0 };
            self.diagonal[row] + precision
        });
        Some(Factor::of(&sum)?.inverse())
    }

    /// The step from the sum over `sites` sites of `rows` rows in all. Whatever the numbers are, the estimates
    /// stay finite and move by bounded amounts; with a sum that is none of positive definite W only the
    /// variances move.
    #[must_use]
    pub fn step(&self, sum: &SiteSums, sites: f64, rows: f64, settings: &MixedSettings) -> Self {
        let mut next = self.clone();
        next.predictive = sum.predictive();
        next.diagonal = sum.diagonal();
        if let Some(whole) = sum.whole() {
            next.pattern = Some(whole);
        }
        let moved = next.move_mean(sum, settings);
        let longest = next.move_strengths(self, sum, sites);
        let noise = next.move_noise(sum, rows);
        let steps = [moved, Some(longest), Some(noise)];
        next.done = steps
            .iter()
            .all(|step| step.is_some_and(|step| step < settings.tolerance));
        next
    }

    /// Moves μ and λ. Returns the longest step in standard errors; `None` where S cannot be inverted.
    fn move_mean(&mut self, sum: &SiteSums, settings: &MixedSettings) -> Option<f64> {
        let inverse = self.inverse()?;
        let width = self.width();
        let slopes = 1..width;
        let pull = |at: usize| if at > 0 { self.precision } else { 0.0 };
        let right: Vec<f64> = (0..width)
            .map(|at| sum.score()[at] - pull(at) * self.mean[at])
            .collect();
        let mut longest = 0f64;
        let mut mean = self.mean.clone();
        for (row, mean) in mean.iter_mut().enumerate() {
            let step: f64 = inverse
                .row(row)
                .iter()
                .zip(&right)
                .map(|(s, z)| s * z)
                .sum();
            if !step.is_finite() {
                return None;
            }
            let step = step.clamp(-LONGEST_STEP, LONGEST_STEP);
            *mean = (*mean + step).clamp(-RANGE, RANGE);
            longest = longest.max(step.abs() * self.diagonal[row].max(0.0).sqrt());
        }
        if settings.precision.is_none() && width > 1 {
            let told = slopes
                .clone()
                .map(|at| 1.0 - self.precision * inverse[(at, at)]);
            let size: f64 = slopes.map(|at| mean[at] * mean[at]).sum();
            let (low, high) = (
                self.precision / MOST_PRECISION,
                self.precision * MOST_PRECISION,
            );
            let found = told.sum::<f64>() / size;
            self.precision = clamped(found, low, high);
        }
        self.mean = mean;
        Some(longest)
    }

    /// Moves T. Returns the longest step of a deviation √T, in units of its mean standard error at a site.
    fn move_strengths(&mut self, before: &Self, sum: &SiteSums, sites: f64) -> f64 {
        let mut longest = 0f64;
        for (number, group) in self.varying.groups(self.width()).into_iter().enumerate() {
            let largest = before.strengths[group.clone()]
                .iter()
                .fold(0f64, |a, &b| a.max(b));
            if largest <= 0.0 {
                continue;
            }
            let strength = before.strengths[group.start];
            let (mut squares, mut expected, mut mean) = (0.0, 0.0, 0.0);
            for at in group.clone() {
                squares += sum.squares()[at];
                expected += strength * self.diagonal[at] - sum.explained()[at];
                mean += self.diagonal[at] / (sites * group.len() as f64);
            }
            let ratio = squares / expected;
            let ratio = if expected > 0.0 && ratio.is_finite() {
                ratio.max(0.0)
            } else {
                1.0
            };
            let (power, was_above) = before.powers[number];
            let above = ratio > 1.0;
            let power = match power {
                0 => POWERS.0,
                power if above == was_above => (power + 1).min(POWERS.1),
                power => (power / 2).max(1),
            };
            self.powers[number] = (power, above);
            let factor = (0..power).fold(1.0, |product, _| product * ratio.sqrt());
            let factor = factor.clamp(1.0 / MOST_VARIANCE, MOST_VARIANCE);
            // What is no number is none, too.
            let after = Some((strength * factor).min(RANGE));
            let after = after.filter(|after| after * mean >= LEAST_STRENGTH);
            let after = after.unwrap_or(0.0);
            for at in group {
                let error = (self.diagonal[at].max(0.0) / sites).sqrt();
                longest = longest.max((after.sqrt() - strength.sqrt()).abs() * error);
                self.strengths[at] = after;
            }
        }
        longest
    }

    /// Moves s². Returns by how much, as a part of what it was; 0 without noise.
    fn move_noise(&mut self, sum: &SiteSums, rows: f64) -> f64 {
        let &[residual, freedom, trace] = sum.noise() else {
            return 0.0;
        };
        let left = rows - freedom - trace;
        let found = if left > 0.0 {
            residual / left
        } else {
            self.noise
        };
        let (low, high) = (self.noise / MOST_VARIANCE, self.noise * MOST_VARIANCE);
        let after = clamped(found, low, high);
        let moved = (after / self.noise - 1.0).abs();
        self.noise = after;
        moved
    }
}

/// A positive number between these two and within range; the lower one where it is none.
fn clamped(number: f64, low: f64, high: f64) -> f64 {
    let bounded = if number.is_nan() { low } else { number };
    bounded.clamp(low, high).clamp(1.0 / RANGE, RANGE)
}
