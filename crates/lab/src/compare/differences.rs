//! How much better one way of learning is than another, with 95 % intervals.
//!
//! Seeds are drawn with replacement, and within a seed the test rows of every silo (a bootstrap in
//! two stages, Davison & Hinkley 1997, §3.8). Differences are paired: both ways are measured on the
//! same draw. Where rows have groups, such as several visits of a patient, groups are drawn with all their
//! rows. Silos and seeds that hold out the same rows share their draws of rows. A sample of n
//! varies less than the population that it comes from, by √((n − 1)/n); draws are widened for it.
//! Where every seed splits the same rows in another way, intervals tell what other splits of these rows
//! would give, not what other institutions would.

use std::borrow::Borrow;

use serde::Serialize;

use super::result::{SiloModel, StoredSilo, UnitResult};
use super::row_draws::{DrawnRows, SharedDraws};
use super::rows::StoredRows;
use crate::statistic::{Interval, Statistic, TELLING};
use simulations::random::Random;

/// Most draws.
const DRAWS: usize = 1_000;
/// Fewest draws, where there are very many rows.
const FEWEST: usize = 200;
/// Rows drawn in all, about, above which there are fewer draws.
const ROWS: usize = 20_000_000;

/// How much better one way of learning is than another. Positive is better, whether the metric is to
/// be high or low.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeanDifference {
    /// In the mean in which every silo counts once; `None` for metrics that single silos do not have.
    pub per_silo: Option<Interval>,
    /// In the mean in which every row counts once, or of the metric on the union of rows.
    pub per_row: Option<Interval>,
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

/// One scope of a comparison: members, or silos outside.
pub(super) struct ComparedPair<'a> {
    pub(super) metric: &'a str,
    pub(super) higher_is_better: bool,
    pub(super) outside: bool,
    /// Results of one way of learning, and which model of a silo.
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
    /// `None` where there are no rows that both were measured on.
    pub(super) fn difference(&self) -> Option<MeanDifference> {
        let seeds: Vec<Vec<Both<'_>>> = self.seeds();
        let rows: usize = seeds.iter().flatten().map(|both| both.ours.len()).sum();
        if rows == 0 {
            return None;
        }
        let draws = (ROWS / rows).clamp(FEWEST, DRAWS);
        let sign = if self.higher_is_better { 1.0 } else { -1.0 };
        let drawn = self.drawn_seeds(seeds.len(), draws);
        let by_silo = self.by_silo(&seeds, sign, draws);
        let mean = |weight: fn(&Both<'_>) -> f64| {
            let each = seeds.iter().zip(&by_silo);
            let each = each.map(|(silos, drawn)| Some(weighted_mean(silos, drawn, weight)));
            over_seeds(&each.collect::<Vec<_>>(), &drawn)
        };
        let (per_silo, per_row) = if by_silo.is_empty() {
            (None, self.union(&seeds, sign, &drawn).flatten())
        } else {
            (mean(|_| 1.0), mean(|both| both.ours.len() as f64))
        };
        let mut difference = MeanDifference {
            per_silo,
            per_row,
            wins: 0,
            ties: 0,
            losses: 0,
            losers: Vec::new(),
        };
        let mut names: Vec<&str> = seeds.iter().flatten().map(|both| both.name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let Some(interval) = of_silo(name, &seeds, &by_silo, &drawn) else {
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
            let usable = |silo: &&StoredSilo| silo.outside == self.outside;
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

    /// How often every seed counts in every draw.
    fn drawn_seeds(&self, seeds: usize, draws: usize) -> Vec<Vec<u32>> {
        let mut random = Random::new(0, "seeds of a comparison");
        (0..draws)
            .map(|_| {
                let mut times = vec![0; seeds];
                (0..seeds).for_each(|_| times[random.below(seeds)] += 1);
                times
            })
            .collect()
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
                let (Some(Statistic::Mean(ours)), Some(Statistic::Mean(theirs))) = (
                    Statistic::of(self.metric, &[both.ours]),
                    Statistic::of(self.metric, &[both.theirs]),
                ) else {
                    return Vec::new();
                };
                let differences: Vec<f64> = ours
                    .iter()
                    .zip(&theirs)
                    .map(|(ours, theirs)| sign * (ours - theirs))
                    .collect();
                let units = both.ours.together();
                let drawn = self.draws.of(&both.ours.targets, &units, draws);
                each.push(DrawnDifference::of(&differences, &drawn, units.len()));
            }
            all.push(each);
        }
        all
    }

    /// The difference of the metric over the union of all silos' rows, in every seed.
    fn union(
        &self,
        seeds: &[Vec<Both<'_>>],
        sign: f64,
        drawn: &[Vec<u32>],
    ) -> Option<Option<Interval>> {
        let mut each = Vec::new();
        for silos in seeds {
            let ours: Vec<&StoredRows> = silos.iter().map(|both| both.ours).collect();
            let theirs: Vec<&StoredRows> = silos.iter().map(|both| both.theirs).collect();
            let (ours, theirs) = (
                Statistic::of(self.metric, &ours)?,
                Statistic::of(self.metric, &theirs)?,
            );
            let names: String = silos
                .iter()
                .map(|both| both.ours.targets.as_str())
                .collect();
            let mut units = Vec::new();
            let mut first = 0;
            for both in silos {
                let own = both.ours.together().into_iter();
                units.extend(own.map(|rows| rows.iter().map(|row| first + row).collect()));
                first += both.ours.len();
            }
            let rows = self.draws.of(&names, &units, drawn.len());
            each.push(DrawnDifference {
                measured: sign * (ours.measured() - theirs.measured()),
                draws: (0..drawn.len())
                    .map(|draw| rows.draw(draw))
                    .map(|times| sign * (ours.value(&times) - theirs.value(&times)))
                    .collect(),
            });
        }
        let value = |of: &dyn Fn(&DrawnDifference) -> f64, times: &[u32]| {
            let (mut sum, mut count) = (0.0, 0.0);
            for (drawn, &times) in each.iter().zip(times) {
                let value = of(drawn);
                if value.is_finite() {
                    sum += f64::from(times) * value;
                    count += f64::from(times);
                }
            }
            sum / count
        };
        let once = vec![1; each.len()];
        let measured = value(&|drawn| drawn.measured, &once);
        let draws = drawn
            .iter()
            .enumerate()
            .map(|(at, times)| value(&|drawn| drawn.draws[at], times));
        Some(Interval::of(measured, draws))
    }
}

/// A difference as measured and in every draw.
struct DrawnDifference {
    measured: f64,
    draws: Vec<f64>,
}

impl DrawnDifference {
    /// `units` is the number of groups, or rows, that are drawn.
    fn of(differences: &[f64], drawn: &DrawnRows, units: usize) -> Self {
        let measured = differences.iter().sum::<f64>() / differences.len() as f64;
        let units = units as f64;
        let wider = (units / (units - 1.0).max(1.0)).sqrt();
        let means = drawn.means(differences).into_iter();
        Self {
            measured,
            draws: means
                .map(|mean| measured + wider * (mean - measured))
                .collect(),
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
    drawn: &[Vec<u32>],
) -> Option<Interval> {
    let mut units = 0;
    let each = seeds.iter().zip(by_silo).map(|(silos, drawn)| {
        let place = silos.iter().position(|both| both.name == name)?;
        units += silos[place].ours.together().len();
        Some(&drawn[place])
    });
    let each: Vec<_> = each.collect();
    (units >= TELLING).then(|| over_seeds(&each, drawn))?
}

/// The mean over seeds of a difference that a seed may lack, with its interval over draws of seeds and
/// rows. The seeds' share of the spread is widened as that of the rows is.
fn over_seeds(
    each: &[Option<impl Borrow<DrawnDifference>>],
    drawn: &[Vec<u32>],
) -> Option<Interval> {
    let each = each.iter().enumerate();
    let each = each.filter_map(|(seed, one)| Some((seed, one.as_ref()?.borrow())));
    let each: Vec<(usize, &DrawnDifference)> = each.collect();
    let weighted = |times: Option<&[u32]>, value: &dyn Fn(&DrawnDifference) -> f64| {
        let (mut sum, mut count) = (0.0, 0.0);
        for (seed, one) in &each {
            let times = times.map_or(1.0, |times| f64::from(times[*seed]));
            sum += times * value(one);
            count += times;
        }
        sum / count
    };
    let measured = weighted(None, &|one| one.measured);
    let there = each.len() as f64;
    let wider = (there / (there - 1.0).max(1.0)).sqrt();
    let draws = drawn.iter().enumerate().map(|(draw, times)| {
        let value = |one: &DrawnDifference| one.draws[draw];
        // The same draw of rows with every seed once: what is beyond it comes from the seeds.
        let rows = weighted(None, &value);
        rows + wider * (weighted(Some(times), &value) - rows)
    });
    Interval::of(measured, draws)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_of_few_units_are_widened() {
        let units = vec![vec![0, 2, 3], vec![1], vec![4, 5]];
        let differences = [1.0, 7.0, 1.0, 1.0, 4.0, 4.0];
        let rows = SharedDraws::default().of("rows", &units, 50);
        let drawn = DrawnDifference::of(&differences, &rows, units.len());
        assert!((drawn.measured - 3.0).abs() < 1e-12);
        let wider = 1.5f64.sqrt();
        for (mean, draw) in rows.means(&differences).into_iter().zip(&drawn.draws) {
            assert!((draw - (3.0 + wider * (mean - 3.0))).abs() < 1e-12);
        }
    }
}
