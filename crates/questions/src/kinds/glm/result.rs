//! The answer of a generalised linear model, in the units of the columns.

use serde::{Deserialize, Serialize};

use super::{Glm, GlmFamily, GlmProgress, ModelProgress};
use crate::algebra::Symmetric;
use crate::sums::CommonKnowledge;
use crate::{DecodedSum, Estimate};

/// One coefficient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// Its term.
    pub term: String,
    /// The coefficient per unit of its column.
    pub value: f64,
    /// With the standard error of the model; none with a ridge.
    pub estimate: Option<Estimate>,
    /// With an error that holds under heteroscedasticity.
    pub robust: Option<Estimate>,
    /// With an error that holds if rows of a site depend on each other.
    pub clustered: Option<Estimate>,
    /// The part of the variance that is noise, where sites add some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_share: Option<f64>,
}

/// The intercept that all sites have in common, which an answer with noise has beside its coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CommonIntercept {
    /// The linear predictor in the middle of all agreed ranges, where no condition holds.
    pub estimate: Estimate,
    /// The part of its variance that is noise.
    pub noise_share: f64,
    /// Standard deviation of the noise in each number of the last sum.
    pub deviation: f64,
}

/// The comparison with a smaller model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LikelihoodRatio {
    /// The terms that the smaller model lacks.
    pub without: Vec<String>,
    /// Twice the difference of log likelihoods; for the gaussian family F times its numerator's degrees of freedom.
    pub statistic: f64,
    /// Degrees of freedom.
    pub freedom: f64,
    /// Degrees of freedom of F's denominator, for the gaussian family.
    pub denominator: Option<f64>,
}

impl LikelihoodRatio {
    /// The p-value by χ², or by F for the gaussian family.
    pub fn p(&self) -> f64 {
        match self.denominator {
            None => crate::special::chi_squared_above(self.statistic, self.freedom),
            Some(denominator) => {
                crate::special::f_above(self.statistic / self.freedom, self.freedom, denominator)
            }
        }
    }
}

/// The answer of a generalised linear model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GlmOutcome {
    /// The family.
    pub family: GlmFamily,
    /// Complete rows.
    pub rows: f64,
    /// Rows at sites that tell of the coefficients.
    pub rows_told: f64,
    /// Sites that tell of the coefficients: with one class only, or no events, a site tells nothing.
    pub sites_told: f64,
    /// The coefficients.
    pub coefficients: Vec<Coefficient>,
    /// Covariance of the coefficients, upper triangle; empty with a ridge.
    pub covariance: Vec<f64>,
    /// Log likelihood; none for the gaussian and gamma families.
    pub log_likelihood: Option<f64>,
    /// σ² in the squared unit of the outcome, or the gamma family's dispersion.
    pub dispersion: Option<f64>,
    /// log θ of the negative binomial family.
    pub log_theta: Option<f64>,
    /// Rounds of the fit.
    pub rounds: usize,
    /// The comparison with a smaller model.
    pub likelihood_ratio: Option<LikelihoodRatio>,
    /// With noise, the intercept of all sites; without, each site has its own, which stays there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common: Option<CommonIntercept>,
}

impl GlmOutcome {
    pub(super) fn of(
        glm: &Glm,
        known: &CommonKnowledge,
        progress: &GlmProgress,
        more: Option<&DecodedSum>,
    ) -> Self {
        let model = &progress.models[0];
        let fit = model
            .fit
            .as_ref()
            .expect("the question ends after its fits");
        let p = model.terms.len();
        let [rows_told, sites_told] = model.told;
        let outcome = &known.inputs[glm.terms.len()];
        let unit = outcome.half();
        let freedom = rows_told - sites_told - p as f64;
        let scaled_dispersion = match glm.family {
            GlmFamily::Gaussian => Some(-2.0 * fit.log_likelihood / freedom),
            GlmFamily::Gamma => more.map(|sum| sum.one("squared residuals") / freedom),
            GlmFamily::Binomial | GlmFamily::Poisson | GlmFamily::NegativeBinomial => None,
        };
        let student = scaled_dispersion.map(|_| freedom);
        let slopes: Vec<usize> = (0..p).collect();
        let to_column: Vec<f64> = model
            .terms
            .iter()
            .map(|at| unit / known.inputs[*at].half())
            .collect();
        let mut covariance = Symmetric::zeros(p);
        covariance.add(scaled_dispersion.unwrap_or(1.0), &fit.inverse.part(&slopes));
        let sandwich = |block: &str, factor: f64| {
            let triangle = more?.block(block);
            let meat =
                (!triangle.is_empty()).then(|| Symmetric::of_triangle(fit.at.len(), triangle))?;
            let mut variance = Symmetric::zeros(p);
            variance.add(factor, &fit.inverse.sandwich(&meat).part(&slopes));
            Some(variance)
        };
        let sites = sites_told / (sites_told - 1.0);
        let (robust, clustered) = (
            sandwich("meat of rows", 1.0),
            sandwich("meat of sites", sites),
        );
        let coefficients = slopes.iter().map(|&at| {
            let value = fit.at[at] * to_column[at];
            let with = |variance: &Symmetric| Estimate {
                value,
                error: variance.at(at, at).max(0.0).sqrt() * to_column[at],
                freedom: student,
            };
            Coefficient {
                term: glm.terms[model.terms[at]].clone(),
                value,
                estimate: (glm.ridge == 0.0).then(|| with(&covariance)),
                robust: robust.as_ref().map(with),
                clustered: clustered.as_ref().map(with),
                noise_share: None,
            }
        });
        let coefficients = coefficients.collect();
        let mut in_units = Symmetric::zeros(p);
        for row in 0..p {
            for column in row..p {
                in_units.set(
                    row,
                    column,
                    covariance.at(row, column) * to_column[row] * to_column[column],
                );
            }
        }
        let has_likelihood = !matches!(glm.family, GlmFamily::Gaussian | GlmFamily::Gamma);
        Self {
            family: glm.family,
            rows: known.counts.complete,
            rows_told,
            sites_told,
            coefficients,
            covariance: if glm.ridge == 0.0 {
                in_units.triangle()
            } else {
                Vec::new()
            },
            log_likelihood: has_likelihood.then_some(fit.log_likelihood),
            dispersion: scaled_dispersion.map(|dispersion| dispersion * unit * unit),
            log_theta: fit.at.last().copied().filter(|_| model.dispersed),
            rounds: fit.rounds,
            likelihood_ratio: progress
                .models
                .get(1)
                .map(|smaller| ratio(glm, model, smaller, freedom)),
            common: None,
        }
    }
}

fn ratio(
    glm: &Glm,
    model: &ModelProgress,
    smaller: &ModelProgress,
    freedom: f64,
) -> LikelihoodRatio {
    let log_likelihood =
        |model: &ModelProgress| model.fit.as_ref().map_or(0.0, |fit| fit.log_likelihood);
    let (whole, part) = (log_likelihood(model), log_likelihood(smaller));
    let by_f = glm.family == GlmFamily::Gaussian;
    LikelihoodRatio {
        without: glm.without.clone(),
        statistic: if by_f {
            (part - whole) / (whole / freedom)
        } else {
            2.0 * (whole - part)
        },
        freedom: (model.terms.len() - smaller.terms.len()) as f64,
        denominator: by_f.then_some(freedom),
    }
}
