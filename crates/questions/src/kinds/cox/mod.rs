//! Proportional hazards (Cox 1972), stratified by site: every site has a baseline hazard of its own.
//!
//! Ties by Breslow or Efron; entry times (left truncation); robust errors (Lin & Wei 1989); the test of
//! proportional hazards by scaled Schoenfeld residuals (Grambsch & Therneau 1994); concordance within sites.

mod result;
mod site;

use serde::{Deserialize, Serialize};

pub use result::{BaselinePoint, CoxCoefficient, CoxOutcome, HazardsTest};

use super::TimeGrid;
use crate::algebra::Symmetric;
use crate::newton::{Moved, Newton, NewtonFit, NewtonModel, NewtonSum};
use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, QuestionInput, complete};
use crate::{
    AgreedColumns, DecodedSum, QuestionError, QuestionStopped, SiteRefusal, Step, SumLayout,
};
use site::{Life, Lives};

/// Handling of events at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// Efron's approximation.
    #[default]
    Efron,
    /// Breslow's approximation.
    Breslow,
}

/// The function of time of the test of proportional hazards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HazardsTime {
    /// The time itself.
    Identity,
    /// Its logarithm; all event times must be above 0.
    Log,
    /// The logarithm of 1 + time; all event times must be above −1.
    LogPlusOne,
}

/// A Cox regression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Cox {
    /// The column of the times.
    pub time: String,
    /// The event: a column of 0 and 1, or a condition.
    pub event: String,
    /// The column of the times at which rows come under observation.
    #[serde(default)]
    pub entry: Option<String>,
    /// The terms: columns with agreed ranges, and conditions, which are 0 or 1.
    pub terms: Vec<String>,
    /// A column whose levels have baseline hazards of their own within each site.
    #[serde(default)]
    pub strata: Option<String>,
    /// Handling of ties.
    #[serde(default)]
    pub ties: Ties,
    /// The penalty ½·ridge·β² of every coefficient per unit of its column. With it there are no intervals.
    #[serde(default)]
    pub ridge: f64,
    /// True if robust standard errors are computed, too.
    #[serde(default)]
    pub robust: bool,
    /// The test of proportional hazards, by this function of time.
    #[serde(default)]
    pub hazards: Option<HazardsTime>,
    /// True if pairs of rows within sites are compared.
    #[serde(default)]
    pub concordance: bool,
    /// The grid on which the baseline hazard is printed, averaged over sites by their rows.
    #[serde(default)]
    pub baseline: Option<TimeGrid>,
}

/// A Cox regression between two rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoxProgress {
    newton: Newton,
    fit: Option<NewtonFit>,
}

impl Cox {
    fn has_more(&self) -> bool {
        self.robust || self.hazards.is_some() || self.concordance || self.baseline.is_some()
    }

    fn lives(&self, rows: &[Vec<CellValue>]) -> Result<Lives, SiteRefusal> {
        let p = self.terms.len();
        let has_entry = self.entry.is_some();
        let lives = complete(rows).into_iter().map(|row| Life {
            time: row[p],
            event: row[p + 1] == 1.0,
            entry: if has_entry {
                row[p + 2]
            } else {
                f64::NEG_INFINITY
            },
            stratum: if self.strata.is_some() {
                row[p + 2 + usize::from(has_entry)] as usize
            } else {
                0
            },
            features: row[..p].to_vec(),
        });
        let lives: Vec<Life> = lives.collect();
        if lives.iter().any(|life| life.entry >= life.time) {
            return Err(SiteRefusal::Rows(
                "entry times at or after the time of the event or censoring".to_owned(),
            ));
        }
        let least = match self.hazards {
            Some(HazardsTime::Log) => 0.0,
            Some(HazardsTime::LogPlusOne) => -1.0,
            Some(HazardsTime::Identity) | None => f64::NEG_INFINITY,
        };
        if lives.iter().any(|life| life.event && life.time <= least) {
            let wrong = "event times that have no logarithm; ask with `hazards = \"identity\"`";
            return Err(SiteRefusal::Rows(wrong.to_owned()));
        }
        Ok(Lives::new(lives, self.ties == Ties::Efron))
    }
}

impl SumKind for Cox {
    type Progress = CoxProgress;
    type Outcome = CoxOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        let other = |text: &str| Err(QuestionError::Other(text.to_owned()));
        if self.terms.is_empty() {
            return other("a model needs `terms`");
        }
        if self.ridge < 0.0 || !self.ridge.is_finite() {
            return other("`ridge` must be 0 or more");
        }
        if self.ridge > 0.0 && (self.robust || self.hazards.is_some()) {
            return other(
                "with a `ridge` there are no intervals and no tests: leave out `robust` and `hazards`",
            );
        }
        if let Some(grid) = self.baseline {
            grid.check()?;
        }
        let mut inputs = agreed.terms(&self.terms)?;
        inputs.push(agreed.number(&self.time));
        inputs.push(event_input(&self.event));
        inputs.extend(self.entry.iter().map(|column| agreed.number(column)));
        if let Some(strata) = &self.strata {
            inputs.push(agreed.level(strata)?);
        }
        Ok(inputs)
    }

    fn gates(&self, _known: &CommonKnowledge) -> Gates {
        Gates {
            coefficients: self.terms.len(),
            events: self.ridge == 0.0,
            groups: 0,
            has_events: true,
        }
    }

    fn is_event(&self, _known: &CommonKnowledge, row: &[f64]) -> bool {
        row[self.terms.len() + 1] == 1.0
    }

    fn start(&self, known: &CommonKnowledge) -> Result<CoxProgress, QuestionStopped> {
        if known.counts.events == Some(0.0) {
            return Err(QuestionStopped::Other(
                "no events: all rows are censored, and nothing tells of the hazards".to_owned(),
            ));
        }
        Ok(CoxProgress {
            newton: Newton::start(vec![0.0; self.terms.len()]),
            fit: None,
        })
    }

    fn layout(&self, _known: &CommonKnowledge, progress: &CoxProgress) -> SumLayout {
        let p = self.terms.len();
        let triangle = Symmetric::triangle_len(p);
        if progress.fit.is_none() {
            return SumLayout::default()
                .reals("log likelihood", 1, "partial log likelihood")
                .reals("score", p, "derivatives, of columns scaled to ±1")
                .reals("information", triangle, "negative second derivatives");
        }
        let with = |wanted: bool, len: usize| if wanted { len } else { 0 };
        let hazards = self.hazards.is_some();
        let cells = self.baseline.map_or(0, |grid| grid.cells);
        SumLayout::default()
            .reals(
                "meat",
                with(self.robust, triangle),
                "products of the rows' score residuals",
            )
            .reals("score by time", with(hazards, p), "Σg(x−e)")
            .reals("information by time", with(hazards, triangle), "ΣgV")
            .reals(
                "information by squared time",
                with(hazards, triangle),
                "Σg²V",
            )
            .counts(
                "pairs",
                with(self.concordance, 3),
                "concordant, discordant, tied pairs within sites",
            )
            .reals(
                "cumulative hazard",
                cells,
                "rows × cumulative baseline hazard at the end of each cell",
            )
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &CoxProgress,
    ) -> Result<Vec<f64>, SiteRefusal> {
        let lives = self.lives(rows)?;
        if progress.fit.is_none() {
            return Ok(lives.sums(&progress.newton.at));
        }
        let at = &progress.newton.at;
        let mut numbers = Vec::new();
        if self.robust {
            numbers.extend(lives.meat(at).triangle());
        }
        if let Some(time) = self.hazards {
            numbers.extend(lives.by_time(at, time));
        }
        if self.concordance {
            numbers.extend(lives.pairs(at));
        }
        if let Some(grid) = self.baseline {
            // The hazard of a row whose every term is 0 in its own unit, as coefficients are printed.
            let at_zero: f64 = known
                .inputs
                .iter()
                .zip(at)
                .map(|(input, b)| -b * input.middle() / input.half())
                .sum();
            numbers.extend(lives.hazards(at, libm::exp(at_zero), grid));
        }
        Ok(numbers)
    }

    fn step(
        &self,
        known: &CommonKnowledge,
        progress: &CoxProgress,
        sum: &DecodedSum,
    ) -> Step<CoxProgress, CoxOutcome> {
        if let Some(fit) = &progress.fit {
            return Step::Done(CoxOutcome::of(self, known, fit, Some(sum)));
        }
        let ridge: Vec<f64> = known.inputs[..self.terms.len()]
            .iter()
            .map(|input| self.ridge / (input.half() * input.half()))
            .collect();
        let of = NewtonModel {
            names: &self.terms,
            ridge: &ridge,
            sites: known.counts.sites,
            curved: false,
        };
        let sums = NewtonSum {
            log_likelihood: sum.one("log likelihood"),
            score: sum.block("score"),
            information: sum.block("information"),
        };
        match progress.newton.advance(&of, &sums) {
            Err(why) => Step::Stopped(why),
            Ok(Moved::On(newton)) => Step::Next(CoxProgress { newton, fit: None }),
            Ok(Moved::Converged(fit)) if self.has_more() => {
                let newton = Newton::end(&fit);
                Step::Next(CoxProgress {
                    newton,
                    fit: Some(fit),
                })
            }
            Ok(Moved::Converged(fit)) => Step::Done(CoxOutcome::of(self, known, &fit, None)),
        }
    }
}

/// An event: a condition, or a column that is 1 at an event and 0 where a row is censored.
pub(crate) fn event_input(event: &str) -> QuestionInput {
    match event.parse() {
        Ok(condition) => QuestionInput::Indicator(condition),
        Err(_) => QuestionInput::Level {
            column: event.to_owned(),
            levels: vec!["0".to_owned(), "1".to_owned()],
        },
    }
}
