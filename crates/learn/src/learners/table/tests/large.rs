//! Numbers far from 0, such as seconds since 1970, of which the last digits decide.

use super::*;

/// Zero of a column and one step of it: seconds, milliseconds, microseconds and nanoseconds since 1970,
/// numbers of samples, dates written as 20241231235900, and numbers far below 0.
const LARGE: [(f64, f64); 7] = [
    (1.7e9, 1.0),
    (1.7e12, 1e3),
    (1.7e15, 1e6),
    (1.7e18, 1e9),
    (1e12, 1.0),
    (20_241_231_235_900.0, 1.0),
    (-1e12, 0.5),
];

/// `days = age / 10 + minute`, where the minute is that of a column of 60 steps from `zero`; the class is
/// whether the minute has passed half. The target starts at `start`.
fn stamps(rows: usize, seed: u64, (zero, step): (f64, f64), start: f64, classes: bool) -> Table {
    let mut rng = stream(seed, "stamps");
    let mut table = Table::new(vec!["stamp".into(), "age".into()]);
    for _ in 0..rows {
        let at = (60.0 * uniform(&mut rng)).floor();
        let age = (20.0 + 70.0 * uniform(&mut rng)).floor();
        let days = 0.1 * age + at + 0.2 * (uniform(&mut rng) - 0.5);
        let target = if classes {
            f64::from(at >= 30.0)
        } else {
            start + days
        };
        table.push(&[zero + step * at, age], target);
    }
    table
}

/// The metric of a federation of two silos after training on both in turn.
fn reached(kind: LearnerKind, standardise: Standardise, of: (f64, f64), start: f64) -> f64 {
    let classes = !matches!(
        kind,
        LearnerKind::Absolute | LearnerKind::Squared | LearnerKind::Numbers
    );
    let silos =
        [1, 2].map(|seed| learner(kind, &stamps(150, seed, of, start, classes), standardise));
    let mut model = silos[0].initial(0);
    if standardise == Standardise::Federation {
        let none = Params::empty();
        let summaries = silos
            .each_ref()
            .map(|silo| run(silo, &none, &Task::Summarise, 0).shared);
        model = common_scale(&model, &summaries);
    }
    for round in 0..12 {
        let silo = &silos[round % 2];
        model = run(silo, &model, &task(20, 16, 0.02), round as u64).shared;
    }
    let metrics = test_metrics(&silos[0], &model);
    metrics.values[if classes { "accuracy" } else { "mae" }]
}

#[test]
fn columns_far_from_zero_keep_the_digits_that_decide() {
    for standardise in [Standardise::Federation, Standardise::Silo] {
        for of in LARGE {
            let named = format!("{of:?}, {standardise:?}");
            let linear = reached(LearnerKind::Squared, standardise, of, 0.0);
            assert!(linear < 0.2, "linear, {named}: {linear}");
            let layers = reached(LearnerKind::Numbers, standardise, of, 0.0);
            assert!(layers < 1.0, "mlp, {named}: {layers}");
            for kind in [LearnerKind::Logistic, LearnerKind::Mlp] {
                let right = reached(kind, standardise, of, 0.0);
                assert!(right > 0.93, "classes, {named}: {right}");
            }
        }
    }
}

#[test]
fn a_target_far_from_zero_is_predicted_as_one_at_zero() {
    for standardise in [Standardise::Federation, Standardise::Silo] {
        for start in [1e9, -1e9, 1.7e12] {
            let error = reached(LearnerKind::Squared, standardise, (1.7e12, 1e3), start);
            assert!(error < 0.2, "{start}, {standardise:?}: {error}");
        }
    }
}

#[test]
fn unscaled_columns_beyond_single_precision_are_refused_by_name() {
    let prepare = |table: &Table| {
        let target = Target::Number { unit: "d".into() };
        let split = SplitConfig::default();
        Prepared::new("north", table, target, &split, Standardise::None, 3)
    };
    for of in LARGE {
        let error = prepare(&stamps(50, 1, of, 0.0, false))
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("silo \"north\": the column \"stamp\"")
                && error.contains("`standardise"),
            "{error}"
        );
    }
    let error = prepare(&stamps(50, 1, (0.0, 1.0), 1e9, false))
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("silo \"north\": the target"), "{error}");
    // Years, numbers of patients, small numbers, a constant, and one with some noise around it.
    for of in [
        (2020.0, 0.1),
        (100_000.0, 1.0),
        (0.0, 1e-9),
        (1.7e9, 0.0),
        (1.0, 1e-8),
    ] {
        prepare(&stamps(50, 1, of, 0.0, false)).unwrap();
    }
}

#[test]
fn summaries_hold_the_digits_of_a_sum() {
    let table = stamps(150, 1, (1.7e12, 1.0), 1e9, false);
    let learner = learner(LearnerKind::Squared, &table, Standardise::Federation);
    let summary = learner.summarise().unwrap();
    let number = |name: &str, column: usize| f64::from(summary.tensor(name).unwrap()[column]);
    let (rows, count) = (&learner.train, learner.samples() as f64);
    let mean = Moments::of((0..rows.len()).map(|row| rows.exact_feature(row, 0) - 1.7e12)).mean;
    let sent = (number("sum", 0) + number("sum.rest", 0)) / count - 1.7e12;
    assert!((sent - mean).abs() < 0.01, "{sent} {mean}");
    let targets = Moments::of(rows.exact_targets().map(|y| y - 1e9)).mean;
    let sent = (number("sum", 2) + number("sum.rest", 2)) / count - 1e9;
    assert!((sent - targets).abs() < 1e-4, "{sent} {targets}");
}

#[test]
fn parts_of_rows_keep_their_digits() {
    let table = stamps(60, 1, (1.7e12, 1.0), 1e9, false);
    let learner = learner(LearnerKind::Squared, &table, Standardise::Federation);
    let rows = &*learner.train;
    let last = rows.len() - 1;
    let same = |other: &Rows, at: usize, row: usize| {
        assert_eq!(other.exact_feature(at, 0), rows.exact_feature(row, 0));
        assert!(rows.exact_feature(row, 0) >= 1.7e12);
    };
    same(&rows.pick(&[last as u32, 0]), 0, last);
    same(&Rows::concat(&[rows, rows]), rows.len() + 1, 1);
    same(&rows.labelled(&vec![1; rows.len()]), 2, 2);
    let order: Vec<usize> = (0..rows.len()).rev().collect();
    let turned = rows.with_targets_of(&order);
    assert_eq!(turned.exact_targets().next(), rows.exact_targets().last());
    let single = |other: &Rows| other.features(0)[0] == other.exact_feature(0, 0) as f32;
    assert!(single(rows) && single(&rows.pick(&[3])));
}
