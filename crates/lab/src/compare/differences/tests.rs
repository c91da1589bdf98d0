//! Differences over seeds.

use simulations::random::Random;

use super::*;
use crate::statistic::{NORMAL, student};

#[test]
fn draws_of_few_units_are_widened() {
    let units = vec![vec![0, 2, 3], vec![1], vec![4, 5]];
    let differences = [1.0, 7.0, 1.0, 1.0, 4.0, 4.0];
    let rows = SharedDraws::default().of("rows", &units, 50);
    let [ours, theirs] = [differences.to_vec(), vec![0.0; 6]].map(Statistic::Mean);
    let drawn = DrawnDifference::of(1.0, (&ours, &theirs), ("rows", &units, &rows));
    assert!((drawn.measured - 3.0).abs() < 1e-12);
    let wider = 1.5f64.sqrt() * student(2.0) / NORMAL;
    for (mean, draw) in rows.means(&differences).into_iter().zip(&drawn.draws) {
        assert!((draw - (3.0 + wider * (mean - 3.0))).abs() < 1e-12);
    }
}

/// The test rows of the seeds.
#[derive(Debug, Clone, Copy)]
enum TestRows {
    /// The same ones, which also means the same luck.
    Shared,
    Own,
}

/// The share of experiments whose interval holds the truth, 0.
fn coverage(seeds: usize, spread: f64, test: TestRows) -> f64 {
    const TRIALS: usize = 400;
    const ROWS: usize = 40;
    let units: Vec<Vec<usize>> = (0..ROWS).map(|row| vec![row]).collect();
    let shared = SharedDraws::default();
    let drawn: Vec<_> = (0..seeds)
        .map(|seed| match test {
            TestRows::Shared => shared.of("rows", &units, 1_000),
            TestRows::Own => shared.of(&format!("rows {seed}"), &units, 1_000),
        })
        .collect();
    let mut random = Random::new(7, "coverage");
    // Nearly normal, with mean 0 and deviation 1.
    let mut row = || (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
    let held = (0..TRIALS).filter(|_| {
        let common: Vec<f64> = (0..ROWS).map(|_| row()).collect();
        let each: Vec<Option<DrawnDifference>> = drawn
            .iter()
            .map(|drawn| {
                let seed = spread * row();
                let own = |at: usize, row: &mut dyn FnMut() -> f64| match test {
                    TestRows::Shared => common[at],
                    TestRows::Own => row(),
                };
                let rows = (0..ROWS).map(|at| own(at, &mut row) + seed);
                let rows: Vec<f64> = rows.collect();
                let [ours, theirs] = [rows, vec![0.0; ROWS]].map(Statistic::Mean);
                let rows = ("rows", &*units, &**drawn);
                Some(DrawnDifference::of(1.0, (&ours, &theirs), rows))
            })
            .collect();
        let found = over_seeds(&each).expect("all are finite");
        found.low <= 0.0 && 0.0 <= found.high
    });
    held.count() as f64 / TRIALS as f64
}

#[test]
fn intervals_hold_what_they_promise_with_few_seeds() {
    for seeds in [3, 5, 10] {
        for spread in [0.0, 0.2, 2.0] {
            for test in [TestRows::Shared, TestRows::Own] {
                let found = coverage(seeds, spread, test);
                let what = format!("{seeds} seeds, spread {spread}, {test:?}");
                assert!(found >= 0.93, "{what}: {found}");
            }
        }
    }
}

#[test]
fn below_three_seeds_an_interval_is_of_rows_alone() {
    let one = |measured: f64| {
        let draws = (0..200).map(|draw| measured + f64::from(draw) / 1_000.0 - 0.1);
        Some(DrawnDifference {
            measured,
            draws: draws.collect(),
        })
    };
    let two = over_seeds(&[one(0.0), one(1.0)]).expect("finite");
    assert!((two.high - two.low) < 0.2, "{two:?}");
    let three = over_seeds(&[one(0.0), one(1.0), one(0.5)]).expect("finite");
    // s = .5, √3 seeds, Student's 4.303.
    assert!((three.high - 0.5 - 1.246).abs() < 0.01, "{three:?}");
}

/// One silo in one seed with these scores of every row, in groups.
fn silo(metric: &str, scores: Vec<f32>, classes: Vec<u16>, groups: Vec<u32>) -> UnitResult {
    use super::super::result::ExperimentUnit;
    let unit = ExperimentUnit {
        variant: String::new(),
        strategy: "x".into(),
        seed: 0,
    };
    let second = scores.clone();
    let rows = StoredRows {
        scores: [(metric.to_owned(), scores)].into(),
        second: if classes.is_empty() {
            Vec::new()
        } else {
            second
        },
        classes,
        groups,
        ..StoredRows::default()
    };
    let mut result = UnitResult::new(&unit);
    result.silos.push(StoredSilo {
        name: "north".into(),
        outside: false,
        values: Default::default(),
        best: Default::default(),
        rows: Some(rows),
        served: None,
    });
    result
}

fn difference(metric: &str, ours: &UnitResult, theirs: &UnitResult) -> MeanDifference {
    compared(metric, ours, theirs).expect("there are rows")
}

fn compared(metric: &str, ours: &UnitResult, theirs: &UnitResult) -> Option<MeanDifference> {
    let pair = ComparedPair {
        metric,
        higher_is_better: true,
        outside: false,
        ours: (&[ours], SiloModel::Strategy),
        theirs: (&[theirs], SiloModel::Strategy),
        draws: &SharedDraws::default(),
    };
    pair.difference()
}

#[test]
fn the_reason_for_no_interval_is_stated() {
    let of = |positives: usize| {
        let classes: Vec<u16> = (0..60).map(|row| u16::from(row < positives)).collect();
        let scores = |model: usize| {
            (0..60)
                .map(|row| ((row * model) % 7) as f32 / 7.0)
                .collect()
        };
        let silo = |model| silo("accuracy", scores(model), classes.clone(), Vec::new());
        difference("roc-auc", &silo(3), &silo(5))
    };
    let (rare, common) = (of(4), of(20));
    assert_eq!((rare.interval(), rare.seeds), (None, 0));
    assert_eq!(rare.no_interval, Some(NoInterval::RareClass));
    assert!(common.interval().is_some() && common.no_interval.is_none());
    assert_eq!(common.seeds, 1);
    // No probabilities, no area.
    let numbers = silo("mae", vec![0.5; 30], Vec::new(), Vec::new());
    let found = difference("roc-auc", &numbers, &numbers);
    assert_eq!(found.no_interval, Some(NoInterval::NotMeasured));
}

#[test]
fn a_silo_with_few_persons_shows_no_difference_with_many_rows() {
    let scores = |by: f32| (0..120).map(|row| (row % 11) as f32 / 11.0 + by).collect();
    let tested = |persons: u32| {
        let groups: Vec<u32> = (0..120).map(|row| row % persons).collect();
        let silo = |by| silo("mae", scores(by), Vec::new(), groups.clone());
        let found = difference("mae", &silo(1.0), &silo(0.0));
        found.wins + found.ties + found.losses
    };
    assert_eq!((tested(9), tested(10)), (0, 1));
}

#[test]
fn a_silo_whose_own_model_is_not_tuned_is_in_no_difference() {
    let scores = |by: f32| (0..40).map(|row| (row % 11) as f32 / 11.0 + by).collect();
    let both = |north: f32, south: f32| {
        let mut result = silo("mae", scores(north), Vec::new(), Vec::new());
        let other = silo("mae", scores(south), Vec::new(), Vec::new());
        result.silos.extend(other.silos);
        result.silos[1].name = "south".into();
        result
    };
    let (ours, mut own) = (both(1.0, 5.0), both(0.0, 0.0));
    let gain = |own: &UnitResult| {
        let found = compared("mae", &ours, own)?;
        let silos = found.wins + found.ties + found.losses;
        Some((found.interval()?.by.round(), silos))
    };
    assert_eq!(gain(&own), Some((3.0, 2)));
    own.untuned = vec!["south".into()];
    assert_eq!(gain(&own), Some((1.0, 1)));
    own.untuned.push("north".into());
    assert_eq!(gain(&own), None);
}
