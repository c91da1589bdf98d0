//! Computations of one site, with its own intercept profiled out.

use super::GlmFamily;
use super::family::FamilyRow;
use crate::SiteRefusal;
use crate::algebra::{Symmetric, dot};

/// Most steps to a site's intercept.
const STEPS: usize = 200;

/// The complete rows of a site.
pub(super) struct GlmSite {
    pub(super) features: Vec<Vec<f64>>,
    pub(super) outcome: Vec<f64>,
    pub(super) offset: Vec<f64>,
    pub(super) weights: Vec<f64>,
}

/// Sums of a site at its own intercept.
pub(super) struct GlmSums {
    told: [f64; 2],
    log_likelihood: f64,
    score: Vec<f64>,
    information: Symmetric,
    pub(super) squared_residuals: f64,
    pub(super) meat_of_rows: Symmetric,
}

impl GlmSums {
    fn nothing(width: usize) -> Self {
        Self {
            told: [0.0; 2],
            log_likelihood: 0.0,
            score: vec![0.0; width],
            information: Symmetric::zeros(width),
            squared_residuals: 0.0,
            meat_of_rows: Symmetric::zeros(width),
        }
    }

    /// In the order of the layout.
    pub(super) fn numbers(&self) -> Vec<f64> {
        let mut numbers = self.told.to_vec();
        numbers.push(self.log_likelihood);
        numbers.extend(&self.score);
        numbers.extend(self.information.triangle());
        numbers
    }

    /// The product of the site's score with itself.
    pub(super) fn meat_of_site(&self) -> Symmetric {
        let mut meat = Symmetric::zeros(self.score.len());
        meat.add_outer(1.0, &self.score);
        meat
    }
}

impl GlmSite {
    /// The sums at these coefficients of some terms; the last one is log θ if `dispersed`. A site that tells
    /// nothing, such as one with one class only, has zeros.
    pub(super) fn sums(
        &self,
        family: GlmFamily,
        terms: &[usize],
        at: &[f64],
        dispersed: bool,
    ) -> Result<GlmSums, SiteRefusal> {
        let width = at.len();
        let mut sums = GlmSums::nothing(width);
        if !family.tells(&self.outcome, &self.weights) {
            return Ok(sums);
        }
        let theta = at.last().filter(|_| dispersed).map(|log| libm::exp(*log));
        let features: Vec<Vec<f64>> = self
            .features
            .iter()
            .map(|row| terms.iter().map(|at| row[*at]).collect())
            .collect();
        let slopes = &at[..terms.len()];
        let base: Vec<f64> = features
            .iter()
            .zip(&self.offset)
            .map(|(row, offset)| offset + dot(row, slopes))
            .collect();
        let intercept = self.intercept(family, &base, theta)?;
        let rows: Vec<FamilyRow> = base
            .iter()
            .zip(&self.outcome)
            .map(|(base, y)| family.row(*y, base + intercept, theta))
            .collect();
        let weighted = || rows.iter().zip(&self.weights).zip(&features);
        // Products with the intercept, by its own.
        let total: f64 = weighted()
            .map(|((row, weight), _)| weight * row.weight)
            .sum();
        let mut mean = vec![0.0; width];
        for ((row, weight), x) in weighted() {
            for (mean, x) in mean.iter_mut().zip(x) {
                *mean += weight * row.weight * x / total;
            }
            if dispersed {
                mean[width - 1] += weight * row.cross / total;
            }
        }
        for ((row, weight), x) in weighted() {
            sums.log_likelihood += weight * row.log_likelihood;
            sums.squared_residuals += weight * row.squared_residual;
            let centred: Vec<f64> = x.iter().zip(&mean).map(|(x, mean)| x - mean).collect();
            let mut score: Vec<f64> = centred.iter().map(|x| weight * row.score * x).collect();
            if dispersed {
                score.push(weight * (row.dispersion - mean[width - 1] * row.score));
            }
            sums.score
                .iter_mut()
                .zip(&score)
                .for_each(|(sum, score)| *sum += score);
            sums.meat_of_rows.add_outer(1.0, &score);
            let mut direction = centred;
            direction.resize(width, 0.0);
            sums.information.add_outer(weight * row.weight, &direction);
            if dispersed {
                self::add_dispersion(&mut sums.information, *weight, row, &direction);
            }
        }
        if dispersed {
            let last = width - 1;
            let through = sums.information.at(last, last) - total * mean[last] * mean[last];
            sums.information.set(last, last, through);
        }
        sums.told = [self.outcome.len() as f64, 1.0];
        Ok(sums)
    }

    /// Returns where the search begins: the closed form for the log link with Poisson or gamma outcomes, else 0.
    fn first_intercept(&self, family: GlmFamily, base: &[f64]) -> f64 {
        let sign = if family == GlmFamily::Gamma {
            -1.0
        } else {
            1.0
        };
        if matches!(family, GlmFamily::Gaussian | GlmFamily::Binomial) {
            return 0.0;
        }
        // Sums of exponentials relative to the largest, so that nothing overflows.
        let most = base
            .iter()
            .map(|base| sign * base)
            .fold(f64::NEG_INFINITY, f64::max);
        let (mut outcomes, mut predicted) = (0.0, 0.0);
        for ((base, y), weight) in base.iter().zip(&self.outcome).zip(&self.weights) {
            let exponential = libm::exp(sign * base - most);
            let is_gamma = family == GlmFamily::Gamma;
            outcomes += weight * if is_gamma { y * exponential } else { *y };
            predicted += weight * if is_gamma { 1.0 } else { exponential };
        }
        libm::log(outcomes / predicted) - sign * most
    }

    /// The intercept of largest likelihood, where the sum of scores is 0.
    fn intercept(
        &self,
        family: GlmFamily,
        base: &[f64],
        theta: Option<f64>,
    ) -> Result<f64, SiteRefusal> {
        let sums = |intercept: f64| {
            let mut sums = [0.0; 2];
            for ((base, y), weight) in base.iter().zip(&self.outcome).zip(&self.weights) {
                let row = family.row(*y, base + intercept, theta);
                sums[0] += weight * row.score;
                sums[1] += weight * row.weight;
            }
            sums
        };
        let (mut low, mut high) = (-1e4, 1e4);
        let mut at = self.first_intercept(family, base);
        for _ in 0..STEPS {
            let [score, weight] = sums(at);
            if score > 0.0 {
                low = at;
            } else {
                high = at;
            }
            let newton = at + score / weight;
            if (newton - at).abs() <= 1e-14 * (1.0 + at.abs()) {
                return Ok(newton);
            }
            let inside = newton > low && newton < high && newton.is_finite();
            at = if family == GlmFamily::Gaussian || inside {
                newton
            } else {
                0.5 * (low + high)
            };
        }
        let [score, weight] = sums(at);
        let near = score.abs() <= 1e-9 * (1.0 + weight);
        near.then_some(at)
            .ok_or_else(|| SiteRefusal::Fit("intercept".to_owned()))
    }
}

/// Adds a row's products with log θ.
fn add_dispersion(information: &mut Symmetric, weight: f64, row: &FamilyRow, centred: &[f64]) {
    let last = centred.len() - 1;
    for (at, x) in centred[..last].iter().enumerate() {
        let value = information.at(at, last) + weight * row.cross * x;
        information.set(at, last, value);
    }
    information.set(
        last,
        last,
        information.at(last, last) + weight * row.curvature,
    );
}
