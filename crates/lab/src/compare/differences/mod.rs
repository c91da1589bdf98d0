//! Differences of strategies, with 95 % intervals.
//!
//! Two things may be otherwise another time: the seed, and the test rows. From three seeds on, the spread
//! over seeds counts by Student's distribution, which knows how little so few tell; with fewer, intervals are
//! those of rows alone. Test rows of every silo are drawn with replacement (the bootstrap). Differences are
//! paired: both ways are measured on the same draw. Where rows have groups, such as several visits of a
//! patient, groups are drawn with all their rows. Silos and seeds that hold out the same rows share their
//! draws of rows. Draws are [widened](crate::widening) where rows tell little. Both parts are added as independent ones are, which is careful where seeds draw other test
//! rows, because then rows are in the spread over seeds, too. Where every seed splits the same rows in another
//! way, intervals tell what other splits of these rows would give, not what other institutions would.

use std::borrow::Borrow;

use serde::Serialize;

use super::result::{SiloModel, StoredSilo, UnitResult};
use super::row_draws::{DrawnRows, SharedDraws};
use super::rows::StoredRows;
use super::spread::Spread;
use crate::statistic::{Interval, Statistic, TELLING};
use crate::widening::Widening;

/// Most draws.
const DRAWS: usize = 1_000;
/// Fewest draws, where there are very many rows.
const FEWEST: usize = 200;
/// Rows drawn in all, about, above which there are fewer draws.
const ROWS: usize = 20_000_000;

/// Mean difference of two strategies. Positive means that the first is better, for metrics that are to be high
/// and for those that are to be low.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeanDifference {
    /// In the mean in which every silo counts once; `None` for metrics that single silos do not have.
    pub per_silo: Option<Interval>,
    /// In the mean in which every row counts once, or of the metric on the union of rows.
    pub per_row: Option<Interval>,
    /// Seeds that the intervals are of.
    pub seeds: usize,
    /// Reason for which there is no interval, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_interval: Option<NoInterval>,
    /// Silos whose own interval is wholly better.
    pub wins: usize,
    /// Silos whose interval includes no difference.
    pub ties: usize,
    /// Silos whose own interval is wholly worse: where the other way is local training, those that
    /// collaboration harms.
    pub losses: usize,
    /// Names of the silos that lose.
    pub losers: Vec<String>,
}

impl MeanDifference {
    /// The difference per silo, or per row for metrics that single silos do not have.
    pub fn interval(&self) -> Option<Interval> {
        self.per_silo.or(self.per_row)
    }
}

/// Reason for which a difference has no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoInterval {
    /// In every seed a class has fewer than [`TELLING`] test rows, or persons.
    RareClass,
    /// It is not a finite number in any seed, or a model does not give what the metric needs.
    NotMeasured,
}

/// One scope of a comparison: members, or unseen silos.
pub(super) struct ComparedPair<'a> {
    pub(super) metric: &'a str,
    pub(super) higher_is_better: bool,
    pub(super) outside: bool,
    /// Results of one strategy, and which model of a silo.
    pub(super) ours: (&'a [&'a UnitResult], SiloModel),
    pub(super) theirs: (&'a [&'a UnitResult], SiloModel),
    /// Draws of rows that other pairs may have made.
    pub(super) draws: &'a SharedDraws,
}

/// A silo's rows with both models in one seed.
struct Both<'a> {
    name: &'a str,
    ours: &'a StoredRows,
    theirs: &'a StoredRows,
}

impl ComparedPair<'_> {
    /// `None` where there are no rows that both were measured on, but for silos that could not tune the model that
    /// they make alone: a gain over such a model is none over what a silo can make.
    pub(super) fn difference(&self) -> Option<MeanDifference> {
        let seeds: Vec<Vec<Both<'_>>> = self.seeds();
        let rows: usize = seeds.iter().flatten().map(|both| both.ours.len()).sum();
        if rows == 0 {
            return None;
        }
        let draws = (ROWS / rows).clamp(FEWEST, DRAWS);
        let sign = if self.higher_is_better { 1.0 } else { -1.0 };
        let by_silo = self.by_silo(&seeds, sign, draws);
        let mean = |weight: fn(&Both<'_>) -> f64| {
            let each = seeds.iter().zip(&by_silo);
            let each = each.map(|(silos, drawn)| Some(weighted_mean(silos, drawn, weight)));
            over_seeds(&each.collect::<Vec<_>>())
        };
        let (per_silo, per_row, counted) = if by_silo.is_empty() {
            let union = self.union(&seeds, sign, draws);
            let counted = union.as_ref().map_or(0, Vec::len);
            let rare = union.as_ref().is_some_and(Vec::is_empty);
            let interval = union.and_then(|each| over_seeds(&each));
            let reason = if rare {
                NoInterval::RareClass
            } else {
                NoInterval::NotMeasured
            };
            (None, interval.ok_or(reason), counted)
        } else {
            let rows = mean(|both| both.ours.len() as f64);
            let rows = rows.ok_or(NoInterval::NotMeasured);
            (mean(|_| 1.0), rows, seeds.len())
        };
        let mut difference = MeanDifference {
            per_silo,
            per_row: per_row.ok(),
            seeds: counted,
            no_interval: per_row.err(),
            wins: 0,
            ties: 0,
            losses: 0,
            losers: Vec::new(),
        };
        let mut names: Vec<&str> = seeds.iter().flatten().map(|both| both.name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let Some(interval) = of_silo(name, &seeds, &by_silo) else {
                continue;
            };
            match (interval.low > 0.0, interval.high < 0.0) {
                (true, _) => difference.wins += 1,
                (_, true) => {
                    difference.losses += 1;
                    difference.losers.push(name.to_owned());
                }
                _ => difference.ties += 1,
            }
        }
        Some(difference)
    }

    fn seeds(&self) -> Vec<Vec<Both<'_>>> {
        let mut seeds = Vec::new();
        for ours in self.ours.0 {
            let theirs = self
                .theirs
                .0
                .iter()
                .find(|other| other.unit.seed == ours.unit.seed);
            let Some(theirs) = theirs else { continue };
            let tuned = |silo: &StoredSilo| {
                let mut untuned = ours.untuned.iter().chain(&theirs.untuned);
                untuned.all(|name| *name != silo.name)
            };
            let usable = |silo: &&StoredSilo| silo.outside == self.outside && tuned(silo);
            let both = ours.silos.iter().filter(usable).filter_map(|silo| {
                let other = theirs.silos.iter().find(|other| other.name == silo.name)?;
                let ours = silo.model(self.ours.1)?.1?;
                let theirs = other.model(self.theirs.1)?.1?;
                (ours.len() == theirs.len() && ours.len() > 0).then_some(Both {
                    name: &silo.name,
                    ours,
                    theirs,
                })
            });
            let both: Vec<_> = both.collect();
            if !both.is_empty() {
                seeds.push(both);
            }
        }
        seeds
    }

    /// The difference at every silo in every seed, as measured and in every draw of rows. Empty for
    /// metrics that are no means over rows.
    fn by_silo(
        &self,
        seeds: &[Vec<Both<'_>>],
        sign: f64,
        draws: usize,
    ) -> Vec<Vec<DrawnDifference>> {
        let mut all = Vec::new();
        for silos in seeds {
            let mut each = Vec::new();
            for both in silos {
                let (Some(ours @ Statistic::Mean(_)), Some(theirs @ Statistic::Mean(_))) = (
                    Statistic::of(self.metric, &[both.ours]),
                    Statistic::of(self.metric, &[both.theirs]),
                ) else {
                    return Vec::new();
                };
                let units = both.ours.together();
                let drawn = self.draws.of(&both.ours.targets, &units, draws);
                each.push(if both.ours == both.theirs {
                    DrawnDifference::none(draws)
                } else {
                    let rows = (&*both.ours.targets, &*units, &*drawn);
                    DrawnDifference::of(sign, (&ours, &theirs), rows)
                });
            }
            all.push(each);
        }
        all
    }

    /// The difference of the metric over the union of all silos' rows, in every seed with enough rows of every
    /// class; `None` where a model does not give what the metric needs.
    fn union(
        &self,
        seeds: &[Vec<Both<'_>>],
        sign: f64,
        draws: usize,
    ) -> Option<Vec<Option<DrawnDifference>>> {
        let mut each = Vec::new();
        for silos in seeds {
            let ours: Vec<&StoredRows> = silos.iter().map(|both| both.ours).collect();
            let theirs: Vec<&StoredRows> = silos.iter().map(|both| both.theirs).collect();
            let (ours, theirs) = (
                Statistic::of(self.metric, &ours)?,
                Statistic::of(self.metric, &theirs)?,
            );
            let mut units: Vec<Vec<usize>> = Vec::new();
            let mut first = 0;
            for both in silos {
                let own = both.ours.together().into_iter();
                units.extend(own.map(|rows| rows.iter().map(|row| first + row).collect()));
                first += both.ours.len();
            }
            if !ours.has_enough_events(&units) {
                continue;
            }
            let names: String = silos
                .iter()
                .map(|both| both.ours.targets.as_str())
                .collect();
            let drawn = self.draws.of(&names, &units, draws);
            each.push(Some(if silos.iter().all(|both| both.ours == both.theirs) {
                DrawnDifference::none(draws)
            } else {
                let rows = (&*names, &*units, &*drawn);
                DrawnDifference::of(sign, (&ours, &theirs), rows)
            }));
        }
        Some(each)
    }
}

/// A difference as measured and in every draw.
struct DrawnDifference {
    measured: f64,
    draws: Vec<f64>,
}

impl DrawnDifference {
    /// Of one model with itself.
    fn none(draws: usize) -> Self {
        Self {
            measured: 0.0,
            draws: vec![0.0; draws],
        }
    }

    /// Returns the difference of two models, by the name of the rows, the units that are drawn of them, rows or
    /// groups of rows, and the draws.
    fn of(
        sign: f64,
        (ours, theirs): (&Statistic, &Statistic),
        (name, units, drawn): (&str, &[Vec<usize>], &DrawnRows),
    ) -> Self {
        let (measured, draws) = match (ours, theirs) {
            (Statistic::Mean(ours), Statistic::Mean(theirs)) => {
                let pairs = ours.iter().zip(theirs);
                let differences: Vec<f64> = pairs.map(|(a, b)| sign * (a - b)).collect();
                let mean = differences.iter().sum::<f64>() / differences.len() as f64;
                (mean, drawn.means(&differences))
            }
            _ => {
                let each = (0..drawn.count()).map(|draw| drawn.draw(draw));
                let each = each.map(|times| sign * (ours.value(&times) - theirs.value(&times)));
                (sign * (ours.measured() - theirs.measured()), each.collect())
            }
        };
        Self {
            measured,
            draws: Widening::of(ours, theirs, units).widen(measured, &draws, name),
        }
    }
}

/// The weighted mean over the silos of a seed.
fn weighted_mean(
    silos: &[Both<'_>],
    drawn: &[DrawnDifference],
    weight: impl Fn(&Both<'_>) -> f64,
) -> DrawnDifference {
    let (mut measured, mut weights) = (0.0, 0.0);
    let mut draws = vec![0.0; drawn.first().map_or(0, |one| one.draws.len())];
    for (both, one) in silos.iter().zip(drawn) {
        let weight = weight(both);
        measured += weight * one.measured;
        weights += weight;
        let each = draws.iter_mut().zip(&one.draws);
        each.for_each(|(sum, value)| *sum += weight * value);
    }
    draws.iter_mut().for_each(|sum| *sum /= weights);
    DrawnDifference {
        measured: measured / weights,
        draws,
    }
}

/// The interval of one silo over the seeds in which it is; `None` where it has too few rows, or groups.
fn of_silo(
    name: &str,
    seeds: &[Vec<Both<'_>>],
    by_silo: &[Vec<DrawnDifference>],
) -> Option<Interval> {
    let mut units = 0;
    let each = seeds.iter().zip(by_silo).map(|(silos, drawn)| {
        let place = silos.iter().position(|both| both.name == name)?;
        units += silos[place].ours.together().len();
        Some(&drawn[place])
    });
    let each: Vec<_> = each.collect();
    (units >= TELLING).then(|| over_seeds(&each))?
}

/// The mean over seeds of a difference that a seed may lack, or that is not defined there, with its interval.
fn over_seeds(each: &[Option<impl Borrow<DrawnDifference>>]) -> Option<Interval> {
    let each = each.iter().flatten().map(Borrow::borrow);
    let each: Vec<&DrawnDifference> = each.filter(|one| one.measured.is_finite()).collect();
    let measured: Vec<f64> = each.iter().map(|one| one.measured).collect();
    let draws = each.first()?.draws.len();
    // Every seed once: what is beyond it comes from the seeds.
    let rows = (0..draws).map(|draw| {
        let of_draw = Spread::of(each.iter().map(|one| one.draws[draw]));
        of_draw.map_or(f64::NAN, |one| one.mean)
    });
    let of_rows = Interval::of(Spread::of(measured.iter().copied())?.mean, rows)?;
    Some(of_rows.over_seeds(&measured))
}

#[cfg(test)]
pub(super) mod coverage;
#[cfg(test)]
mod tests;
