//! The answer of a Cox regression, in the units of the columns.

use serde::{Deserialize, Serialize};

use super::Cox;
use crate::algebra::Symmetric;
use crate::newton::NewtonFit;
use crate::sums::CommonKnowledge;
use crate::{DecodedSum, Estimate};

/// One log hazard ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoxCoefficient {
    /// Its term.
    pub term: String,
    /// The log hazard ratio per unit of its column.
    pub value: f64,
    /// With the standard error of the model; none with a ridge.
    pub estimate: Option<Estimate>,
    /// With a robust error.
    pub robust: Option<Estimate>,
    /// χ² of the test that the hazard ratio does not change with time, one degree of freedom.
    pub hazards: Option<f64>,
}

/// The test of proportional hazards of all terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HazardsTest {
    /// χ².
    pub statistic: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

/// The baseline hazard up to a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselinePoint {
    /// The time.
    pub time: f64,
    /// The cumulative hazard of a row whose terms are 0, averaged over sites by their rows.
    pub hazard: f64,
}

/// The answer of a Cox regression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoxOutcome {
    /// Complete rows.
    pub rows: f64,
    /// Events.
    pub events: f64,
    /// Partial log likelihood.
    pub log_likelihood: f64,
    /// The log hazard ratios.
    pub coefficients: Vec<CoxCoefficient>,
    /// Covariance of the coefficients, upper triangle; empty with a ridge.
    pub covariance: Vec<f64>,
    /// The test of proportional hazards.
    pub hazards: Option<HazardsTest>,
    /// Concordant, discordant and tied pairs within sites.
    pub pairs: Option<[f64; 3]>,
    /// The baseline hazard; empty if it was not asked for.
    pub baseline: Vec<BaselinePoint>,
    /// Rounds of the fit.
    pub rounds: usize,
}

impl CoxOutcome {
    /// The concordance C = (concordant + tied / 2) / pairs.
    pub fn concordance(&self) -> Option<f64> {
        let [concordant, discordant, tied] = self.pairs?;
        let all = concordant + discordant + tied;
        (all > 0.0).then(|| (concordant + 0.5 * tied) / all)
    }

    pub(super) fn of(
        cox: &Cox,
        known: &CommonKnowledge,
        fit: &NewtonFit,
        more: Option<&DecodedSum>,
    ) -> Self {
        let p = cox.terms.len();
        let block = |name: &str| more.map_or(&[][..], |sum| sum.block(name));
        let halves: Vec<f64> = known.inputs[..p].iter().map(|input| input.half()).collect();
        let robust = (cox.robust && more.is_some()).then(|| {
            fit.inverse
                .sandwich(&Symmetric::of_triangle(p, block("meat")))
        });
        let (each, hazards) = tests(fit, p, block);
        let has_errors = cox.ridge == 0.0;
        let coefficients = (0..p).map(|at| {
            let value = fit.at[at] / halves[at];
            let with = |variance: &Symmetric| {
                Estimate::normal(value, variance.at(at, at).max(0.0).sqrt() / halves[at])
            };
            CoxCoefficient {
                term: cox.terms[at].clone(),
                value,
                estimate: has_errors.then(|| with(&fit.inverse)),
                robust: robust.as_ref().map(with),
                hazards: each.get(at).copied(),
            }
        });
        let coefficients = coefficients.collect();
        let mut covariance = Symmetric::zeros(p);
        for row in 0..p {
            for column in row..p {
                covariance.set(
                    row,
                    column,
                    fit.inverse.at(row, column) / (halves[row] * halves[column]),
                );
            }
        }
        let pairs = <[f64; 3]>::try_from(block("pairs")).ok();
        let points = block("cumulative hazard")
            .iter()
            .enumerate()
            .map(|(cell, sum)| BaselinePoint {
                time: cox.baseline.map_or(0.0, |grid| grid.time(cell + 1)),
                hazard: sum / known.counts.complete,
            });
        Self {
            rows: known.counts.complete,
            events: known.counts.events.unwrap_or_default(),
            log_likelihood: fit.log_likelihood,
            coefficients,
            covariance: if has_errors {
                covariance.triangle()
            } else {
                Vec::new()
            },
            hazards,
            pairs,
            baseline: points.collect(),
            rounds: fit.rounds,
        }
    }
}

/// χ² of each term and of all.
fn tests<'a>(
    fit: &NewtonFit,
    p: usize,
    block: impl Fn(&str) -> &'a [f64],
) -> (Vec<f64>, Option<HazardsTest>) {
    let score = block("score by time");
    if score.is_empty() {
        return (Vec::new(), None);
    }
    let first = Symmetric::of_triangle(p, block("information by time"));
    let mut left = Symmetric::of_triangle(p, block("information by squared time"));
    // I₂₂ − I₂₁·I₁₁⁻¹·I₁₂, symmetric.
    let through = first.sandwich(&fit.inverse);
    left.add(-1.0, &through);
    let each = (0..p)
        .map(|at| score[at] * score[at] / left.at(at, at))
        .collect();
    let all = left.inverse_form(score).map(|statistic| HazardsTest {
        statistic,
        freedom: p as f64,
    });
    (each, all)
}
