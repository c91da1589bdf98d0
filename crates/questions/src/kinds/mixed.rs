//! Linear mixed models: intercepts, and slopes if wanted, that differ between sites around common ones (REML).
//!
//! Site k has coefficients `μ + b_k`; the deviations are independent normal numbers of variance `T_j` for coefficient
//! `j` (Laird & Ware 1982). The fixed point of the rounds is restricted maximum likelihood (Patterson & Thompson 1971).
//! A site's numbers are functions of all its rows, so masks hide them only among many sites.

use serde::{Deserialize, Serialize};

use crate::algebra::{Symmetric, dot};
use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, QuestionInput, complete};
use crate::{
    AgreedColumns, DecodedSum, Estimate, QuestionError, QuestionStopped, SiteRefusal, Step,
    SumLayout,
};

/// Most rounds.
const ROUNDS: usize = 300;
/// A step is short that moves estimates by less than this part of their standard errors.
const SHORT: f64 = 1e-8;
/// The variance of a deviation before the first round, of an outcome and columns scaled to ±1.
const FIRST: f64 = 0.1;
/// The least variance relative to its error; a smaller one is 0.
const LEAST: f64 = 1e-4;
/// Variances change by at most this factor a round.
const FACTOR: f64 = 16.0;
/// A variance relative to its error below which it is moved by steps and not by factors: near 0 a factor hardly changes the
/// likelihood.
const NEAR: f64 = 0.15;
/// The least part of a step that is taken.
const DAMPED: f64 = 1.0 / 64.0;

/// A linear mixed model with a random intercept for each site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mixed {
    /// The outcome, a column of numbers with an agreed range.
    pub outcome: String,
    /// The terms: columns with agreed ranges, and conditions, which are 0 or 1.
    pub terms: Vec<String>,
    /// Those terms whose slopes differ between sites, too.
    #[serde(default)]
    pub slopes: Vec<String>,
}

/// A mixed model between two rounds. The intercept is first everywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixedFitProgress {
    mean: Vec<f64>,
    /// Variance of each coefficient's deviations.
    variances: Vec<f64>,
    residual: f64,
    /// The sum of information of the round before.
    information: Option<Symmetric>,
    /// Of each variance: twice the exponent of its factor, and whether it was too small.
    powers: Vec<(u32, bool)>,
    /// Of each variance: the part of a step that is taken.
    damping: Vec<f64>,
    rounds: usize,
}

/// A common coefficient, with the spread of the sites' own around it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixedCoefficient {
    /// Its term, or "(intercept)": the outcome in the middle of all agreed ranges.
    pub term: String,
    /// The common coefficient.
    pub estimate: Estimate,
    /// The standard deviation of the sites' own coefficients; none where they do not differ by assumption.
    pub deviation: Option<f64>,
}

/// The answer of a mixed model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixedOutcome {
    /// Complete rows.
    pub rows: f64,
    /// Sites with rows.
    pub sites: f64,
    /// The coefficients, the intercept first.
    pub coefficients: Vec<MixedCoefficient>,
    /// Variance of the residuals, in the squared unit of the outcome.
    pub residual: f64,
    /// Rounds.
    pub rounds: usize,
}

impl MixedOutcome {
    /// The terms whose coefficients were allowed to differ between sites and do not: the fit is at the boundary of the
    /// variances, which lme4 calls singular.
    pub fn singular(&self) -> Vec<&str> {
        let none = self
            .coefficients
            .iter()
            .filter(|one| one.deviation == Some(0.0));
        none.map(|one| one.term.as_str()).collect()
    }

    /// The part of the variance that is between sites, of rows in the middle of all agreed ranges.
    pub fn intraclass(&self) -> f64 {
        let deviation = self
            .coefficients
            .first()
            .and_then(|one| one.deviation)
            .unwrap_or_default();
        let between = deviation * deviation;
        between / (between + self.residual)
    }
}

impl Mixed {
    fn width(&self) -> usize {
        self.terms.len() + 1
    }

    /// Returns which coefficients differ between sites.
    fn varying(&self) -> Vec<bool> {
        let slopes = self.terms.iter().map(|term| self.slopes.contains(term));
        [true].into_iter().chain(slopes).collect()
    }
}

impl SumKind for Mixed {
    type Progress = MixedFitProgress;
    type Outcome = MixedOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        if let Some(unknown) = self.slopes.iter().find(|slope| !self.terms.contains(slope)) {
            return Err(QuestionError::Other(format!(
                "`slopes` names \"{unknown}\", which is none of the terms"
            )));
        }
        let mut inputs = agreed.terms(&self.terms)?;
        inputs.push(agreed.scaled(&self.outcome)?);
        Ok(inputs)
    }

    fn gates(&self, _known: &CommonKnowledge) -> Gates {
        Gates {
            coefficients: self.width(),
            ..Gates::default()
        }
    }

    fn start(&self, _known: &CommonKnowledge) -> Result<MixedFitProgress, QuestionStopped> {
        let variances: Vec<f64> = self
            .varying()
            .iter()
            .map(|varies| if *varies { FIRST } else { 0.0 })
            .collect();
        Ok(MixedFitProgress {
            mean: vec![0.0; self.width()],
            powers: vec![(0, false); self.width()],
            damping: vec![1.0; self.width()],
            variances,
            residual: 1.0,
            information: None,
            rounds: 0,
        })
    }

    fn layout(&self, _known: &CommonKnowledge, _progress: &MixedFitProgress) -> SumLayout {
        let p = self.width();
        SumLayout::default()
            .counts("told", 2, "rows, sites with rows")
            .reals("score", p, "derivatives z of the log likelihood")
            .reals("squared score", p, "T·z²")
            .reals("information", Symmetric::triangle_len(p), "W")
            .reals("explained", p, "T·diag(W·S⁻¹·W)")
            .reals(
                "residuals",
                3,
                "squared residuals, effective coefficients, tr(S⁻¹·G·M·Gᵀ)",
            )
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &MixedFitProgress,
    ) -> Result<Vec<f64>, SiteRefusal> {
        let rows = complete(rows);
        if rows.is_empty() {
            return Ok(vec![0.0; self.layout(known, progress).len()]);
        }
        let site = SiteFit::of(&rows, progress)
            .ok_or_else(|| SiteRefusal::Fit("coefficients".to_owned()))?;
        Ok(site.numbers(rows.len(), progress))
    }

    fn step(
        &self,
        known: &CommonKnowledge,
        progress: &MixedFitProgress,
        sum: &DecodedSum,
    ) -> Step<MixedFitProgress, MixedOutcome> {
        match self.next(progress, sum) {
            Err(why) => Step::Stopped(why),
            Ok((next, true)) => Step::Done(self.outcome(known, &next, sum)),
            Ok((next, false)) => Step::Next(next),
        }
    }
}

/// Fit of a site at common estimates.
struct SiteFit {
    score: Vec<f64>,
    /// M = X'X/s².
    curvature: Symmetric,
    /// W = M − M·r·A⁻¹·r·M with A = I + r·M·r, r = √T.
    information: Symmetric,
    residual: f64,
    freedom: f64,
}

impl SiteFit {
    fn of(rows: &[Vec<f64>], progress: &MixedFitProgress) -> Option<Self> {
        let p = progress.mean.len();
        let roots: Vec<f64> = progress.variances.iter().map(|t| t.sqrt()).collect();
        let feature = |row: &Vec<f64>| -> Vec<f64> {
            [1.0]
                .into_iter()
                .chain(row[..p - 1].iter().copied())
                .collect()
        };
        let mut curvature = Symmetric::zeros(p);
        let mut products = vec![0.0; p];
        for row in rows {
            let x = feature(row);
            let residual = (row[p - 1] - dot(&x, &progress.mean)) / progress.residual;
            curvature.add_outer(1.0 / progress.residual, &x);
            products
                .iter_mut()
                .zip(&x)
                .for_each(|(sum, x)| *sum += residual * x);
        }
        let mut inner = Symmetric::zeros(p);
        for row in 0..p {
            for column in row..p {
                let own = if row == column { 1.0 } else { 0.0 };
                inner.set(
                    row,
                    column,
                    own + roots[row] * curvature.at(row, column) * roots[column],
                );
            }
        }
        let inner = inner.inverse()?;
        let mut scaled = Symmetric::zeros(p);
        for row in 0..p {
            for column in row..p {
                scaled.set(
                    row,
                    column,
                    roots[row] * inner.at(row, column) * roots[column],
                );
            }
        }
        let deviation = scaled.times(&products);
        let coefficients: Vec<f64> = progress
            .mean
            .iter()
            .zip(&deviation)
            .map(|(mean, b)| mean + b)
            .collect();
        let (mut score, mut residual) = (vec![0.0; p], 0.0);
        for row in rows {
            let x = feature(row);
            let left = row[p - 1] - dot(&x, &coefficients);
            residual += left * left;
            score
                .iter_mut()
                .zip(&x)
                .for_each(|(sum, x)| *sum += left * x / progress.residual);
        }
        let mut information = curvature.clone();
        information.add(-1.0, &curvature.sandwich(&scaled));
        let freedom = inner.diagonal().iter().map(|entry| 1.0 - entry).sum();
        Some(Self {
            score,
            curvature,
            information,
            residual,
            freedom,
        })
    }

    fn numbers(&self, rows: usize, progress: &MixedFitProgress) -> Vec<f64> {
        let p = self.score.len();
        let variances = &progress.variances;
        let mut numbers = vec![rows as f64, 1.0];
        numbers.extend(&self.score);
        numbers.extend(self.score.iter().zip(variances).map(|(z, t)| t * z * z));
        numbers.extend(self.information.triangle());
        let inverse = progress.information.as_ref().and_then(Symmetric::inverse);
        let through = inverse
            .as_ref()
            .map(|inverse| self.information.sandwich(inverse));
        let explained = |at: usize| {
            through
                .as_ref()
                .map_or(0.0, |through| variances[at] * through.at(at, at))
        };
        numbers.extend((0..p).map(explained));
        // tr(S⁻¹·G·M·Gᵀ) with G = I − W·diag T.
        let left = |row: usize, column: usize| {
            let own = if row == column { 1.0 } else { 0.0 };
            own - self.information.at(row, column) * variances[column]
        };
        let rows_of_left: Vec<Vec<f64>> = (0..p)
            .map(|row| (0..p).map(|column| left(row, column)).collect())
            .collect();
        let trace = inverse.map_or(0.0, |inverse| {
            let pairs = (0..p).flat_map(|row| (0..p).map(move |column| (row, column)));
            let entry = |(row, column): (usize, usize)| {
                inverse.at(row, column)
                    * dot(
                        &rows_of_left[column],
                        &self.curvature.times(&rows_of_left[row]),
                    )
            };
            pairs.map(entry).sum()
        });
        numbers.extend([self.residual, self.freedom, trace]);
        numbers
    }
}

impl Mixed {
    /// The next estimates, and whether the step to them was short.
    fn next(
        &self,
        progress: &MixedFitProgress,
        sum: &DecodedSum,
    ) -> Result<(MixedFitProgress, bool), QuestionStopped> {
        let p = self.width();
        let information = Symmetric::of_triangle(p, sum.block("information"));
        let step = information.solve(sum.block("score"));
        let step = step.ok_or_else(|| {
            QuestionStopped::Collinear(format!("among {}", self.terms.join(", ")))
        })?;
        let &[rows, sites] = sum.block("told") else {
            return Err(QuestionStopped::NoConvergence(0));
        };
        let &[residuals, freedom, trace] = sum.block("residuals") else {
            return Err(QuestionStopped::NoConvergence(0));
        };
        if sites < 2.0 {
            return Err(QuestionStopped::Other(
                "fewer than two sites have rows: nothing can differ between them".to_owned(),
            ));
        }
        let mut next = progress.clone();
        let mut longest = 0.0_f64;
        // Before the first sum there were no terms with its inverse, and where it is of other variances a sum may tell
        // nothing of these.
        let first = progress.information.is_none();
        let mut told = !first;
        let rounding = 2.0 * sites * sum.step("squared score");
        for at in 0..p {
            let step = step[at].clamp(-2.0, 2.0);
            next.mean[at] += step;
            longest = longest.max(step.abs() * information.at(at, at).max(0.0).sqrt());
            let before = progress.variances[at];
            if before <= 0.0 {
                continue;
            }
            let expected = before * information.at(at, at) - sum.block("explained")[at];
            let squares = sum.block("squared score")[at];
            told &= expected > 0.0;
            let ratio = if expected > 0.0 {
                squares / expected
            } else {
                1.0
            };
            let (power, was_above) = progress.powers[at];
            let above = ratio > 1.0;
            let power = match power {
                0 => 2,
                power if above == was_above => (power + 1).min(5),
                power => (power / 2).max(1),
            };
            next.powers[at] = (power, above);
            let error = information.at(at, at) / sites;
            let after = if !first && (squares - expected).abs() <= rounding {
                before
            } else if !first && expected > 0.0 && before * error < NEAR {
                let damping = progress.damping[at];
                let damping = if above == was_above {
                    (1.5 * damping).min(1.0)
                } else {
                    (0.5 * damping).max(DAMPED)
                };
                next.damping[at] = damping;
                before + damping * (ratio - 1.0) / error
            } else {
                let factor = (0..power).fold(1.0, |product, _| product * ratio.max(0.0).sqrt());
                before * factor
            };
            let after = after.clamp(before / FACTOR, before * FACTOR);
            next.variances[at] = if after * error < LEAST { 0.0 } else { after };
            longest = longest
                .max((next.variances[at].sqrt() - before.sqrt()).abs() * error.max(0.0).sqrt());
        }
        let left = rows - freedom - trace;
        told &= left > 0.0;
        let found = if left > 0.0 {
            residuals / left
        } else {
            progress.residual
        };
        if residuals <= 2.0 * sites * sum.step("residuals") || !found.is_finite() {
            return Err(QuestionStopped::Other(
                "the outcome is determined by the terms: there is no residual".to_owned(),
            ));
        }
        next.residual = found.clamp(progress.residual / FACTOR, progress.residual * FACTOR);
        longest = longest.max((next.residual / progress.residual - 1.0).abs());
        next.information = Some(information);
        next.rounds += 1;
        if next.rounds >= ROUNDS {
            return Err(QuestionStopped::NoConvergence(ROUNDS));
        }
        Ok((next, longest < SHORT && told))
    }

    fn outcome(
        &self,
        known: &CommonKnowledge,
        progress: &MixedFitProgress,
        sum: &DecodedSum,
    ) -> MixedOutcome {
        let outcome = &known.inputs[self.terms.len()];
        let unit = outcome.half();
        let information = progress.information.as_ref();
        let inverse = information
            .and_then(Symmetric::inverse)
            .unwrap_or_else(|| Symmetric::zeros(self.width()));
        let coefficient = |at: usize| {
            let half = if at == 0 {
                1.0
            } else {
                known.inputs[at - 1].half()
            };
            let middle = if at == 0 { outcome.middle() } else { 0.0 };
            let value = middle + unit * progress.mean[at] / half;
            let error = unit * inverse.at(at, at).max(0.0).sqrt() / half;
            MixedCoefficient {
                term: if at == 0 {
                    "(intercept)".to_owned()
                } else {
                    self.terms[at - 1].clone()
                },
                estimate: Estimate::normal(value, error),
                deviation: self.varying()[at].then(|| unit * progress.variances[at].sqrt() / half),
            }
        };
        MixedOutcome {
            rows: known.counts.complete,
            sites: sum.block("told")[1],
            coefficients: (0..self.width()).map(coefficient).collect(),
            residual: progress.residual * unit * unit,
            rounds: progress.rounds,
        }
    }
}
