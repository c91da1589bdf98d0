//! Covariances, correlations and principal components of complete rows.
//!
//! With noise the last round opens products of values less the opened means, which have noise themselves: as all know them,
//! all know how large the products of one row can be.

use serde::{Deserialize, Serialize};

use crate::algebra::{Symmetric, dot};
use crate::noise::more_rows;
use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, QuestionInput, complete};
use crate::{
    AgreedColumns, DecodedSum, QuestionError, QuestionStopped, SiteRefusal, Step, SumLayout,
};

/// Counts and variances that are fewer standard deviations of their noise are not divided by.
const CLEAR_OF_NOISE: f64 = 10.0;

/// Correlations and principal components.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Correlate {
    /// Columns with agreed ranges, and conditions, which are 0 or 1.
    pub columns: Vec<String>,
}

/// Between the rounds: the means, once they are known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CorrelateProgress {
    means: Option<Vec<f64>>,
}

/// One principal component of the standardised columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PrincipalComponent {
    /// Its variance.
    pub variance: f64,
    /// The weight of every column; the largest in absolute value is positive.
    pub weights: Vec<f64>,
}

/// Standard deviations of the noise in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CorrelateNoise {
    /// In the means, in the columns' units.
    pub means: Vec<f64>,
    /// In the standard deviations, in the columns' units.
    pub deviations: Vec<f64>,
    /// In the correlations, upper triangle row by row.
    pub correlation: Vec<f64>,
}

/// The correlations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CorrelateOutcome {
    /// The columns.
    pub columns: Vec<String>,
    /// Complete rows.
    pub rows: f64,
    /// Means, in the columns' units.
    pub means: Vec<f64>,
    /// Covariances, upper triangle row by row, in the columns' units.
    pub covariance: Vec<f64>,
    /// Correlations, upper triangle row by row.
    pub correlation: Vec<f64>,
    /// Principal components of the correlations, the largest variance first.
    pub components: Vec<PrincipalComponent>,
    /// The noise in it, where sites add some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<CorrelateNoise>,
}

impl Correlate {
    /// The largest absolute values less these means.
    fn reach(known: &CommonKnowledge, means: Option<&Vec<f64>>) -> Vec<f64> {
        let inputs = known.inputs.iter().enumerate();
        let reach = inputs.map(|(at, input)| {
            let mean = means.map_or(0.0, |means| means[at]);
            let [low, high] = input.bounds();
            (high - mean).max(mean - low)
        });
        reach.collect()
    }

    /// The means that all go on with. Noise may have moved one beyond its column.
    fn means(&self, known: &CommonKnowledge, first: &[f64]) -> Result<Vec<f64>, QuestionStopped> {
        let n = known.counts.complete;
        let needed = CLEAR_OF_NOISE * known.deviation_of_counts(&self.gates(known));
        if known.noise.is_none() {
            return Ok(first.iter().map(|sum| sum / n).collect());
        }
        if n < needed {
            let remedy = "a wider filter, or a smaller `noise-multiplier`";
            return Err(QuestionStopped::Other(format!(
                "not determined under this noise: there are too few complete rows to divide by. {}",
                more_rows(1.0, (needed, 1.0), remedy)
            )));
        }
        let inputs = known.inputs.iter().zip(first);
        let means = inputs.map(|(input, sum)| {
            let [low, high] = input.bounds();
            (sum / n).clamp(low, high)
        });
        Ok(means.collect())
    }

    /// Checks that every column varies by more than the noise in its squares.
    fn varies(
        &self,
        known: &CommonKnowledge,
        covariance: &Symmetric,
        deviation: f64,
    ) -> Result<(), QuestionStopped> {
        let limit = 1e-8 * known.counts.sites;
        let needed = (CLEAR_OF_NOISE * deviation).max(limit);
        let diagonal = covariance.diagonal();
        let Some(constant) = diagonal.iter().position(|entry| *entry <= needed) else {
            return Ok(());
        };
        let column = &self.columns[constant];
        if known.noise.is_none() {
            return Err(QuestionStopped::Other(format!(
                "column \"{column}\" has one value in all rows, and correlates with nothing: leave it out"
            )));
        }
        let found = diagonal[constant].max(deviation);
        let remedy = "a narrower agreed range, fewer columns, or a smaller `noise-multiplier`";
        Err(QuestionStopped::Other(format!(
            "not determined under this noise: its standard deviation of {deviation:.1} hides the squares of column \
             \"{column}\". {}",
            more_rows(known.counts.complete, (needed, found), remedy)
        )))
    }
}

/// The noise in correlations whose products have noise of this standard deviation, by the delta method.
fn noise_of(covariance: &Symmetric, correlation: &Symmetric, deviation: f64) -> Vec<f64> {
    let width = covariance.width();
    let mut noise = Vec::with_capacity(Symmetric::triangle_len(width));
    for row in 0..width {
        noise.push(0.0);
        for column in row + 1..width {
            let (left, right) = (covariance.at(row, row), covariance.at(column, column));
            let r = correlation.at(row, column);
            let by_scales = r * r / 4.0 * (1.0 / (left * left) + 1.0 / (right * right));
            noise.push(deviation * (1.0 / (left * right) + by_scales).sqrt());
        }
    }
    noise
}

impl SumKind for Correlate {
    type Progress = CorrelateProgress;
    type Outcome = CorrelateOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        if self.columns.len() < 2 {
            return Err(QuestionError::Other(
                "name two `columns` or more to correlate".to_owned(),
            ));
        }
        agreed.terms(&self.columns)
    }

    fn gates(&self, _known: &CommonKnowledge) -> Gates {
        Gates {
            coefficients: self.columns.len(),
            ..Gates::default()
        }
    }

    fn start(&self, _known: &CommonKnowledge) -> Result<CorrelateProgress, QuestionStopped> {
        Ok(CorrelateProgress { means: None })
    }

    fn layout(&self, known: &CommonKnowledge, progress: &CorrelateProgress) -> SumLayout {
        let p = self.columns.len();
        let (sum, products) = match (&progress.means, known.noise) {
            (None, _) => (p, 0),
            (Some(_), None) => (p, Symmetric::triangle_len(p)),
            // The sum is 0 but for noise.
            (Some(_), Some(_)) => (0, Symmetric::triangle_len(p)),
        };
        SumLayout::default()
            .reals(
                "sum",
                sum,
                "sum of values scaled to ±1, less the opened mean",
            )
            .reals(
                "products",
                products,
                "sums of products of values scaled to ±1, less the opened means",
            )
    }

    fn row_norm(&self, known: &CommonKnowledge, progress: &CorrelateProgress) -> Option<f64> {
        let reach = Self::reach(known, progress.means.as_ref());
        let squares: Vec<f64> = reach.iter().map(|most| most * most).collect();
        let total: f64 = squares.iter().sum();
        Some(match progress.means {
            None => total.sqrt(),
            // Every product grows with the absolute values of both, so it is largest where all are.
            Some(_) => (0.5 * (total * total + dot(&squares, &squares))).sqrt(),
        })
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &CorrelateProgress,
    ) -> Result<Vec<f64>, SiteRefusal> {
        let p = self.columns.len();
        let mut sum = vec![0.0; p];
        let mut products = Symmetric::zeros(p);
        for row in complete(rows) {
            let means = progress
                .means
                .iter()
                .flatten()
                .copied()
                .chain(std::iter::repeat(0.0));
            let z: Vec<f64> = row.iter().zip(means).map(|(u, mean)| u - mean).collect();
            sum.iter_mut().zip(&z).for_each(|(sum, z)| *sum += z);
            products.add_outer(1.0, &z);
        }
        if progress.means.is_some() {
            if known.noise.is_some() {
                sum.clear();
            }
            sum.extend(products.triangle());
        }
        Ok(sum)
    }

    fn step(
        &self,
        known: &CommonKnowledge,
        progress: &CorrelateProgress,
        sum: &DecodedSum,
    ) -> Step<CorrelateProgress, CorrelateOutcome> {
        let n = known.counts.complete;
        let p = self.columns.len();
        let first = sum.block("sum");
        let Some(means) = &progress.means else {
            return match self.means(known, first) {
                Ok(means) => Step::Next(CorrelateProgress { means: Some(means) }),
                Err(why) => Step::Stopped(why),
            };
        };
        let norm = self.row_norm(known, progress).unwrap_or_default();
        let deviation = known.deviation(norm, sum.numbers.len());
        // With noise the values are less means that are off by as much.
        let rest = if known.noise.is_some() {
            vec![0.0; p]
        } else {
            first.to_vec()
        };
        let mut covariance = Symmetric::of_triangle(p, sum.block("products"));
        covariance.add_outer(-1.0 / n, &rest);
        if let Err(why) = self.varies(known, &covariance, deviation) {
            return Step::Stopped(why);
        }
        let roots: Vec<f64> = covariance
            .diagonal()
            .iter()
            .map(|entry| entry.sqrt())
            .collect();
        let halves: Vec<f64> = known.inputs.iter().map(QuestionInput::half).collect();
        let mut correlation = Symmetric::zeros(p);
        let mut in_units = Symmetric::zeros(p);
        for row in 0..p {
            for column in row..p {
                let entry = covariance.at(row, column);
                let scaled = if row == column {
                    1.0
                } else {
                    entry / (roots[row] * roots[column])
                };
                correlation.set(row, column, scaled);
                in_units.set(
                    row,
                    column,
                    entry / (n - 1.0) * halves[row] * halves[column],
                );
            }
        }
        let eigen = correlation.eigen();
        if known.noise.is_some() && eigen.least() <= 0.0 {
            return Step::Stopped(QuestionStopped::Other(
                "no table of correlations under this noise: some columns nearly determine each other, and with the noise \
                 the matrix is not positive definite. Leave one of them out, or ask more sites"
                    .to_owned(),
            ));
        }
        let components = eigen
            .pairs
            .into_iter()
            .rev()
            .map(|(variance, mut weights)| {
                let largest = weights.iter().copied().fold(0.0, |most: f64, w| {
                    if w.abs() > most.abs() + 1e-9 { w } else { most }
                });
                if largest < 0.0 {
                    weights.iter_mut().for_each(|weight| *weight = -*weight);
                }
                PrincipalComponent { variance, weights }
            });
        let inputs = known.inputs.iter().zip(means.iter().zip(&rest));
        let noise = known.noise.map(|_| {
            let first = Self::reach(known, None);
            let of_sums = known.deviation(dot(&first, &first).sqrt(), p);
            // The divisor has noise, too.
            let of_rows = known.deviation_of_counts(&self.gates(known)) / n;
            let of_mean = |(half, mean): (&f64, &f64)| {
                half * (of_sums / n * (of_sums / n) + of_rows * mean * of_rows * mean).sqrt()
            };
            let of_deviation = |(half, root): (&f64, &f64)| {
                let relative = 0.5 * deviation / (root * root);
                let squares = relative * relative + 0.25 * of_rows * of_rows;
                half * root / (n - 1.0).sqrt() * squares.sqrt()
            };
            CorrelateNoise {
                means: halves.iter().zip(means).map(of_mean).collect(),
                deviations: halves.iter().zip(&roots).map(of_deviation).collect(),
                correlation: noise_of(&covariance, &correlation, deviation),
            }
        });
        Step::Done(CorrelateOutcome {
            columns: self.columns.clone(),
            rows: n,
            means: inputs
                .map(|(input, (mean, rest))| input.middle() + input.half() * (mean + rest / n))
                .collect(),
            covariance: in_units.triangle(),
            correlation: correlation.triangle(),
            components: components.collect(),
            noise,
        })
    }
}
