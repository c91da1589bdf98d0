//! Gains of one model over another, with 95 % intervals from resampled held-out rows.
//!
//! The bootstrap (Efron 1979) draws as many of a silo's held-out rows as there are, with
//! replacement, and measures all models on the same draw, so that differences are paired. Silos are
//! drawn separately, except those that hold out the same rows, which share their draws. Where rows have
//! groups, such as several visits of a patient, groups are drawn with all their rows. Draws are
//! [widened](crate::widening) where rows tell little.

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::learner::RowResults;

use super::results::{Gain, MeanGain, ModelKind};
use crate::statistic::{Interval, Statistic, Statistics, TELLING};
use crate::widening::Widening;
use simulations::pool::Threads;
use simulations::random::Random;

/// Draws of the held-out rows.
const DRAWS: usize = 1_000;
/// Fewest draws, where there are very many rows.
const FEWEST: usize = 200;
/// Rows drawn in all, about, above which there are fewer draws.
const ROWS: usize = 50_000_000;
/// Silos of one job.
const PART: usize = 16;

/// The models that are compared, each with the one that it is compared with.
const PAIRS: [(ModelKind, ModelKind); 6] = [
    (ModelKind::Coalition, ModelKind::Local),
    (ModelKind::Coalition, ModelKind::Global),
    (ModelKind::Coalition, ModelKind::GlobalEqual),
    (ModelKind::Global, ModelKind::Local),
    (ModelKind::Served, ModelKind::Local),
    (ModelKind::Served, ModelKind::Coalition),
];

/// Row results of a silo's models.
pub(super) type ModelResults = BTreeMap<ModelKind, Arc<RowResults>>;

/// The gains of every silo, and the mean gains of the first `members` of them.
pub(super) struct Gains {
    pub(super) silos: Vec<Vec<Gain>>,
    pub(super) means: Vec<MeanGain>,
}

/// Settings of a comparison.
#[derive(Clone, Copy)]
pub(super) struct GainSettings {
    pub(super) metric: &'static str,
    pub(super) higher_is_better: bool,
    pub(super) seed: u64,
    /// The first silos, which take part.
    pub(super) members: usize,
}

/// A metric of one model on the measured rows and on each draw.
struct DrawnMetric {
    rows: usize,
    /// Number of drawn units: groups, or rows.
    units: usize,
    /// True if there are enough of them of every class.
    events: bool,
    measured: f64,
    draws: Vec<f64>,
}

/// The metrics of the models of one silo.
#[derive(Default)]
struct DrawnModels {
    models: BTreeMap<ModelKind, DrawnMetric>,
    /// By how much the draws of each pair's difference are widened; none where the models are the same.
    widening: BTreeMap<(ModelKind, ModelKind), Option<Widening>>,
    /// Name of the rows.
    rows: String,
}

/// Computes the gains.
///
/// # Errors
/// The text of a panic.
pub(super) fn gains(
    what: GainSettings,
    silos: &[ModelResults],
    threads: &Arc<Threads>,
) -> Result<Gains, String> {
    let silos: Vec<ModelResults> = silos.iter().map(compared).collect();
    // Silos with the same targets hold out the same rows.
    let mut groups = BTreeMap::<[u8; 32], Vec<usize>>::new();
    for (at, models) in silos.iter().enumerate() {
        if let Some(results) = models.values().next() {
            let mut hasher = blake3::Hasher::new();
            for target in &results.targets {
                hasher.update(&target.to_le_bytes());
            }
            // Learners without targets are no reason to think that their rows are the same.
            if results.targets.is_empty() {
                hasher.update(&(at as u64).to_le_bytes());
            }
            let group = groups.entry(*hasher.finalize().as_bytes()).or_default();
            group.push(at);
        }
    }
    let rows: usize = silos
        .iter()
        .filter_map(|models| Some(models.values().next()?.len()))
        .sum();
    let draws = (ROWS / rows.max(1)).clamp(FEWEST, DRAWS);
    // Many silos with the same rows are divided among threads, each of which makes the same draws.
    let parts = groups.iter().flat_map(|(rows, group)| {
        let part = |part: &[usize]| -> Vec<(usize, ModelResults)> {
            part.iter().map(|&at| (at, silos[at].clone())).collect()
        };
        group.chunks(PART).map(move |silos| (*rows, part(silos)))
    });
    let jobs: Vec<_> = parts
        .map(|(rows, models)| move || drawn(what, &rows, &models, draws))
        .collect();
    let mut all: Vec<DrawnModels> = silos.iter().map(|_| DrawnModels::default()).collect();
    for (at, models) in threads.all(jobs)?.into_iter().flatten() {
        all[at] = models;
    }
    let sign = if what.higher_is_better { 1.0 } else { -1.0 };
    let each = |models: &DrawnModels| -> Vec<Gain> {
        let gain = |&(model, over): &(ModelKind, ModelKind)| {
            let difference = GainDifference::of(sign, models, (model, over))?;
            let interval = difference.at_one_silo()?;
            Some(Gain {
                model,
                over,
                interval,
            })
        };
        PAIRS.iter().filter_map(gain).collect()
    };
    let members = &all[..what.members.min(all.len())];
    let mean = |&(model, over): &(ModelKind, ModelKind)| {
        let differences: Vec<GainDifference> = members
            .iter()
            .filter_map(|models| GainDifference::of(sign, models, (model, over)))
            .collect();
        Some(MeanGain {
            model,
            over,
            silos: differences.len(),
            per_silo: weighted(&differences, |_| 1.0)?,
            per_row: weighted(&differences, |difference| difference.rows as f64)?,
        })
    };
    Ok(Gains {
        silos: all.iter().map(each).collect(),
        means: PAIRS.iter().filter_map(mean).collect(),
    })
}

/// The models among these that are compared with another one here. Of the others nothing is drawn.
fn compared(models: &ModelResults) -> ModelResults {
    let pairs = PAIRS.iter();
    let both =
        pairs.filter(|(model, over)| models.contains_key(model) && models.contains_key(over));
    let kinds = both.flat_map(|(model, over)| [model, over]);
    let results = kinds.filter_map(|kind| Some((*kind, models.get(kind)?.clone())));
    results.collect()
}

/// The metrics of models of silos that hold out the same rows.
fn drawn(
    what: GainSettings,
    rows: &[u8; 32],
    silos: &[(usize, ModelResults)],
    draws: usize,
) -> Vec<(usize, DrawnModels)> {
    let Some(results) = silos.first().and_then(|(_, models)| models.values().next()) else {
        return Vec::new();
    };
    let (count, units) = (results.len(), results.together());
    let purpose = format!("held-out rows {}", blake3::Hash::from_bytes(*rows).to_hex());
    let mut random = Random::new(what.seed, &purpose);
    let (mut names, mut statistics) = (Vec::new(), Vec::new());
    for (at, (_, models)) in silos.iter().enumerate() {
        for (&kind, results) in models.iter().filter(|(_, one)| one.len() == count) {
            if let Some(statistic) = Statistic::of(what.metric, &[&**results]) {
                names.push((at, kind));
                statistics.push(statistic);
            }
        }
    }
    let mut all: Vec<DrawnMetric> = statistics
        .iter()
        .map(|statistic| DrawnMetric {
            rows: count,
            units: units.len(),
            events: statistic.has_enough_events(&units),
            measured: statistic.measured(),
            draws: Vec::with_capacity(draws),
        })
        .collect();
    let mut out: Vec<_> = silos
        .iter()
        .map(|(at, _)| (*at, DrawnModels::default()))
        .collect();
    let place: BTreeMap<(usize, ModelKind), &Statistic> =
        names.iter().copied().zip(&statistics).collect();
    for (at, (_, models)) in silos.iter().enumerate() {
        let drawn = &mut out[at].1;
        drawn.rows.clone_from(&purpose);
        for (model, over) in PAIRS {
            let both = (place.get(&(at, model)), place.get(&(at, over)));
            let (Some(ours), Some(theirs)) = both else {
                continue;
            };
            let same = models[&model] == models[&over];
            let widening = (!same).then(|| Widening::of(ours, theirs, &units));
            drawn.widening.insert((model, over), widening);
        }
    }
    let statistics = Statistics::new(statistics);
    // Models that are the same differ by nothing, whatever is drawn.
    let different = if statistics.are_one() { 0 } else { draws };
    all.iter_mut()
        .filter(|_| different == 0)
        .for_each(|one| one.draws.resize(draws, one.measured));
    for _ in 0..different {
        let mut times = vec![0u32; count];
        for _ in 0..units.len() {
            let unit = &units[random.below(units.len())];
            unit.iter().for_each(|&row| times[row] += 1);
        }
        for (drawn, value) in all.iter_mut().zip(statistics.values(&times)) {
            drawn.draws.push(value);
        }
    }
    for ((at, kind), drawn) in names.into_iter().zip(all) {
        out[at].1.models.insert(kind, drawn);
    }
    out
}

/// Gain of one model over another at one silo: as measured, and on each draw, widened.
struct GainDifference {
    rows: usize,
    units: usize,
    events: bool,
    measured: f64,
    draws: Vec<f64>,
}

impl GainDifference {
    fn of(sign: f64, drawn: &DrawnModels, pair: (ModelKind, ModelKind)) -> Option<Self> {
        let (model, over) = (drawn.models.get(&pair.0)?, drawn.models.get(&pair.1)?);
        let measured = sign * (model.measured - over.measured);
        if !measured.is_finite() || model.units < 2 {
            return None;
        }
        let draws = model.draws.iter().zip(&over.draws);
        let draws: Vec<f64> = draws.map(|(model, over)| sign * (model - over)).collect();
        Some(Self {
            rows: model.rows,
            units: model.units,
            events: model.events,
            measured,
            draws: match drawn.widening.get(&pair)? {
                Some(widening) => widening.widen(measured, &draws, &drawn.rows),
                None => draws,
            },
        })
    }

    /// `None` where there are too few rows, groups, or rows of a class to tell.
    fn at_one_silo(&self) -> Option<Interval> {
        if self.units < TELLING || !self.events {
            return None;
        }
        Interval::of(self.measured, self.draws.iter().copied())
    }
}

/// The weighted mean of differences.
fn weighted(
    differences: &[GainDifference],
    weight: impl Fn(&GainDifference) -> f64,
) -> Option<Interval> {
    let draws = differences.first()?.draws.len();
    let mean = |of: &dyn Fn(&GainDifference) -> f64| {
        let (mut sum, mut weights) = (0.0, 0.0);
        for difference in differences {
            let value = of(difference);
            if value.is_finite() {
                sum += weight(difference) * value;
                weights += weight(difference);
            }
        }
        sum / weights
    };
    let each = (0..draws).map(|draw| mean(&|difference| difference.draws[draw]));
    Interval::of(mean(&|difference| difference.measured), each)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::statistic::student;
    use ModelKind::{Coalition, Local};

    fn compared(metric: &'static str, members: usize) -> GainSettings {
        GainSettings {
            metric,
            higher_is_better: metric == "roc-auc",
            seed: 1,
            members,
        }
    }

    fn models(each: &[(ModelKind, Vec<f64>)], targets: u32) -> ModelResults {
        let of = |(kind, values): &(ModelKind, Vec<f64>)| {
            let results = RowResults {
                targets: (0..values.len() as u32)
                    .map(|row| (row + targets) as f32)
                    .collect(),
                scores: [("mae".to_owned(), values.clone())].into(),
                ..RowResults::default()
            };
            (*kind, Arc::new(results))
        };
        each.iter().map(of).collect()
    }

    /// `rows` numbers between 0 and 1 that follow no order.
    fn noise(rows: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed, "noise");
        (0..rows).map(|_| random.uniform()).collect()
    }

    fn run(silos: &[ModelResults]) -> Gains {
        gains(compared("mae", silos.len()), silos, &Threads::new(2)).unwrap()
    }

    #[test]
    fn models_that_are_the_same_differ_by_nothing() {
        let (own, other) = (noise(40, 1), noise(40, 2));
        let same = models(&[(Local, own.clone()), (Coalition, own.clone())], 0);
        let none = Interval {
            by: 0.0,
            low: 0.0,
            high: 0.0,
        };
        let gains = run(&[same.clone(), same.clone()]);
        assert_eq!(gains.silos[1][0].interval, none);
        assert_eq!(gains.means[0].per_silo, none);
        // Beside silos whose models differ, too.
        let differ = models(&[(Local, own), (Coalition, other)], 100);
        let gains = run(&[same, differ]);
        assert_eq!(gains.silos[0][0].interval, none);
        assert_ne!(gains.silos[1][0].interval, none);
        assert!(gains.means[0].per_silo.low < gains.means[0].per_silo.high);
    }

    #[test]
    fn a_paired_difference_is_clear_where_models_share_the_spread() {
        let own = noise(40, 1);
        let better: Vec<f64> = own.iter().map(|error| error - 0.05).collect();
        let gain = &run(&[models(&[(Local, own), (Coalition, better)], 0)]).silos[0][0];
        assert_eq!((gain.model, gain.over), (Coalition, Local));
        assert!((gain.interval.by - 0.05).abs() < 1e-12 && gain.interval.is_clear());
        // Noise of its own for each model hides as small a difference.
        let other: Vec<f64> = noise(40, 2).iter().map(|error| error - 0.05).collect();
        let gain = run(&[models(&[(Local, noise(40, 1)), (Coalition, other)], 0)]).silos[0][0];
        assert!(!gain.interval.is_clear(), "{gain:?}");
    }

    #[test]
    fn rows_of_one_patient_do_not_make_an_interval_narrower() {
        // Twenty patients, once with one visit each, once with ten that are all alike.
        let own = noise(20, 1);
        let zero = vec![0.0; 20];
        let of = |errors: &[f64], visits: usize, groups: bool| {
            let repeated = |errors: &[f64]| -> Vec<f64> {
                let each = errors.iter().flat_map(|&error| vec![error; visits]);
                each.collect()
            };
            let mut all = models(
                &[(Local, repeated(errors)), (Coalition, repeated(&zero))],
                0,
            );
            let patients: Vec<u32> = (0..20).flat_map(|patient| vec![patient; visits]).collect();
            for results in all.values_mut().filter(|_| groups) {
                Arc::make_mut(results).groups.clone_from(&patients);
            }
            let gain = &run(&[all]).silos[0][0];
            gain.interval.high - gain.interval.low
        };
        let (once, by_patient, by_visit) =
            (of(&own, 1, false), of(&own, 10, true), of(&own, 10, false));
        assert!(
            (by_patient / once - 1.0).abs() < 0.15,
            "{by_patient} {once}"
        );
        assert!(by_visit < 0.5 * by_patient, "{by_visit} {by_patient}");
    }

    #[test]
    fn intervals_are_as_wide_as_students() {
        // Means of n normal numbers: the interval is ± t s/√n.
        let values: Vec<f64> = (0..400)
            .map(|row| noise(12, row).iter().sum::<f64>() - 6.0)
            .collect();
        for rows in [10, 30, 400] {
            let differences = &values[..rows];
            let mean = differences.iter().sum::<f64>() / rows as f64;
            let squares: f64 = differences.iter().map(|value| (value - mean).powi(2)).sum();
            let error = (squares / (rows - 1) as f64 / rows as f64).sqrt();
            let zero = vec![0.0; rows];
            let gain = run(&[models(
                &[(Local, differences.to_vec()), (Coalition, zero)],
                0,
            )])
            .silos[0][0];
            let wide = gain.interval.high - gain.interval.low;
            let expected = 2.0 * student(rows as f64 - 1.0) * error;
            assert!(
                (wide / expected - 1.0).abs() < 0.12,
                "{rows}: {wide}, {expected}"
            );
        }
        assert!((student(9.0) - 2.262).abs() < 0.01 && (student(29.0) - 2.045).abs() < 0.01);
    }

    #[test]
    fn silos_that_hold_out_the_same_rows_share_their_draws() {
        let difference = |seed| models(&[(Local, noise(50, seed)), (Coalition, vec![0.5; 50])], 0);
        let elsewhere = |seed: u64| {
            let models_of = [(Local, noise(50, seed)), (Coalition, vec![0.5; 50])];
            models(&models_of, 100 * seed as u32)
        };
        let wide = |gains: Gains| gains.means[0].per_silo.high - gains.means[0].per_silo.low;
        // Four times the same silo is no more than one; four silos with rows of their own are.
        let one = wide(run(&[difference(1)]));
        let same = wide(run(&[
            difference(1),
            difference(1),
            difference(1),
            difference(1),
        ]));
        let four = wide(run(&[
            elsewhere(1),
            elsewhere(2),
            elsewhere(3),
            elsewhere(4),
        ]));
        assert!((same / one - 1.0).abs() < 1e-9, "{same}, {one}");
        assert!(four < 0.7 * one, "{four}, {one}");
    }

    #[test]
    fn means_count_silos_or_rows_and_only_members() {
        let large = models(&[(Local, vec![2.0; 30]), (Coalition, vec![1.0; 30])], 0);
        let small = models(&[(Local, vec![4.0; 10]), (Coalition, vec![1.0; 10])], 50);
        let outside = models(&[(Local, vec![9.0; 10]), (Coalition, vec![0.0; 10])], 90);
        let silos = [large, small, outside];
        let found = gains(compared("mae", 2), &silos, &Threads::new(1)).unwrap();
        let mean = &found.means[0];
        assert_eq!(
            (mean.silos, mean.per_silo.by, mean.per_row.by),
            (2, 2.0, 1.5)
        );
        assert_eq!(found.silos[2][0].interval.by, 9.0);
    }

    #[test]
    fn few_rows_tell_nothing_about_one_silo() {
        let silo = models(&[(Local, vec![2.0; 9]), (Coalition, vec![1.0; 9])], 0);
        let found = run(&[silo]);
        assert!(found.silos[0].is_empty());
        assert_eq!(found.means[0].per_silo.by, 1.0);
    }

    #[test]
    fn the_same_seed_gives_the_same_intervals() {
        let silo = || models(&[(Local, noise(20, 1)), (Coalition, noise(20, 2))], 0);
        assert_eq!(run(&[silo()]).silos, run(&[silo()]).silos);
    }

    #[test]
    fn areas_under_roc_curves_are_resampled_by_rows() {
        let ranked = |ahead: bool| {
            let p = |row: usize| match (ahead, row % 2) {
                (true, 1) => 0.9,
                (true, _) => 0.1,
                _ => 0.5,
            };
            Arc::new(RowResults {
                scores: [("loss".to_owned(), vec![0.0; 40])].into(),
                targets: (0..40).map(|row| (row % 2) as f32).collect(),
                probabilities: (0..40).flat_map(|row| [1.0 - p(row), p(row)]).collect(),
                ..RowResults::default()
            })
        };
        let silo: ModelResults = [(Local, ranked(false)), (Coalition, ranked(true))].into();
        let found = gains(compared("roc-auc", 1), &[silo], &Threads::new(1)).unwrap();
        assert_eq!(found.silos[0][0].interval.by, 0.5);
        assert!(found.silos[0][0].interval.is_clear());
    }
}
