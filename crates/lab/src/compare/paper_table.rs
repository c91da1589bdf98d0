//! Tables of papers beside what was measured, as a report shows them.

use serde::{Deserialize, Serialize};

use crate::statistic::Interval;

/// A table of a paper beside the measured one of a variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PaperTable {
    /// The paper and its table.
    pub source: String,
    /// Likeness of the data here to the paper's.
    pub data: PaperData,
    /// Differences of the measurement here, such as its size.
    pub how: String,
    /// Claim of the paper where its figures are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Label of the strategy that gains are over, there and here.
    pub over: String,
    /// Its value in the paper and here.
    pub reference: (Option<f64>, Option<f64>),
    /// The other strategies that the paper has.
    pub figures: Vec<PaperFigure>,
}

/// A figure of a paper.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PaperFigure {
    /// Label of the strategy.
    pub label: String,
    /// The paper's value.
    pub there: f64,
    /// The value here, if it was measured.
    pub here: Option<f64>,
    /// Gain here over the reference, with its 95 % interval.
    pub gain: Option<Interval>,
    /// True if the strategy or the reference is not finished here, so that the gain may change.
    pub unfinished: bool,
    /// Verdict on the paper's gain.
    pub verdict: PaperVerdict,
}

/// Likeness of data to those of a paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaperData {
    /// The same rows.
    Same,
    /// Fewer of them, or a smaller model of them.
    Reduced,
    /// Other rows.
    Other,
}

/// Verdict on a paper's gain over a reference, by the gain here. A gain is better than chance where its 95 %
/// interval is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaperVerdict {
    /// A gain beyond chance.
    Reached,
    /// A gain beyond chance, and a larger share of the reference's value than in the paper.
    Beaten,
    /// None beyond chance.
    NotReached,
    /// The paper has no gain either.
    NoGain,
    /// The data are other ones.
    NotComparable,
    /// It was not measured.
    NotMeasured,
}
