//! Quantiles by counting: every round divides the bin that holds a quantile into 64.

use serde::{Deserialize, Serialize};

use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, QuestionInput};
use crate::{
    AgreedColumns, DecodedSum, QuestionError, QuestionStopped, SiteRefusal, Step, SumLayout,
};

/// Bins of a round.
const BINS: usize = 64;
/// The default width of the last bin is the agreed range by this.
const FINE: f64 = 4096.0;

/// Quantiles of columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Quantiles {
    /// Columns with agreed ranges.
    pub columns: Vec<String>,
    /// The probabilities, such as 0.5 for medians.
    pub probabilities: Vec<f64>,
    /// The width at which a bin is narrow enough, in the unit of the columns [default: 1/4096 of the range].
    #[serde(default)]
    pub width: Option<f64>,
}

/// A quantile between two rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct QuantileSearch {
    column: usize,
    probability: f64,
    low: f64,
    high: f64,
    /// Rows of the column, once they are known.
    rows: f64,
    /// Rows below `low`.
    below: f64,
    /// Rows in the bin.
    inside: f64,
    done: bool,
}

/// The quantiles between two rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantilesProgress {
    searches: Vec<QuantileSearch>,
}

/// One quantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// The column.
    pub column: String,
    /// The probability.
    pub probability: f64,
    /// Rows with a value.
    pub rows: f64,
    /// The quantile, linear inside its bin.
    pub value: f64,
    /// The width of the bin, which bounds the error.
    pub width: f64,
}

/// The quantiles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuantilesOutcome {
    /// Every probability of every column.
    pub quantiles: Vec<Quantile>,
}

/// The edge before a bin.
fn edge(low: f64, high: f64, bin: usize) -> f64 {
    if bin == BINS {
        high
    } else {
        low + (high - low) * (bin as f64 / BINS as f64)
    }
}

impl QuantilesProgress {
    /// The bins to divide, each once: column, low, high.
    fn bins(&self) -> Vec<(usize, f64, f64)> {
        let mut bins = Vec::new();
        for search in self.searches.iter().filter(|search| !search.done) {
            let bin = (search.column, search.low, search.high);
            if !bins.contains(&bin) {
                bins.push(bin);
            }
        }
        bins
    }
}

impl SumKind for Quantiles {
    type Progress = QuantilesProgress;
    type Outcome = QuantilesOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        let other = |text: &str| Err(QuestionError::Other(text.to_owned()));
        if self.columns.is_empty() || self.probabilities.is_empty() {
            return other("name `columns`, and `probabilities` such as [0.25, 0.5, 0.75]");
        }
        if self.probabilities.iter().any(|q| !(*q > 0.0 && *q < 1.0)) {
            return other(
                "`probabilities` lie between 0 and 1; the least and the largest value are never told",
            );
        }
        if self
            .width
            .is_some_and(|width| width.is_nan() || width <= 0.0)
        {
            return other("`width` must be above 0");
        }
        let ranged = |column: &String| agreed.range(column).map(|_| agreed.number(column));
        self.columns.iter().map(ranged).collect()
    }

    fn gates(&self, _known: &CommonKnowledge) -> Gates {
        Gates::default()
    }

    fn start(&self, known: &CommonKnowledge) -> Result<QuantilesProgress, QuestionStopped> {
        let mut searches = Vec::new();
        for (column, name) in self.columns.iter().enumerate() {
            let [low, high] = known.agreed.ranges.get(name).copied().unwrap_or([0.0, 1.0]);
            let of = |probability: &f64| QuantileSearch {
                column,
                probability: *probability,
                low,
                high,
                rows: 0.0,
                below: 0.0,
                inside: 0.0,
                done: false,
            };
            searches.extend(self.probabilities.iter().map(of));
        }
        Ok(QuantilesProgress { searches })
    }

    fn layout(&self, _known: &CommonKnowledge, progress: &QuantilesProgress) -> SumLayout {
        let bins = progress.bins().len() * BINS;
        SumLayout::default().counts("bins", bins, "rows in each of 64 bins")
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        progress: &QuantilesProgress,
    ) -> Result<Vec<f64>, SiteRefusal> {
        let mut numbers = Vec::new();
        for (column, low, high) in progress.bins() {
            let last = known
                .agreed
                .ranges
                .get(&self.columns[column])
                .map(|range| range[1]);
            let mut counts = vec![0.0; BINS];
            for x in rows.iter().filter_map(|row| row[column].known()) {
                let closed = x == high && last == Some(high);
                if x < low || x >= high && !closed {
                    continue;
                }
                let guess = ((x - low) / (high - low) * BINS as f64) as usize;
                let mut bin = guess.min(BINS - 1);
                // The edges themselves decide, so that a bin has the same rows in the next round.
                while bin > 0 && x < edge(low, high, bin) {
                    bin -= 1;
                }
                while bin + 1 < BINS && x >= edge(low, high, bin + 1) {
                    bin += 1;
                }
                counts[bin] += 1.0;
            }
            numbers.extend(counts);
        }
        Ok(numbers)
    }

    fn step(
        &self,
        known: &CommonKnowledge,
        progress: &QuantilesProgress,
        sum: &DecodedSum,
    ) -> Step<QuantilesProgress, QuantilesOutcome> {
        let bins = progress.bins();
        let smallest = known.rules.smallest_cell as f64;
        let mut next = progress.clone();
        for search in next.searches.iter_mut().filter(|search| !search.done) {
            let bin = (search.column, search.low, search.high);
            let at = bins
                .iter()
                .position(|other| *other == bin)
                .unwrap_or_default();
            let counts = &sum.block("bins")[at * BINS..(at + 1) * BINS];
            if search.rows == 0.0 {
                search.rows = counts.iter().sum();
                let tail = search.probability.min(1.0 - search.probability);
                if search.rows * tail < smallest {
                    let needed = (smallest / tail).ceil() as u64;
                    return Step::Stopped(QuestionStopped::TooFew {
                        what: format!(
                            "rows of \"{}\" for its quantile {}",
                            self.columns[search.column], search.probability
                        ),
                        found: "fewer".to_owned(),
                        needed,
                        remedy: "ask for probabilities nearer to 0.5".to_owned(),
                    });
                }
            }
            let rank = search.probability * search.rows;
            let mut below = search.below;
            let holds = counts.iter().position(|count| {
                let here = *count > 0.0 && below + count >= rank;
                below += if here { 0.0 } else { *count };
                here
            });
            let holds = holds.unwrap_or(BINS - 1);
            let (low, high) = (
                edge(search.low, search.high, holds),
                edge(search.low, search.high, holds + 1),
            );
            let [least, most] = known
                .agreed
                .ranges
                .get(&self.columns[search.column])
                .copied()
                .unwrap_or([0.0, 1.0]);
            let narrow = self.width.unwrap_or((most - least) / FINE);
            (search.low, search.high, search.below, search.inside) =
                (low, high, below, counts[holds]);
            search.done = counts[holds] < 2.0 * smallest || high - low <= narrow * (1.0 + 1e-9);
        }
        if next.searches.iter().any(|search| !search.done) {
            return Step::Next(next);
        }
        let quantiles = next.searches.iter().map(|search| {
            let part = (search.probability * search.rows - search.below) / search.inside;
            Quantile {
                column: self.columns[search.column].clone(),
                probability: search.probability,
                rows: search.rows,
                value: search.low + part.clamp(0.0, 1.0) * (search.high - search.low),
                width: search.high - search.low,
            }
        });
        Step::Done(QuantilesOutcome {
            quantiles: quantiles.collect(),
        })
    }
}
