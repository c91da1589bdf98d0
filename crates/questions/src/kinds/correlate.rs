//! Covariances, correlations and principal components of complete rows.

use serde::{Deserialize, Serialize};

use crate::algebra::Symmetric;
use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, QuestionInput, complete};
use crate::{
    AgreedColumns, DecodedSum, QuestionError, QuestionStopped, SiteRefusal, Step, SumLayout,
};

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

    fn layout(&self, _known: &CommonKnowledge, progress: &CorrelateProgress) -> SumLayout {
        let p = self.columns.len();
        let layout = SumLayout::default().reals(
            "sum",
            p,
            "sum of values scaled to ±1, less the opened mean",
        );
        let products = if progress.means.is_some() {
            Symmetric::triangle_len(p)
        } else {
            0
        };
        layout.reals("products", products, "sums of products of the same")
    }

    fn answer(
        &self,
        _known: &CommonKnowledge,
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
            let means = Some(first.iter().map(|sum| sum / n).collect());
            return Step::Next(CorrelateProgress { means });
        };
        let mut covariance = Symmetric::of_triangle(p, sum.block("products"));
        covariance.add_outer(-1.0 / n, first);
        let limit = 1e-8 * known.counts.sites;
        if let Some(constant) = (0..p).find(|at| covariance.at(*at, *at) <= limit) {
            let why = format!(
                "column \"{}\" has one value in all rows, and correlates with nothing: leave it out",
                self.columns[constant]
            );
            return Step::Stopped(QuestionStopped::Other(why));
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
        let components =
            correlation
                .eigen()
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
        let inputs = known.inputs.iter().zip(means.iter().zip(first));
        Step::Done(CorrelateOutcome {
            columns: self.columns.clone(),
            rows: n,
            means: inputs
                .map(|(input, (mean, rest))| input.middle() + input.half() * (mean + rest / n))
                .collect(),
            covariance: in_units.triangle(),
            correlation: correlation.triangle(),
            components: components.collect(),
        })
    }
}
