//! Common parts of all kinds of questions: the agreement, the counts, and what a kind has to provide.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::layout::{DecodedSum, SumLayout};
use crate::noise::SumNoise;
use crate::refusal::{QuestionError, QuestionStopped, SiteRefusal};
use crate::table::{CellValue, Condition, QuestionInput};

/// Visibility of a site's vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionMode {
    /// Only sums are opened.
    #[default]
    #[serde(rename = "secure-aggregation")]
    Masked,
    /// Every member sees every site's vectors, so limits of counts hold for each site alone.
    Clear,
    /// Only sums are opened, to which every site adds noise. Nodes answer in it; it is not played.
    #[serde(rename = "differential-privacy")]
    Noised,
}

impl QuestionMode {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Masked => "secure-aggregation",
            Self::Clear => "clear",
            Self::Noised => "differential-privacy",
        }
    }
}

/// Ranges and levels of columns. They are agreed, and not read from rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AgreedColumns {
    /// The least and the largest value of columns of numbers.
    #[serde(default)]
    pub ranges: BTreeMap<String, [f64; 2]>,
    /// The levels of columns of categories.
    #[serde(default)]
    pub levels: BTreeMap<String, Vec<String>>,
}

impl AgreedColumns {
    /// The agreed range of a column.
    pub(crate) fn range(&self, column: &str) -> Result<[f64; 2], QuestionError> {
        let range = self.ranges.get(column);
        let range = *range.ok_or_else(|| QuestionError::Range(column.to_owned()))?;
        if !(range[0] < range[1] && range[0].is_finite() && range[1].is_finite()) {
            let wrong = format!(
                "the range of column \"{column}\" must be two finite numbers, the least first"
            );
            return Err(QuestionError::Other(wrong));
        }
        Ok(range)
    }

    pub(crate) fn scaled(&self, column: &str) -> Result<QuestionInput, QuestionError> {
        let range = self.range(column)?;
        Ok(QuestionInput::Scaled {
            column: column.to_owned(),
            range,
        })
    }

    /// A number within the agreed range, if there is one, else any.
    pub(crate) fn number(&self, column: &str) -> QuestionInput {
        let range = self.ranges.get(column).copied();
        let range = range.unwrap_or([f64::MIN, f64::MAX]);
        QuestionInput::Number {
            column: column.to_owned(),
            range,
        }
    }

    pub(crate) fn level(&self, column: &str) -> Result<QuestionInput, QuestionError> {
        let levels = self.levels.get(column).filter(|levels| !levels.is_empty());
        let levels = levels.ok_or_else(|| match column.parse::<Condition>() {
            Ok(_) => QuestionError::Other(format!(
                "groups and cells are the levels of a column, and \"{column}\" is a condition: name a column with \
                 `[levels]`, or put the condition into `filter`"
            )),
            Err(_) => QuestionError::Levels(column.to_owned()),
        })?;
        Ok(QuestionInput::Level {
            column: column.to_owned(),
            levels: levels.clone(),
        })
    }

    /// A term: a condition is 0 or 1, a column is scaled to its range.
    pub(crate) fn term(&self, term: &str) -> Result<QuestionInput, QuestionError> {
        match term.parse::<Condition>() {
            Ok(condition) => Ok(QuestionInput::Indicator(condition)),
            Err(_) => self.scaled(term),
        }
    }

    pub(crate) fn terms(&self, terms: &[String]) -> Result<Vec<QuestionInput>, QuestionError> {
        if let Some(twice) = (1..terms.len()).find(|at| terms[..*at].contains(&terms[*at])) {
            return Err(QuestionError::Other(format!(
                "\"{}\" is asked for twice",
                terms[twice]
            )));
        }
        terms.iter().map(|term| self.term(term)).collect()
    }
}

/// The limits that members apply to opened counts, before more is opened.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct QuestionRules {
    /// The smallest cell m: counts of 1 to m−1 are not printed, and no group may have as few rows.
    pub smallest_cell: u64,
    /// Complete rows for each coefficient.
    pub rows_per_coefficient: u64,
    /// Events for each coefficient of a Cox regression without ridge.
    pub events_per_coefficient: u64,
    /// Members who may collude.
    pub colluders: u64,
}

impl Default for QuestionRules {
    fn default() -> Self {
        Self {
            smallest_cell: 5,
            rows_per_coefficient: 3,
            events_per_coefficient: 5,
            colluders: 1,
        }
    }
}

/// The counts that the first round opens, and nothing else.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FirstCounts {
    /// Sites.
    pub sites: f64,
    /// Rows that the filter keeps.
    pub rows: f64,
    /// Rows in which every column of the question is known and within its range.
    pub complete: f64,
    /// Rows with a value beyond an agreed range or of no agreed level.
    pub outside: f64,
    /// Events among complete rows, where the question has events.
    pub events: Option<f64>,
    /// Rows of every group, where the question has groups: complete ones, or all with a known group.
    pub groups: Vec<f64>,
    /// Sites that have something to tell, where vectors are functions of a whole site.
    #[serde(default)]
    pub told: Option<f64>,
}

impl FirstCounts {
    /// The counts of the first round's sum.
    pub(crate) fn of(sum: &DecodedSum) -> Self {
        Self {
            sites: sum.one("sites"),
            rows: sum.one("rows"),
            complete: sum.one("complete"),
            outside: sum.one("outside"),
            events: sum.block("events").first().copied(),
            groups: sum.block("groups").to_vec(),
            told: sum.block("told").first().copied(),
        }
    }
}

/// Common knowledge when a site computes: the inputs, the rules, and the counts of the first round.
#[derive(Debug, Clone)]
pub(crate) struct CommonKnowledge {
    pub(crate) inputs: Vec<QuestionInput>,
    pub(crate) rules: QuestionRules,
    pub(crate) counts: FirstCounts,
    pub(crate) agreed: AgreedColumns,
    /// The noise of the sums, where sites add some.
    pub(crate) noise: Option<SumNoise>,
}

impl CommonKnowledge {
    /// Standard deviation of the noise in each of these numbers of a sum, which one row changes by `norm` at most; 0
    /// without noise.
    pub(crate) fn deviation(&self, norm: f64, numbers: usize) -> f64 {
        let noise = self.noise.map(|noise| {
            let deviation = noise.deviation(norm, numbers, self.counts.sites);
            deviation.expect("noise that cannot be drawn is refused before anybody answers")
        });
        noise.unwrap_or_default()
    }

    /// Standard deviation of the noise in the counts of the first round, with these limits; 0 without noise.
    pub(crate) fn deviation_of_counts(&self, gates: &Gates) -> f64 {
        self.deviation(gates.norm(), gates.counts())
    }
}

/// Demands of a kind on the counts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gates {
    /// Coefficients to be estimated.
    pub(crate) coefficients: usize,
    /// True if the events must be many for each of them.
    pub(crate) events: bool,
    /// Number of groups.
    pub(crate) groups: usize,
    /// True if there are events to count.
    pub(crate) has_events: bool,
}

impl Gates {
    /// The number of counts of the first round.
    fn counts(&self) -> usize {
        4 + usize::from(self.has_events) + self.groups
    }

    /// The norm by which one row changes them at most: it is complete, an event and in a group; one that is outside is
    /// not complete.
    pub(crate) fn norm(&self) -> f64 {
        let squares = 2 + u8::from(self.has_events) + u8::from(self.groups > 0);
        f64::from(squares).sqrt()
    }
}

/// Result of a sum.
#[derive(Debug, Clone, PartialEq)]
pub enum Step<P, O> {
    /// Another round.
    Next(P),
    /// The answer.
    Done(O),
    /// No answer.
    Stopped(QuestionStopped),
}

impl<P, O> Step<P, O> {
    pub(crate) fn map<Q, R>(
        self,
        next: impl FnOnce(P) -> Q,
        done: impl FnOnce(O) -> R,
    ) -> Step<Q, R> {
        match self {
            Self::Next(progress) => Step::Next(next(progress)),
            Self::Done(outcome) => Step::Done(done(outcome)),
            Self::Stopped(why) => Step::Stopped(why),
        }
    }
}

/// A kind of question. Rows are values of its inputs, in a fixed order.
pub(crate) trait SumKind {
    type Progress;
    type Outcome;

    /// Returns what is taken from a row.
    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError>;
    fn gates(&self, known: &CommonKnowledge) -> Gates;
    /// Returns whether a complete row is an event.
    fn is_event(&self, _known: &CommonKnowledge, _row: &[f64]) -> bool {
        false
    }
    /// Returns whether a site with these complete rows has something to tell.
    fn tells(&self, rows: &[Vec<f64>]) -> bool {
        !rows.is_empty()
    }
    /// The group of a row.
    fn group(&self, _known: &CommonKnowledge, _row: &[CellValue]) -> Option<usize> {
        None
    }
    /// The column whose levels are groups.
    fn group_column(&self) -> Option<&str> {
        None
    }
    /// Returns what all know after the counts; or why the question ends with them.
    fn start(&self, known: &CommonKnowledge) -> Result<Self::Progress, QuestionStopped>;
    fn layout(&self, known: &CommonKnowledge, progress: &Self::Progress) -> SumLayout;
    /// The Euclidean norm by which one row changes the numbers of a round at most; `None` where nothing bounds it.
    fn row_norm(&self, _known: &CommonKnowledge, _progress: &Self::Progress) -> Option<f64> {
        None
    }
    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &Self::Progress,
    ) -> Result<Vec<f64>, SiteRefusal>;
    fn step(
        &self,
        known: &CommonKnowledge,
        progress: &Self::Progress,
        sum: &DecodedSum,
    ) -> Step<Self::Progress, Self::Outcome>;
}
