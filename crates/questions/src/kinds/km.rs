//! Survival and incidence on an agreed grid of times, from counts alone.
//!
//! Kaplan–Meier with Greenwood's variance, and the Aalen–Johansen incidence of competing causes. Times are rounded
//! up to the grid; events after its last cell count as censored.

use serde::{Deserialize, Serialize};

use super::TimeGrid;
use super::describe::levels;
use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, QuestionInput, complete};
use crate::{
    AgreedColumns, DecodedSum, QuestionError, QuestionStopped, SiteRefusal, Step, SumLayout,
};

/// Survival curves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Km {
    /// The column of the times.
    pub time: String,
    /// The column of the events: 0 where a row is censored, 1 and so on for the causes.
    pub event: String,
    /// Number of causes.
    #[serde(default = "one")]
    pub causes: usize,
    /// The grid of times.
    pub grid: TimeGrid,
    /// A column whose agreed levels have curves of their own.
    #[serde(default)]
    pub group: Option<String>,
}

fn one() -> usize {
    1
}

/// A curve at the end of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KmPoint {
    /// The time.
    pub time: f64,
    /// Rows at risk before it.
    pub at_risk: f64,
    /// Events of each cause in the cell.
    pub events: Vec<f64>,
    /// Rows censored in the cell.
    pub censored: f64,
    /// Survival.
    pub survival: f64,
    /// Its standard error (Greenwood).
    pub error: f64,
    /// Incidence of each cause and its standard error; empty for one cause.
    pub incidence: Vec<[f64; 2]>,
}

impl KmPoint {
    /// The log-log interval of survival; none where survival is 0 or 1.
    pub fn interval(&self, level: f64) -> Option<[f64; 2]> {
        if !(self.survival > 0.0 && self.survival < 1.0) {
            return None;
        }
        let log = libm::log(self.survival);
        let z = crate::special::normal_quantile(0.5 * (1.0 - level));
        let width = z * self.error / (self.survival * log.abs());
        let at = |sign: f64| libm::exp(log * libm::exp(sign * width));
        Some([at(1.0), at(-1.0)])
    }
}

/// The curve of one group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KmCurve {
    /// The level of the group; none for all rows.
    pub group: Option<String>,
    /// Rows.
    pub rows: f64,
    /// Events within the grid.
    pub events: f64,
    /// The curve at the end of every cell, from time 0.
    pub points: Vec<KmPoint>,
}

impl KmCurve {
    /// The first time at which survival is this or less; none if it stays above.
    pub fn quantile(&self, survival: f64) -> Option<f64> {
        let below = self.points.iter().find(|point| point.survival <= survival);
        below.map(|point| point.time)
    }
}

/// Survival curves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KmOutcome {
    /// Number of causes.
    pub causes: usize,
    /// One curve for each group.
    pub curves: Vec<KmCurve>,
    /// Events that the grid cut off, and that count as censored.
    pub events_beyond: f64,
}

/// The inputs of a grid question: time, event, group.
pub(super) fn grid_inputs(
    agreed: &AgreedColumns,
    time: &str,
    event: &str,
    causes: usize,
    group: Option<&str>,
) -> Result<Vec<QuestionInput>, QuestionError> {
    let event = match event.parse() {
        Ok(condition) if causes == 1 => QuestionInput::Indicator(condition),
        _ => QuestionInput::Level {
            column: event.to_owned(),
            levels: (0..=causes).map(|cause| cause.to_string()).collect(),
        },
    };
    let mut inputs = vec![agreed.number(time), event];
    if let Some(group) = group {
        inputs.push(agreed.level(group)?);
    }
    Ok(inputs)
}

/// Counts by group, cell 0 to J + 1, and cause 1 and so on, censored last.
pub(super) fn grid_counts(
    rows: &[Vec<CellValue>],
    grid: TimeGrid,
    causes: usize,
    groups: usize,
) -> Vec<f64> {
    let cells = grid.cells + 2;
    let mut counts = vec![0.0; groups * cells * (causes + 1)];
    for row in complete(rows) {
        let cell = grid.cell(row[0]);
        let kind = match row[1] as usize {
            0 => causes,
            cause => cause - 1,
        };
        let group = row.get(2).map_or(0, |level| *level as usize);
        counts[(group * cells + cell) * (causes + 1) + kind] += 1.0;
    }
    counts
}

impl Km {
    fn groups(&self, known: &CommonKnowledge) -> usize {
        levels(known, self.group.as_deref()).map_or(1, <[String]>::len)
    }
}

impl SumKind for Km {
    type Progress = ();
    type Outcome = KmOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        self.grid.check()?;
        if !(1..=9).contains(&self.causes) {
            return Err(QuestionError::Other("`causes` must be 1 to 9".to_owned()));
        }
        grid_inputs(
            agreed,
            &self.time,
            &self.event,
            self.causes,
            self.group.as_deref(),
        )
    }

    fn gates(&self, known: &CommonKnowledge) -> Gates {
        let groups = if self.group.is_some() {
            self.groups(known)
        } else {
            0
        };
        Gates {
            groups,
            has_events: true,
            ..Gates::default()
        }
    }

    fn is_event(&self, _known: &CommonKnowledge, row: &[f64]) -> bool {
        row[1] != 0.0
    }

    fn group(&self, _known: &CommonKnowledge, row: &[CellValue]) -> Option<usize> {
        let known: Option<Vec<f64>> = row.iter().map(|value| value.known()).collect();
        Some(*known?.get(2)? as usize)
    }

    fn group_column(&self) -> Option<&str> {
        self.group.as_deref()
    }

    fn start(&self, _known: &CommonKnowledge) -> Result<(), QuestionStopped> {
        Ok(())
    }

    fn layout(&self, known: &CommonKnowledge, (): &()) -> SumLayout {
        let cells = self.groups(known) * (self.grid.cells + 2) * (self.causes + 1);
        SumLayout::default().counts(
            "cells",
            cells,
            "rows by group, cell of time and cause, censored last",
        )
    }

    fn row_norm(&self, _known: &CommonKnowledge, (): &()) -> Option<f64> {
        // One cell.
        Some(1.0)
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        (): &(),
    ) -> Result<Vec<f64>, SiteRefusal> {
        Ok(grid_counts(
            rows,
            self.grid,
            self.causes,
            self.groups(known),
        ))
    }

    fn step(&self, known: &CommonKnowledge, (): &(), sum: &DecodedSum) -> Step<(), KmOutcome> {
        let levels = levels(known, self.group.as_deref());
        let kinds = self.causes + 1;
        let cells = self.grid.cells + 2;
        let mut beyond = 0.0;
        let curves = sum
            .block("cells")
            .chunks_exact(cells * kinds)
            .enumerate()
            .map(|(group, counts)| {
                beyond += counts[(cells - 1) * kinds..][..self.causes]
                    .iter()
                    .sum::<f64>();
                curve(
                    levels.map(|levels| levels[group].clone()),
                    counts,
                    kinds,
                    self.grid,
                )
            });
        let curves = curves.collect();
        Step::Done(KmOutcome {
            causes: self.causes,
            curves,
            events_beyond: beyond,
        })
    }
}

/// The curve of the counts of a group.
fn curve(group: Option<String>, counts: &[f64], kinds: usize, grid: TimeGrid) -> KmCurve {
    let causes = kinds - 1;
    let rows: f64 = counts.iter().sum();
    let mut at_risk = rows;
    let (mut survival, mut greenwood) = (1.0, 0.0);
    let mut incidence = vec![0.0; causes];
    let mut points: Vec<KmPoint> = Vec::new();
    for (cell, counts) in counts.chunks_exact(kinds).take(grid.cells + 1).enumerate() {
        let events = counts[..causes].to_vec();
        let all: f64 = events.iter().sum();
        // Counts with noise may be negative.
        if all != 0.0 && at_risk > 0.0 {
            for (sum, events) in incidence.iter_mut().zip(&events) {
                *sum += survival * events / at_risk;
            }
            survival *= 1.0 - all / at_risk;
            greenwood += all / (at_risk * (at_risk - all));
        }
        let error = if survival > 0.0 {
            survival * greenwood.max(0.0).sqrt()
        } else {
            0.0
        };
        points.push(KmPoint {
            time: grid.time(cell),
            at_risk,
            events,
            censored: counts[causes],
            survival,
            error,
            incidence: if causes > 1 {
                incidence.iter().map(|i| [*i, 0.0]).collect()
            } else {
                Vec::new()
            },
        });
        at_risk -= all + counts[causes];
    }
    if causes > 1 {
        incidence_errors(&mut points, causes);
    }
    let events = points.iter().flat_map(|point| &point.events).sum();
    KmCurve {
        group,
        rows,
        events,
        points,
    }
}

/// The variance of incidence by the delta method (Marubini & Valsecchi 1995, 10.3).
fn incidence_errors(points: &mut [KmPoint], causes: usize) {
    for cause in 0..causes {
        let variances: Vec<f64> = (0..points.len())
            .map(|j| {
                let reached = points[j].incidence[cause][0];
                let mut variance = 0.0;
                for i in 0..=j {
                    let point = &points[i];
                    let (n, all) = (point.at_risk, point.events.iter().sum::<f64>());
                    if all == 0.0 {
                        continue;
                    }
                    let before = if i == 0 { 1.0 } else { points[i - 1].survival };
                    let own = point.events[cause];
                    let gap = reached - point.incidence[cause][0];
                    if n > all {
                        variance += gap * gap * all / (n * (n - all));
                    }
                    variance += before * before * own * (n - own) / (n * n * n);
                    variance -= 2.0 * gap * before * own / (n * n);
                }
                variance
            })
            .collect();
        for (point, variance) in points.iter_mut().zip(variances) {
            point.incidence[cause][1] = variance.max(0.0).sqrt();
        }
    }
}
