//! The worth of learning together, before a model is trained: losses of a constant and a linear model in rows that they
//! have not seen, of local ones of each site and of global ones.
//!
//! Every row is in one fold, by a hash of its terms. The outcome is not in it: where terms have few values, all rows alike
//! with one outcome would be in one fold, and a model would have seen those with the other one alone. For each fold the
//! global model is fitted to the rows outside of it at all sites, by Newton's method on sums over rows. Then a site measures
//! its own rows of the fold: with a constant and a model of its own other rows, and with the global ones. Opened are sums
//! over sites of their mean losses, so the interval of the gain is one over sites (Student's t of the sites' differences).
//!
//! The losses are functions of a whole site, which masks hide only among several: see `disclosure`.

mod result;
mod site;

use serde::{Deserialize, Serialize};

pub use result::{BaselinesOutcome, TogetherOrAlone};

use crate::algebra::Symmetric;
use crate::newton::{Moved, Newton, NewtonModel, NewtonSum};
use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, Condition, QuestionInput, complete};
use crate::{
    AgreedColumns, DecodedSum, Estimate, QuestionError, QuestionStopped, SiteRefusal, Step,
    SumLayout,
};
use site::FoldedRows;

/// Fewest and most folds. A site chooses its own penalty by the folds that are left, of which there are two or more.
const FOLDS: [usize; 2] = [3, 10];
/// The longest step of a coefficient, of columns scaled to ±1, at which the fit to all rows is near enough to begin
/// those of the folds.
const NEAR: f64 = 0.5;
/// The longest step at which the fits of the folds are exact enough: the next one would be as much as its square.
const EXACT: f64 = 1e-4;
/// Bits behind the point of losses, which reach to ±4096: a variance of small differences needs more than 30.
const LOSS_BITS: i32 = 40;

/// Losses of a constant and a linear model by folds, of each site alone and of all together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Baselines {
    /// The outcome: a condition such as `num > 0`, whose probability is predicted by logistic regression and measured by
    /// the log loss; or a column with an agreed range, which is predicted by linear regression and measured by the
    /// squared error.
    pub outcome: String,
    /// The terms: columns with agreed ranges, and conditions, which are 0 or 1.
    pub terms: Vec<String>,
    /// Number of folds, 3 to 10.
    #[serde(default = "five")]
    pub folds: usize,
    /// The penalty ½·ridge·β² of the global model's coefficients, of columns scaled to ±1, above 0. A site chooses that of
    /// its local model by folds.
    #[serde(default = "whole")]
    pub ridge: f64,
}

fn five() -> usize {
    5
}
fn whole() -> f64 {
    1.0
}

/// Common knowledge between two rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselinesProgress {
    /// Sites with rows in every fold, whose losses are measured; 0 before they are counted.
    sites: f64,
    /// Fits of the global model: one to all rows, or one for each fold to the rows outside of it.
    fits: Vec<Newton>,
    /// The probability or mean outside of each fold; none before it is known.
    constants: Vec<f64>,
    /// True if the next round opens losses.
    fitted: bool,
}

impl Baselines {
    /// Returns whether the outcome is a condition.
    fn is_condition(&self) -> bool {
        self.outcome.parse::<Condition>().is_ok()
    }

    /// Coefficients of a model, the intercept included.
    fn width(&self) -> usize {
        self.terms.len() + 1
    }

    /// Returns whether the fits are those of the folds.
    fn is_by_folds(&self, progress: &BaselinesProgress) -> bool {
        progress.fits.len() == self.folds
    }

    /// Constants that the next round opens.
    fn constants(&self, progress: &BaselinesProgress) -> usize {
        match self.is_by_folds(progress) && progress.constants.is_empty() {
            true => self.folds,
            false => 0,
        }
    }

    /// The most numbers of a round.
    pub(crate) fn most_in_a_round(&self) -> usize {
        let p = self.width();
        self.folds * (3 + p + Symmetric::triangle_len(p)) + 1
    }

    /// Sites whose losses the next round opens; `None` if it opens none.
    pub(crate) fn measured(progress: &BaselinesProgress) -> Option<f64> {
        progress.fitted.then_some(progress.sites)
    }

    /// The fold of a complete row, from 0. Its last value is the outcome.
    pub(crate) fn fold(&self, row: &[f64]) -> usize {
        let values = row.iter().take(self.terms.len());
        let values = values.copied().map(CellValue::Known);
        let fold = crate::row_hash::part_of(values) * self.folds as f64;
        (fold as usize).min(self.folds - 1)
    }
}

impl SumKind for Baselines {
    type Progress = BaselinesProgress;
    type Outcome = BaselinesOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        let other = |text: String| Err(QuestionError::Other(text));
        if self.terms.is_empty() {
            return other("a model needs `terms`".to_owned());
        }
        if !(FOLDS[0]..=FOLDS[1]).contains(&self.folds) {
            return other(format!(
                "`folds` must be {} to {}, found {}",
                FOLDS[0], FOLDS[1], self.folds
            ));
        }
        if !(self.ridge > 0.0 && self.ridge.is_finite()) {
            return other(format!("`ridge` must be above 0, found {}", self.ridge));
        }
        let mut inputs = agreed.terms(&self.terms)?;
        inputs.push(agreed.term(&self.outcome)?);
        Ok(inputs)
    }

    fn gates(&self, _known: &CommonKnowledge) -> Gates {
        Gates {
            coefficients: self.width(),
            has_events: self.is_condition(),
            ..Gates::default()
        }
    }

    fn is_event(&self, _known: &CommonKnowledge, row: &[f64]) -> bool {
        row[self.terms.len()] == 1.0
    }

    fn start(&self, _known: &CommonKnowledge) -> Result<BaselinesProgress, QuestionStopped> {
        // The first step of a linear regression is the whole fit.
        let fits = match self.is_condition() {
            true => 1,
            false => self.folds,
        };
        Ok(BaselinesProgress {
            sites: 0.0,
            fits: vec![Newton::start(vec![0.0; self.width()]); fits],
            constants: Vec::new(),
            fitted: false,
        })
    }

    fn layout(&self, _known: &CommonKnowledge, progress: &BaselinesProgress) -> SumLayout {
        if progress.fitted {
            return SumLayout::default()
                .counts(
                    "gaining",
                    1,
                    "sites where the global model loses less than their local one",
                )
                .steps(
                    "losses",
                    4,
                    "mean losses of the local constant and model, and of the global ones",
                    LOSS_BITS,
                )
                .steps(
                    "squared gains",
                    1,
                    "squared difference between the losses of the two models",
                    LOSS_BITS,
                );
        }
        let (p, fits) = (self.width(), progress.fits.len());
        let constants = self.constants(progress);
        let layout = SumLayout::default()
            .counts(
                "told",
                usize::from(progress.sites == 0.0),
                "sites with rows in every fold",
            )
            .counts("rows", constants, "rows outside of each fold");
        let layout = match self.is_condition() {
            true => layout.counts("outcomes", constants, "those in which the outcome holds"),
            false => layout.reals("outcomes", constants, "sum of outcomes scaled to ±1"),
        };
        layout
            .reals("log likelihood", fits, "")
            .reals(
                "score",
                fits * p,
                "derivatives of the log likelihood, of columns scaled to ±1",
            )
            .reals(
                "information",
                fits * Symmetric::triangle_len(p),
                "negative second derivatives",
            )
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &BaselinesProgress,
    ) -> Result<Vec<f64>, SiteRefusal> {
        let rows = FoldedRows::of(self, &complete(rows));
        if progress.fitted {
            let fits = progress.fits.iter().map(|fit| &*fit.at).collect::<Vec<_>>();
            let losses = rows.losses(&progress.constants, &fits)?;
            let Some([local_constant, local, global_constant, global]) = losses else {
                return Ok(vec![0.0; self.layout(known, progress).len()]);
            };
            let gain = local - global;
            return Ok(vec![
                f64::from(u8::from(gain > 0.0)),
                local_constant,
                local,
                global_constant,
                global,
                gain * gain,
            ]);
        }
        let mut numbers = Vec::new();
        if progress.sites == 0.0 {
            numbers.push(f64::from(u8::from(rows.has_every_fold())));
        }
        let outside: Vec<[f64; 2]> = (0..self.constants(progress))
            .map(|fold| rows.outcomes_outside(fold))
            .collect();
        numbers.extend(outside.iter().map(|[rows, _]| rows));
        numbers.extend(outside.iter().map(|[_, outcomes]| outcomes));
        let by_folds = self.is_by_folds(progress);
        let fits = progress.fits.iter().enumerate();
        let sums: Vec<_> = fits
            .map(|(fold, fit)| rows.sums(&fit.at, by_folds.then_some(fold)))
            .collect();
        numbers.extend(sums.iter().map(|sum| sum.log_likelihood));
        numbers.extend(sums.iter().flat_map(|sum| &sum.score));
        numbers.extend(sums.iter().flat_map(|sum| sum.information.triangle()));
        Ok(numbers)
    }

    fn step(
        &self,
        known: &CommonKnowledge,
        progress: &BaselinesProgress,
        sum: &DecodedSum,
    ) -> Step<BaselinesProgress, BaselinesOutcome> {
        if progress.fitted {
            return Step::Done(self.measured_losses(known, progress, sum));
        }
        match self.fitted(known, progress, sum) {
            Ok(next) => Step::Next(next),
            Err(why) => Step::Stopped(why),
        }
    }
}

impl Baselines {
    /// Returns what follows from a round of the fits.
    fn fitted(
        &self,
        known: &CommonKnowledge,
        progress: &BaselinesProgress,
        sum: &DecodedSum,
    ) -> Result<BaselinesProgress, QuestionStopped> {
        let mut next = progress.clone();
        if progress.sites == 0.0 {
            next.sites = sum.one("told");
            if next.sites < 2.0 {
                return Err(QuestionStopped::TooFew {
                    what: "sites with rows in every fold".to_owned(),
                    found: next.sites.to_string(),
                    needed: 2,
                    remedy: "ask more sites, or with fewer `folds`".to_owned(),
                });
            }
        }
        let by_folds = self.is_by_folds(progress);
        let longest = self.advance(known, &mut next.fits, sum)?;
        let outside = sum.block("rows").iter().zip(sum.block("outcomes"));
        next.constants
            .extend(outside.map(|(rows, outcomes)| match self.is_condition() {
                true => (outcomes + 0.5) / (rows + 1.0),
                false => outcomes / rows,
            }));
        if by_folds {
            next.fitted = !self.is_condition() || longest < EXACT;
        } else if longest < NEAR {
            let near = Newton::start(next.fits[0].at.clone());
            next.fits = vec![near; self.folds];
        }
        Ok(next)
    }

    /// Takes a step of every fit, and returns the longest one of a coefficient.
    fn advance(
        &self,
        known: &CommonKnowledge,
        fits: &mut [Newton],
        sum: &DecodedSum,
    ) -> Result<f64, QuestionStopped> {
        let p = self.width();
        let intercept = ["(intercept)".to_owned()].into_iter();
        let names: Vec<String> = intercept.chain(self.terms.iter().cloned()).collect();
        let mut ridge = vec![self.ridge; p];
        ridge[0] = 0.0;
        let model = NewtonModel {
            names: &names,
            ridge: &ridge,
            sites: known.counts.sites,
            curved: false,
        };
        let scores = sum.block("score").chunks(p);
        let information = sum.block("information").chunks(Symmetric::triangle_len(p));
        let sums = sum.block("log likelihood").iter().zip(scores);
        let mut longest = 0.0_f64;
        for (fit, ((log_likelihood, score), information)) in
            fits.iter_mut().zip(sums.zip(information))
        {
            let sums = NewtonSum {
                log_likelihood: *log_likelihood,
                score,
                information,
            };
            *fit = match fit.advance(&model, &sums)? {
                Moved::On(newton) => {
                    longest = longest.max(newton.longest_step());
                    newton
                }
                Moved::Converged(found) => Newton::end(&found),
            };
        }
        Ok(longest)
    }

    /// The answer, in the unit of the outcome.
    fn measured_losses(
        &self,
        known: &CommonKnowledge,
        progress: &BaselinesProgress,
        sum: &DecodedSum,
    ) -> BaselinesOutcome {
        let half = known.inputs[self.terms.len()].half();
        let unit = if self.is_condition() {
            1.0
        } else {
            half * half
        };
        let sites = progress.sites;
        let losses = sum.block("losses");
        let mean = |at: usize| losses.get(at).copied().unwrap_or_default() / sites;
        let gain = mean(1) - mean(3);
        let squares = sum.one("squared gains") - sites * gain * gain;
        let variance = (squares / (sites - 1.0)).max(0.0);
        BaselinesOutcome {
            outcome: self.outcome.clone(),
            is_probability: self.is_condition(),
            rows: known.counts.complete,
            sites,
            folds: self.folds,
            local_constant: unit * mean(0),
            local_model: unit * mean(1),
            global_constant: unit * mean(2),
            global_model: unit * mean(3),
            gain: Estimate {
                value: unit * gain,
                error: unit * (variance / sites).sqrt(),
                freedom: Some(sites - 1.0),
            },
            gaining: sum.one("gaining"),
        }
    }
}
