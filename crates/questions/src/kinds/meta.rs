//! Meta-analysis of the sites' own estimates: fixed and random effects.
//!
//! DerSimonian & Laird 1986 for τ², Hartung & Knapp 2001 for the interval; τ² by REML only where every site's vector
//! may be seen, because two of its sums at different τ² reveal the estimates of single sites.

use serde::{Deserialize, Serialize};

use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, QuestionInput, complete};
use crate::{
    AgreedColumns, DecodedSum, Estimate, QuestionError, QuestionStopped, SiteRefusal, Step,
    SumLayout,
};

/// Most rounds of REML.
const ROUNDS: usize = 100;

/// Effect that a site estimates from its own rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SiteEffect {
    /// The mean of a column.
    Mean {
        /// The column, with an agreed range.
        column: String,
    },
    /// The difference between the means of rows where a condition holds, and where it does not.
    Difference {
        /// The column, with an agreed range.
        column: String,
        /// The condition.
        between: String,
    },
    /// The log odds ratio of two conditions; 0.5 is added to all four counts if one is 0.
    LogOddsRatio {
        /// One condition.
        outcome: String,
        /// The other.
        between: String,
    },
    /// An estimate and its variance that a site has already, in the only row of its table.
    Given {
        /// The column of the estimate.
        estimate: String,
        /// The column of its variance.
        variance: String,
    },
}

/// A meta-analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Meta {
    /// Effect that each site estimates.
    pub effect: SiteEffect,
    /// True if τ² is estimated by REML. Only where every site's vector may be seen.
    #[serde(default)]
    pub reml: bool,
}

/// Between the rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetaProgress {
    /// τ² so far.
    between: f64,
    /// Result of the round at τ² = 0.
    first: Option<FirstRound>,
    rounds: usize,
    /// True if the next round is the last.
    last: bool,
}

/// Result of the round at τ² = 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct FirstRound {
    sites: f64,
    mean: f64,
    weights: f64,
    heterogeneity: f64,
    between: f64,
}

/// The answer of a meta-analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetaOutcome {
    /// Sites with an estimate.
    pub sites: f64,
    /// One effect for all sites.
    pub fixed: Estimate,
    /// The mean of effects that differ between sites, with the standard error of DerSimonian and Laird.
    pub random: Estimate,
    /// The same with the standard error of Hartung and Knapp, and Student's t.
    pub hartung_knapp: Estimate,
    /// Variance τ² between sites.
    pub between: f64,
    /// True if τ² is that of REML.
    pub reml: bool,
    /// Cochran's Q.
    pub heterogeneity: f64,
}

impl MetaOutcome {
    /// I², the part of the variation that is between sites.
    pub fn inconsistency(&self) -> f64 {
        ((self.heterogeneity - (self.sites - 1.0)) / self.heterogeneity).max(0.0)
    }

    /// The prediction interval of a new site's effect; none for fewer than three sites.
    pub fn prediction(&self, level: f64) -> Option<[f64; 2]> {
        let error = (self.between + self.random.error * self.random.error).sqrt();
        let freedom = self.sites - 2.0;
        (freedom > 0.0).then(|| {
            Estimate {
                value: self.random.value,
                error,
                freedom: Some(freedom),
            }
            .interval(level)
        })
    }
}

impl Meta {
    /// The site's estimate and its variance; none if its rows do not tell it.
    fn own(&self, rows: &[Vec<f64>]) -> Option<[f64; 2]> {
        match &self.effect {
            SiteEffect::Given { .. } => rows.first().map(|row| [row[0], row[1]]),
            SiteEffect::Mean { .. } => mean(rows.iter().map(|row| row[0])),
            SiteEffect::Difference { .. } => {
                let of =
                    |kind: f64| mean(rows.iter().filter(|row| row[1] == kind).map(|row| row[0]));
                let ([with, first], [without, second]) = (of(1.0)?, of(0.0)?);
                Some([with - without, first + second])
            }
            SiteEffect::LogOddsRatio { .. } => {
                let count = |a: f64, b: f64| {
                    rows.iter().filter(|row| row[0] == a && row[1] == b).count() as f64
                };
                let mut cells = [
                    count(1.0, 1.0),
                    count(0.0, 0.0),
                    count(1.0, 0.0),
                    count(0.0, 1.0),
                ];
                if cells[0] + cells[2] == 0.0
                    || cells[1] + cells[3] == 0.0
                    || cells[0] + cells[3] == 0.0
                    || cells[1] + cells[2] == 0.0
                {
                    return None;
                }
                if cells.contains(&0.0) {
                    cells.iter_mut().for_each(|cell| *cell += 0.5);
                }
                let estimate = libm::log(cells[0] * cells[1] / (cells[2] * cells[3]));
                Some([estimate, cells.iter().map(|cell| 1.0 / cell).sum()])
            }
        }
    }

    fn unit(&self, known: &CommonKnowledge) -> [f64; 2] {
        match self.effect {
            SiteEffect::Mean { .. } => [known.inputs[0].middle(), known.inputs[0].half()],
            SiteEffect::Difference { .. } => [0.0, known.inputs[0].half()],
            SiteEffect::LogOddsRatio { .. } | SiteEffect::Given { .. } => [0.0, 1.0],
        }
    }
}

/// The mean and the variance of the mean; none of fewer than two values, or equal ones.
fn mean(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (squares > 0.0).then(|| [mean, squares / (n - 1.0) / n])
}

impl SumKind for Meta {
    type Progress = MetaProgress;
    type Outcome = MetaOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        let condition = |text: &String| {
            text.parse()
                .map(QuestionInput::Indicator)
                .map_err(QuestionError::Other)
        };
        Ok(match &self.effect {
            SiteEffect::Given { estimate, variance } => {
                let positive = agreed.number(variance);
                let QuestionInput::Number { column, range } = positive else {
                    return Ok(Vec::new());
                };
                vec![
                    agreed.number(estimate),
                    QuestionInput::Number {
                        column,
                        range: [range[0].max(f64::MIN_POSITIVE), range[1]],
                    },
                ]
            }
            SiteEffect::Mean { column } => vec![agreed.scaled(column)?],
            SiteEffect::Difference { column, between } => {
                vec![agreed.scaled(column)?, condition(between)?]
            }
            SiteEffect::LogOddsRatio { outcome, between } => {
                vec![condition(outcome)?, condition(between)?]
            }
        })
    }

    fn gates(&self, _known: &CommonKnowledge) -> Gates {
        Gates::default()
    }

    fn tells(&self, rows: &[Vec<f64>]) -> bool {
        self.own(rows).is_some()
    }

    fn start(&self, _known: &CommonKnowledge) -> Result<MetaProgress, QuestionStopped> {
        Ok(MetaProgress {
            between: 0.0,
            first: None,
            rounds: 0,
            last: false,
        })
    }

    fn layout(&self, _known: &CommonKnowledge, progress: &MetaProgress) -> SumLayout {
        let squares = usize::from(progress.first.is_none() || (self.reml && !progress.last));
        let reml = if self.reml && progress.first.is_some() && !progress.last {
            4
        } else {
            0
        };
        SumLayout::default()
            .counts("told", 1, "sites with an estimate")
            .reals("weights", 1, "Σw, w = 1/(variance + τ²)")
            .reals("weighted", 1, "Σwy")
            .reals("weighted squares", 1, "Σwy²")
            .reals("squared weights", squares, "Σw²")
            .reals("of reml", reml, "Σw²y, Σw²y², Σw³, Σw³y")
            .reals("of reml, squared", usize::from(reml > 0), "Σw³y²")
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &MetaProgress,
    ) -> Result<Vec<f64>, SiteRefusal> {
        let rows = complete(rows);
        if matches!(self.effect, SiteEffect::Given { .. }) && rows.len() > 1 {
            return Err(SiteRefusal::Rows(
                "several estimates; a site gives one".to_owned(),
            ));
        }
        let len = self.layout(known, progress).len();
        let Some([y, variance]) = self.own(&rows) else {
            return Ok(vec![0.0; len]);
        };
        let w = 1.0 / (variance + progress.between);
        let mut numbers = vec![1.0, w, w * y, w * y * y, w * w];
        numbers.extend([
            w * w * y,
            w * w * y * y,
            w * w * w,
            w * w * w * y,
            w * w * w * y * y,
        ]);
        numbers.truncate(len);
        Ok(numbers)
    }

    fn step(
        &self,
        known: &CommonKnowledge,
        progress: &MetaProgress,
        sum: &DecodedSum,
    ) -> Step<MetaProgress, MetaOutcome> {
        let [k, w, wy, wyy, ww] = [
            "told",
            "weights",
            "weighted",
            "weighted squares",
            "squared weights",
        ]
        .map(|name| sum.one(name));
        let Some(first) = &progress.first else {
            if k < 2.0 {
                let why = "fewer than two sites have an estimate: there is nothing to combine";
                return Step::Stopped(QuestionStopped::Other(why.to_owned()));
            }
            let heterogeneity = (wyy - wy * wy / w).max(0.0);
            let between = ((heterogeneity - k + 1.0) / (w - ww / w)).max(0.0);
            let first = FirstRound {
                sites: k,
                mean: wy / w,
                weights: w,
                heterogeneity,
                between,
            };
            return Step::Next(MetaProgress {
                between,
                first: Some(first),
                rounds: 1,
                last: !self.reml,
            });
        };
        if !progress.last {
            return reml(progress, [w, wy, ww], sum);
        }
        let mean = wy / w;
        let knapp = ((wyy - mean * wy) / ((k - 1.0) * w)).max(0.0).sqrt();
        let [middle, half] = self.unit(known);
        let at = |value: f64, error: f64, freedom| Estimate {
            value: middle + half * value,
            error: half * error,
            freedom,
        };
        Step::Done(MetaOutcome {
            sites: k,
            fixed: at(first.mean, (1.0 / first.weights).sqrt(), None),
            random: at(mean, (1.0 / w).sqrt(), None),
            hartung_knapp: at(mean, knapp, Some(k - 1.0)),
            between: progress.between * half * half,
            reml: self.reml,
            heterogeneity: first.heterogeneity,
        })
    }
}

/// A step of REML's τ².
fn reml(
    progress: &MetaProgress,
    [w, wy, ww]: [f64; 3],
    sum: &DecodedSum,
) -> Step<MetaProgress, MetaOutcome> {
    let &[wwy, wwyy, www, wwwy] = sum.block("of reml") else {
        return Step::Stopped(QuestionStopped::Other("a sum of another round".to_owned()));
    };
    let wwwyy = sum.one("of reml, squared");
    let m = wy / w;
    let a = wwyy - 2.0 * m * wwy + m * m * ww;
    let trace = w - ww / w;
    let squared = ww - 2.0 * www / w + (ww / w) * (ww / w);
    let inner = wwy - m * ww;
    let b = wwwyy - 2.0 * m * wwwy + m * m * www - inner * inner / w;
    let observed = b - 0.5 * squared;
    let curvature = if observed > 0.125 * squared {
        observed
    } else {
        0.5 * squared
    };
    let next = (progress.between + 0.5 * (a - trace) / curvature).max(0.0);
    let rounds = progress.rounds + 1;
    if rounds > ROUNDS {
        return Step::Stopped(QuestionStopped::NoConvergence(ROUNDS));
    }
    let last = (next - progress.between).abs() < 1e-10;
    Step::Next(MetaProgress {
        between: next,
        rounds,
        last,
        ..progress.clone()
    })
}
