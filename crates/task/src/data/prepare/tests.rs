#![allow(clippy::unwrap_used)]
use super::*;
use crate::data::ShiftConfig;

fn table(rows: usize) -> Table {
    let mut table = Table::new(vec!["a".into(), "constant".into()]);
    for row in 0..rows {
        table.push(&[(row * row) as f64, 0.1], 3.0 * row as f64);
    }
    table
}

fn number() -> Target {
    Target::Number { unit: "m".into() }
}

fn prepare(table: &Table, standardise: Standardise) -> Result<Prepared, DataError> {
    Prepared::new(
        "s",
        table,
        number(),
        &SplitConfig::default(),
        standardise,
        3,
    )
}

#[test]
fn a_silo_standardises_by_its_training_rows() {
    let data = prepare(&table(20), Standardise::Silo).unwrap();
    assert_eq!(
        (data.train.len(), data.validation.len(), data.test.len()),
        (14, 0, 6)
    );
    let column = Moments::of((0..14).map(|row| f64::from(data.train.features(row)[0])));
    assert!(column.mean.abs() < 1e-6 && (column.deviation() - 1.0).abs() < 1e-6);
    let target = Moments::of(data.train.targets().iter().map(|&y| f64::from(y)));
    assert!(target.mean.abs() < 1e-6 && (target.deviation() - 1.0).abs() < 1e-6);
    assert!(data.preparation.target_deviation > 1.0);
    assert!(
        (0..14).all(|row| data.train.features(row)[1] == 0.0),
        "constant, not blown up"
    );
}

#[test]
fn a_shift_moves_test_rows_alone_by_deviations_of_the_column() {
    let mut table = table(400);
    table.columns[1] = "binary".into();
    (0..400).for_each(|row| table.values[2 * row + 1] = (row % 2) as f64);
    let with = |noise, mean, standardise| {
        let shift = Some(ShiftConfig { noise, mean });
        let split = SplitConfig {
            shift,
            ..SplitConfig::default()
        };
        Prepared::new("s", &table, number(), &split, standardise, 3).unwrap()
    };
    let column = |rows: &Rows, at: usize| -> Vec<f64> {
        let rows = (0..rows.len()).map(|row| f64::from(rows.features(row)[at]));
        rows.collect()
    };
    let plain = with(0.0, 0.0, Standardise::Silo);
    for (noise, mean) in [(0.0, 2.0), (0.5, 0.0)] {
        let moved = with(noise, mean, Standardise::Silo);
        assert_eq!(moved.train, plain.train);
        assert_eq!(column(&moved.test, 1), column(&plain.test, 1));
        let pairs = column(&moved.test, 0)
            .into_iter()
            .zip(column(&plain.test, 0));
        let by: Vec<f64> = pairs.map(|(moved, plain)| moved - plain).collect();
        let by = Moments::of(by.into_iter());
        assert!((by.mean - mean).abs() < 0.2 * noise + 1e-5, "{}", by.mean);
        assert!(
            (by.squares / by.count as f64).sqrt() - noise < 0.1,
            "{}",
            by.squares
        );
        assert!((by.squares / by.count as f64).sqrt() >= 0.8 * noise);
    }
    // In the column's own unit where the silo does not scale.
    let (plain, moved) = (
        with(0.0, 0.0, Standardise::None),
        with(0.0, 1.0, Standardise::None),
    );
    let by = column(&moved.test, 0)[0] - column(&plain.test, 0)[0];
    let deviation = Moments::of(column(&plain.train, 0).into_iter()).deviation();
    assert!((by / deviation - 1.0).abs() < 1e-3, "{by} {deviation}");
}

#[test]
fn a_silo_that_only_tests_keeps_all_its_rows() {
    let mut table = table(6);
    table.parts = vec![methods::Split::Test; 6];
    table.values[0] = f64::NAN;
    table.subgroups = vec![0, 1, 1, 0, 2, 2];
    let data = prepare(&table, Standardise::None).unwrap();
    assert_eq!((data.train.len(), data.test.len()), (0, 6));
    assert_eq!(
        data.test.features(0)[0],
        11.0,
        "the mean of 1, 4, 9, 16 and 25"
    );
    assert_eq!(data.test.subgroups(), [0, 1, 1, 0, 2, 2]);
    assert_eq!(data.test.pick(&[4, 0]).subgroups(), [2, 0]);
    let error = prepare(&table, Standardise::Silo)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("has test rows only"), "{error}");
}

#[test]
fn several_numbers_share_a_scale() {
    let mut table = Table::new(vec!["a".into()]);
    (0..20).for_each(|row| {
        table.push_all(&[f64::from(row)], &[f64::from(row), f64::from(-9 * row)]);
    });
    let target = Target::Numbers {
        unit: "m".into(),
        count: 2,
    };
    let split = SplitConfig::default();
    let data = Prepared::new("s", &table, target, &split, Standardise::Silo, 3).unwrap();
    assert_eq!((data.train.len(), data.test.len()), (14, 6));
    let all = Moments::of(data.train.targets().iter().map(|&y| f64::from(y)));
    assert!(all.mean.abs() < 1e-6 && (all.deviation() - 1.0).abs() < 1e-6);
    let last = data.train.target(13);
    assert!(last.len() == 2 && last[0] > last[1]);
}

#[test]
fn moments_of_numbers_far_from_zero_equal_those_near_zero() {
    let at = |zero: f64| Moments::of((0..1000).map(move |row| zero + f64::from(row % 60)));
    let here = at(0.0);
    for zero in [1.7e9, 1.7e12, -1e12, 1.7e15] {
        let there = at(zero);
        assert!((there.mean - zero - here.mean).abs() <= 1e-15 * zero.abs());
        assert!(
            (there.deviation() / here.deviation() - 1.0).abs() < 1e-6,
            "{there:?}"
        );
    }
    for constant in [0.1, 1000.1, 1.7e18, -3e-9] {
        let moments = Moments::of(std::iter::repeat_n(constant, 999));
        assert_eq!(
            (moments.squares, moments.mean, moments.deviation()),
            (0.0, constant, 1.0)
        );
    }
}

#[test]
fn unscaled_rows_keep_their_units() {
    for standardise in [Standardise::None, Standardise::Federation] {
        let data = prepare(&table(20), standardise).unwrap();
        assert_eq!(data.preparation.target_deviation, 1.0);
        assert!(data.test.targets().iter().all(|y| y % 3.0 == 0.0));
    }
}

#[test]
fn missing_values_become_the_mean_of_the_training_rows() {
    let mut table = table(20);
    (0..20)
        .filter(|row| row % 3 == 0)
        .for_each(|row| table.values[2 * row] = f64::NAN);
    let data = prepare(&table, Standardise::Silo).unwrap();
    let parts = SplitConfig::default().divide(&[0; 20], 3, "s").unwrap();
    let test = parts.test.iter().enumerate();
    for (place, row) in test.filter(|(_, row)| *row % 3 == 0) {
        assert_eq!(
            data.test.features(place)[0],
            0.0,
            "row {row} holds the mean"
        );
    }
    // Without a value to train on, a column is average in every row, also where it has a value.
    (0..20).for_each(|row| table.values[2 * row] = f64::NAN);
    let held_out = parts.test[0];
    table.values[2 * held_out] = 80.0;
    let data = prepare(&table, Standardise::Silo).unwrap();
    assert_eq!(data.absent, ["a"]);
    assert!((0..6).all(|row| data.test.features(row)[0] == 0.0));
    let error = prepare(&table, Standardise::None)
        .err()
        .unwrap()
        .to_string();
    let expected = "silo \"s\": column \"a\" is missing in every training row: ";
    assert!(error.starts_with(expected), "{error}");
}
