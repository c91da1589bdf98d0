//! The log-rank test: does survival differ between groups?
//!
//! Stratified by site from exact times, or pooled from the counts on a grid. With noise in the counts the variance of the
//! test has that of the noise added, by the delta method.

use serde::{Deserialize, Serialize};

use super::describe::levels;
use super::km::{grid_counts, grid_inputs};
use super::{TimeGrid, cox::event_input};
use crate::algebra::Symmetric;
use crate::noise::more_rows;
use crate::sums::{CommonKnowledge, Gates, SumKind};
use crate::table::{CellValue, QuestionInput, complete};
use crate::{
    AgreedColumns, DecodedSum, QuestionError, QuestionStopped, SiteRefusal, Step, SumLayout,
};

/// With noise, cells count while the rows at risk in each group are so many standard deviations of their noise: what is
/// divided by noise would move the test.
const AT_RISK: f64 = 10.0;

/// A log-rank test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Logrank {
    /// The column of the times.
    pub time: String,
    /// The event: a column of 0 and 1, or a condition.
    pub event: String,
    /// The column whose agreed levels are compared.
    pub group: String,
    /// With a grid all sites are one stratum, and times are rounded up to it; without, each site is one, with exact
    /// times.
    #[serde(default)]
    pub grid: Option<TimeGrid>,
}

/// The result of a log-rank test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogrankOutcome {
    /// The groups.
    pub groups: Vec<String>,
    /// Rows of each.
    pub rows: Vec<f64>,
    /// Observed less expected events of each.
    pub excess: Vec<f64>,
    /// χ².
    pub statistic: f64,
    /// Its degrees of freedom.
    pub freedom: f64,
    /// True if each site is a stratum.
    pub by_site: bool,
    /// The noise in it, where sites add some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<LogrankNoise>,
}

/// Size of the noise in a test, and the cells that it leaves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogrankNoise {
    /// Standard deviation of the noise in each count.
    pub deviation: f64,
    /// The time up to which cells count.
    pub until: f64,
    /// The part of the variance that is noise, of the first group.
    pub share: f64,
}

/// Observed less expected events of all groups but the last, and their covariance.
struct Excess {
    gap: Vec<f64>,
    covariance: Symmetric,
}

impl Excess {
    fn zero(groups: usize) -> Self {
        Self {
            gap: vec![0.0; groups - 1],
            covariance: Symmetric::zeros(groups - 1),
        }
    }

    /// Adds a time with these rows at risk and events by group.
    fn add(&mut self, at_risk: &[f64], events: &[f64]) {
        // With noise those of the groups may cancel.
        if events.iter().all(|events| *events == 0.0) {
            return;
        }
        let (n, d): (f64, f64) = (at_risk.iter().sum(), events.iter().sum());
        let factor = if n > 1.0 {
            d * (n - d) / (n * n * (n - 1.0))
        } else {
            0.0
        };
        for row in 0..self.gap.len() {
            self.gap[row] += events[row] - d * at_risk[row] / n;
            for column in row..self.gap.len() {
                let own = if row == column { n * at_risk[row] } else { 0.0 };
                let entry = self.covariance.at(row, column)
                    + factor * (own - at_risk[row] * at_risk[column]);
                self.covariance.set(row, column, entry);
            }
        }
    }
}

impl Logrank {
    fn groups(&self, known: &CommonKnowledge) -> usize {
        levels(known, Some(&self.group)).map_or(2, <[String]>::len)
    }

    /// The excess of a site, by exact times.
    fn by_site(rows: &[Vec<f64>], groups: usize) -> Excess {
        let mut rows: Vec<&Vec<f64>> = rows.iter().collect();
        rows.sort_by(|left, right| right[0].total_cmp(&left[0]));
        let mut excess = Excess::zero(groups);
        let mut at_risk = vec![0.0; groups];
        for same in rows.chunk_by(|left, right| left[0] == right[0]) {
            let mut events = vec![0.0; groups];
            for row in same {
                at_risk[row[2] as usize] += 1.0;
                events[row[2] as usize] += row[1];
            }
            excess.add(&at_risk, &events);
        }
        excess
    }

    /// The excess of all rows, from counts on a grid.
    fn pooled(counts: &[f64], grid: TimeGrid, groups: usize) -> Excess {
        let cells = grid.cells + 2;
        let of = |group: usize, cell: usize| &counts[(group * cells + cell) * 2..][..2];
        let mut excess = Excess::zero(groups);
        let mut at_risk: Vec<f64> = (0..groups)
            .map(|group| {
                (0..cells)
                    .map(|cell| of(group, cell).iter().sum::<f64>())
                    .sum()
            })
            .collect();
        for cell in 0..=grid.cells {
            let events: Vec<f64> = (0..groups).map(|group| of(group, cell)[0]).collect();
            excess.add(&at_risk, &events);
            for (group, at_risk) in at_risk.iter_mut().enumerate() {
                *at_risk -= of(group, cell).iter().sum::<f64>();
            }
        }
        excess
    }
}

/// The excess of counts with noise.
///
/// A count of events moves `O − E` of group g by `1{g} − π_g` and, through the rows at risk, by `−Σ h·(1{g} − π_g)` over the
/// cells up to its own, with the hazard h and the part π_g of the rows at risk; a censored one by the latter.
struct NoisedExcess {
    excess: Excess,
    /// Covariance that noise adds.
    of_noise: Symmetric,
    noise: LogrankNoise,
}

impl NoisedExcess {
    /// From counts whose noise has this standard deviation.
    fn of(
        counts: &[f64],
        (grid, groups): (TimeGrid, usize),
        deviation: f64,
        (rows, names): (f64, &[String]),
    ) -> Result<Self, QuestionStopped> {
        let cells = grid.cells + 2;
        let of = |group: usize, cell: usize| &counts[(group * cells + cell) * 2..][..2];
        let mut at_risk: Vec<f64> = (0..groups)
            .map(|group| {
                (0..cells)
                    .map(|cell| of(group, cell).iter().sum::<f64>())
                    .sum()
            })
            .collect();
        let mut excess = Excess::zero(groups);
        let mut of_noise = Symmetric::zeros(groups - 1);
        // Σ h·(1{g} − π_g), by the group of the count.
        let mut through = vec![vec![0.0; groups - 1]; groups];
        let variance = deviation * deviation;
        let mut until = None;
        let mut ended = false;
        for cell in 0..cells {
            let needed = AT_RISK * deviation * (2.0 * (cells - cell) as f64).sqrt();
            let few = at_risk.iter().position(|rows| *rows < needed.max(2.0));
            if let (0, Some(group)) = (cell, few) {
                let found = at_risk[group].max(needed / AT_RISK);
                let remedy = "fewer cells of the grid, a filter without this group, or a smaller `noise-multiplier`";
                return Err(QuestionStopped::Other(format!(
                    "not determined under this noise: \"{}\" has too few rows at risk beside it. {}",
                    names.get(group).map_or("a group", String::as_str),
                    more_rows(rows, (needed, found), remedy)
                )));
            }
            ended |= few.is_some() || cell > grid.cells;
            if !ended {
                let events: Vec<f64> = (0..groups).map(|group| of(group, cell)[0]).collect();
                excess.add(&at_risk, &events);
                let total: f64 = at_risk.iter().sum();
                let hazard = events.iter().sum::<f64>() / total;
                for (group, moved) in through.iter_mut().enumerate() {
                    for (at, moved) in moved.iter_mut().enumerate() {
                        let own = if at == group { 1.0 } else { 0.0 };
                        *moved += hazard * (own - at_risk[at] / total);
                    }
                }
                until = Some(grid.time(cell));
                for (group, through) in through.iter().enumerate() {
                    let direct = |at: usize| {
                        let own = if at == group { 1.0 } else { 0.0 };
                        own - at_risk[at] / total - through[at]
                    };
                    let moved: Vec<f64> = (0..groups - 1).map(direct).collect();
                    of_noise.add_outer(variance, &moved);
                    of_noise.add_outer(variance, through);
                }
            } else {
                // Both counts of a later cell are at risk before it.
                for through in &through {
                    of_noise.add_outer(2.0 * variance, through);
                }
            }
            for (group, at_risk) in at_risk.iter_mut().enumerate() {
                *at_risk -= of(group, cell).iter().sum::<f64>();
            }
        }
        let whole = excess.covariance.at(0, 0) + of_noise.at(0, 0);
        Ok(Self {
            noise: LogrankNoise {
                deviation,
                until: until.unwrap_or_default(),
                share: of_noise.at(0, 0) / whole,
            },
            excess,
            of_noise,
        })
    }
}

impl SumKind for Logrank {
    type Progress = ();
    type Outcome = LogrankOutcome;

    fn inputs(&self, agreed: &AgreedColumns) -> Result<Vec<QuestionInput>, QuestionError> {
        if let Some(grid) = self.grid {
            grid.check()?;
            return grid_inputs(agreed, &self.time, &self.event, 1, Some(&self.group));
        }
        Ok(vec![
            agreed.number(&self.time),
            event_input(&self.event),
            agreed.level(&self.group)?,
        ])
    }

    fn gates(&self, known: &CommonKnowledge) -> Gates {
        Gates {
            groups: self.groups(known),
            has_events: true,
            ..Gates::default()
        }
    }

    fn is_event(&self, _known: &CommonKnowledge, row: &[f64]) -> bool {
        row[1] == 1.0
    }

    fn group(&self, _known: &CommonKnowledge, row: &[CellValue]) -> Option<usize> {
        let known: Option<Vec<f64>> = row.iter().map(|value| value.known()).collect();
        Some(*known?.get(2)? as usize)
    }

    fn group_column(&self) -> Option<&str> {
        Some(&self.group)
    }

    fn start(&self, known: &CommonKnowledge) -> Result<(), QuestionStopped> {
        // Counts with noise do not say that a group is empty.
        let counted = |rows: &&f64| known.noise.is_some() || **rows > 0.0;
        let filled = known.counts.groups.iter().filter(counted).count();
        if filled < 2 {
            return Err(QuestionStopped::Other(
                "only one group has rows: there is nothing to compare".to_owned(),
            ));
        }
        if known.noise.is_none() && known.counts.events == Some(0.0) {
            return Err(QuestionStopped::Other(
                "no events: all rows are censored, and nothing tells of a difference".to_owned(),
            ));
        }
        Ok(())
    }

    fn layout(&self, known: &CommonKnowledge, (): &()) -> SumLayout {
        let groups = self.groups(known);
        match self.grid {
            Some(grid) => SumLayout::default().counts(
                "cells",
                groups * (grid.cells + 2) * 2,
                "rows by group and cell: events, censored",
            ),
            None => SumLayout::default()
                .reals(
                    "excess",
                    groups - 1,
                    "observed less expected events of each group but the last",
                )
                .reals(
                    "covariance",
                    Symmetric::triangle_len(groups - 1),
                    "their hypergeometric covariance",
                ),
        }
    }

    fn row_norm(&self, _known: &CommonKnowledge, (): &()) -> Option<f64> {
        // One cell.
        self.grid.map(|_| 1.0)
    }

    fn answer(
        &self,
        known: &CommonKnowledge,
        rows: &[Vec<CellValue>],
        (): &(),
    ) -> Result<Vec<f64>, SiteRefusal> {
        let groups = self.groups(known);
        if let Some(grid) = self.grid {
            return Ok(grid_counts(rows, grid, 1, groups));
        }
        let excess = Self::by_site(&complete(rows), groups);
        let mut numbers = excess.gap;
        numbers.extend(excess.covariance.triangle());
        Ok(numbers)
    }

    fn step(&self, known: &CommonKnowledge, (): &(), sum: &DecodedSum) -> Step<(), LogrankOutcome> {
        let groups = self.groups(known);
        if let (Some(grid), Some(_)) = (self.grid, known.noise) {
            return self.noised(known, (grid, groups), sum);
        }
        let excess = match self.grid {
            Some(grid) => Self::pooled(sum.block("cells"), grid, groups),
            None => Excess {
                gap: sum.block("excess").to_vec(),
                covariance: Symmetric::of_triangle(groups - 1, sum.block("covariance")),
            },
        };
        // An empty group has neither events nor variance.
        let filled: Vec<usize> = (0..groups - 1)
            .filter(|at| excess.covariance.at(*at, *at) > 1e-7)
            .collect();
        let gap: Vec<f64> = filled.iter().map(|at| excess.gap[*at]).collect();
        let form = (!filled.is_empty())
            .then(|| excess.covariance.part(&filled).inverse_form(&gap))
            .flatten();
        let (form, freedom) = match form {
            Some(form) => (form, filled.len() as f64),
            // The last group is empty: the others determine each other.
            None if filled.len() > 1 => {
                let fewer = &filled[1..];
                let form = excess.covariance.part(fewer).inverse_form(&gap[1..]);
                (form.unwrap_or(f64::NAN), fewer.len() as f64)
            }
            None => (f64::NAN, 0.0),
        };
        if !form.is_finite() {
            let why =
                "groups are never at risk together at an event: nothing tells of a difference";
            return Step::Stopped(QuestionStopped::Other(why.to_owned()));
        }
        let mut all = excess.gap.clone();
        all.push(-excess.gap.iter().sum::<f64>());
        Step::Done(LogrankOutcome {
            groups: levels(known, Some(&self.group))
                .unwrap_or_default()
                .to_vec(),
            rows: known.counts.groups.clone(),
            excess: all,
            statistic: form,
            freedom,
            by_site: self.grid.is_none(),
            noise: None,
        })
    }
}

impl Logrank {
    /// The test of counts with noise.
    fn noised(
        &self,
        known: &CommonKnowledge,
        (grid, groups): (TimeGrid, usize),
        sum: &DecodedSum,
    ) -> Step<(), LogrankOutcome> {
        let names = levels(known, Some(&self.group)).unwrap_or_default();
        let deviation = known.deviation(1.0, sum.numbers.len());
        let rows = (known.counts.complete, names);
        let found = NoisedExcess::of(sum.block("cells"), (grid, groups), deviation, rows);
        let NoisedExcess {
            excess,
            of_noise,
            noise,
        } = match found {
            Ok(found) => found,
            Err(why) => return Step::Stopped(why),
        };
        let mut covariance = excess.covariance.clone();
        covariance.add(1.0, &of_noise);
        let Some(statistic) = covariance.inverse_form(&excess.gap) else {
            let why = "the counts of events have more noise than events: nothing tells of a difference. Ask with fewer cells \
                       of the grid, or of more rows";
            return Step::Stopped(QuestionStopped::Other(why.to_owned()));
        };
        let mut all = excess.gap.clone();
        all.push(-excess.gap.iter().sum::<f64>());
        Step::Done(LogrankOutcome {
            groups: names.to_vec(),
            rows: known.counts.groups.clone(),
            excess: all,
            statistic,
            freedom: (groups - 1) as f64,
            by_site: false,
            noise: Some(noise),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_cancel_in_a_cell_count() {
        let mut excess = Excess::zero(2);
        excess.add(&[60.0, 40.0], &[3.0, -3.0]);
        assert_eq!(excess.gap, [3.0]);
        assert_eq!(excess.covariance.at(0, 0), 0.0);
        excess.add(&[0.0, 0.0], &[0.0, 0.0]);
        assert_eq!(excess.gap, [3.0]);
    }
}
