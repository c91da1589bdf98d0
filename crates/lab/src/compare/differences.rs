//! How much better one way of learning is than another, with 95 % intervals.
//!
//! Seeds are drawn with replacement, and within a seed the test rows of every silo (a bootstrap in
//! two stages, Davison & Hinkley 1997, §3.8). Differences are paired: both ways are measured on the
//! same draw. Where rows have groups, such as several visits of a patient, groups are drawn with all their
//! rows. Silos and seeds that hold out the same rows share their draws of rows. A sample of n
//! varies less than the population that it comes from, by √((n − 1)/n); draws are widened for it.
//! Where every seed splits the same rows in another way, intervals tell what other splits of these rows
//! would give, not what other institutions would.

use std::collections::BTreeMap;

use serde::Serialize;

use super::result::{SiloModel, StoredSilo, UnitResult};
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
        let per_silo = (!by_silo.is_empty()).then(|| {
            let weights = |_: &Both<'_>| 1.0;
            mean(&seeds, &by_silo, &drawn, weights)
        });
        let per_row = if by_silo.is_empty() {
            self.union(&seeds, sign, &drawn)
        } else {
            Some(mean(&seeds, &by_silo, &drawn, |both| {
                both.ours.len() as f64
            }))
        };
        let mut difference = MeanDifference {
            per_silo: per_silo.flatten(),
            per_row: per_row.flatten(),
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
        let mut same = BTreeMap::<&str, Vec<Vec<u32>>>::new();
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
                let times = same
                    .entry(&both.ours.targets)
                    .or_insert_with(|| times(&both.ours.targets, &both.ours.together(), draws));
                let units = both.ours.together().len();
                each.push(DrawnDifference::of(&differences, times, units));
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
            let draws = times(&names, &units, drawn.len());
            each.push(DrawnDifference {
                measured: sign * (ours.measured() - theirs.measured()),
                draws: draws
                    .iter()
                    .map(|times| sign * (ours.value(times) - theirs.value(times)))
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
    fn of(differences: &[f64], times: &[Vec<u32>], units: usize) -> Self {
        let rows = differences.len() as f64;
        let measured = differences.iter().sum::<f64>() / rows;
        let units = units as f64;
        let wider = (units / (units - 1.0).max(1.0)).sqrt();
        let draw = |times: &Vec<u32>| {
            let each = differences.iter().zip(times);
            let count = times.iter().map(|&times| f64::from(times)).sum::<f64>();
            let mean = each
                .map(|(value, &times)| value * f64::from(times))
                .sum::<f64>()
                / count;
            measured + wider * (mean - measured)
        };
        Self {
            measured,
            draws: times.iter().map(draw).collect(),
        }
    }
}

/// How often every row counts in every draw of these units, each with all its rows; the same for the same
/// rows.
fn times(targets: &str, units: &[Vec<usize>], draws: usize) -> Vec<Vec<u32>> {
    let mut random = Random::new(0, &format!("test rows {targets}"));
    let rows = units.iter().map(Vec::len).sum();
    (0..draws)
        .map(|_| {
            let mut times = vec![0; rows];
            for _ in 0..units.len() {
                let unit = &units[random.below(units.len())];
                unit.iter().for_each(|&row| times[row] += 1);
            }
            times
        })
        .collect()
}

/// The mean over seeds of the weighted mean over silos.
fn mean(
    seeds: &[Vec<Both<'_>>],
    by_silo: &[Vec<DrawnDifference>],
    drawn: &[Vec<u32>],
    weight: impl Fn(&Both<'_>) -> f64,
) -> Option<Interval> {
    let of_seed = |seed: usize, of: &dyn Fn(&DrawnDifference) -> f64| {
        let each = seeds[seed].iter().zip(&by_silo[seed]);
        let (sum, weights) = each.fold((0.0, 0.0), |(sum, weights), (both, drawn)| {
            (sum + weight(both) * of(drawn), weights + weight(both))
        });
        sum / weights
    };
    over_seeds(seeds.len(), drawn, |seed, draw| {
        Some(match draw {
            None => of_seed(seed, &|drawn| drawn.measured),
            Some(draw) => of_seed(seed, &|drawn| drawn.draws[draw]),
        })
    })
}

/// The interval of one silo over the seeds in which it is; `None` where it has too few rows, or groups.
fn of_silo(
    name: &str,
    seeds: &[Vec<Both<'_>>],
    by_silo: &[Vec<DrawnDifference>],
    drawn: &[Vec<u32>],
) -> Option<Interval> {
    by_silo.first()?;
    let place = |seed: usize| seeds[seed].iter().position(|both| both.name == name);
    let rows =
        (0..seeds.len()).filter_map(|seed| Some(seeds[seed][place(seed)?].ours.together().len()));
    if rows.sum::<usize>() < TELLING {
        return None;
    }
    over_seeds(seeds.len(), drawn, |seed, draw| {
        let own = &by_silo[seed][place(seed)?];
        Some(draw.map_or(own.measured, |draw| own.draws[draw]))
    })
}

/// The mean over seeds of a value, with its interval over draws of seeds and rows. The seeds' share
/// of the spread is widened as that of the rows is.
fn over_seeds(
    seeds: usize,
    drawn: &[Vec<u32>],
    value: impl Fn(usize, Option<usize>) -> Option<f64>,
) -> Option<Interval> {
    let weighted = |times: Option<&Vec<u32>>, draw: Option<usize>| {
        let (mut sum, mut count) = (0.0, 0.0);
        for seed in 0..seeds {
            let times = times.map_or(1.0, |times| f64::from(times[seed]));
            if let Some(value) = value(seed, draw) {
                sum += times * value;
                count += times;
            }
        }
        sum / count
    };
    let measured = weighted(None, None);
    let there = (0..seeds)
        .filter(|&seed| value(seed, None).is_some())
        .count() as f64;
    let wider = (there / (there - 1.0).max(1.0)).sqrt();
    let draws = drawn.iter().enumerate().map(|(draw, times)| {
        // The same draw of rows with every seed once: what is beyond it comes from the seeds.
        let rows = weighted(None, Some(draw));
        rows + wider * (weighted(Some(times), Some(draw)) - rows)
    });
    Interval::of(measured, draws)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_group_are_drawn_together_and_their_mean_is_of_the_rows_drawn() {
        let units = vec![vec![0, 2, 3], vec![1], vec![4, 5]];
        let draws = times("rows", &units, 50);
        let differences = [1.0, 7.0, 1.0, 1.0, 4.0, 4.0];
        let drawn = DrawnDifference::of(&differences, &draws, units.len());
        assert!((drawn.measured - 3.0).abs() < 1e-12);
        let wider = 1.5f64.sqrt();
        for (times, draw) in draws.iter().zip(&drawn.draws) {
            assert_eq!(
                (times[0], times[0], times[4]),
                (times[2], times[3], times[5])
            );
            assert_eq!(times[0] + times[1] + times[4], 3);
            let count = f64::from(3 * times[0] + times[1] + 2 * times[4]);
            let mean = f64::from(3 * times[0] + 7 * times[1] + 8 * times[4]) / count;
            assert!((draw - (3.0 + wider * (mean - 3.0))).abs() < 1e-12);
        }
        // Without groups, the draws are those of rows.
        let rows: Vec<Vec<usize>> = (0..6).map(|row| vec![row]).collect();
        assert!(
            times("rows", &rows, 9)
                .iter()
                .all(|times| times.iter().sum::<u32>() == 6)
        );
    }
}
