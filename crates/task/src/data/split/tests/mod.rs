#![allow(clippy::unwrap_used)]
use super::*;
use proptest::prelude::*;

mod by_unit;

fn fractions(validation: f64, test: f64) -> SplitConfig {
    SplitConfig {
        validation,
        test,
        ..SplitConfig::default()
    }
}

/// Rows whose targets are their classes.
fn table(classes: &[usize]) -> Table {
    let mut table = Table::new(vec!["a".into()]);
    let rows = classes.iter().enumerate();
    rows.for_each(|(row, &class)| table.push(&[row as f64], class as f64));
    table
}

#[test]
fn fed_heart_disease_has_as_many_rows_in_each_part_as_in_flamby() {
    // Train and test rows of FLamby's own split.
    let flamby = [(303, 199, 104), (261, 172, 89), (46, 30, 16), (130, 85, 45)];
    for (rows, train, test) in flamby {
        let parts = fractions(0.0, 0.34).divide(&vec![0; rows], 1, "a").unwrap();
        assert_eq!((parts.train.len(), parts.test.len()), (train, test));
    }
}

#[test]
fn a_seed_of_the_split_takes_the_place_of_the_scenario_s() {
    let split = |seed, own: Option<u64>| {
        let split = SplitConfig {
            seed: own,
            ..SplitConfig::default()
        };
        split.parts(&table(&[0; 50]), &[0; 50], seed, "a").unwrap()
    };
    assert_eq!(split(1, Some(7)), split(2, Some(7)));
    assert_eq!(split(1, Some(7)), split(7, None));
    assert_ne!(split(1, None), split(2, None));
}

#[test]
fn by_time_the_last_rows_are_held_out() {
    let mut table = table(&[0; 10]);
    table.times = vec![9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0];
    let parts = fractions(0.2, 0.3).parts(&table, &[0; 10], 1, "a").unwrap();
    assert_eq!(parts.test, [0, 1, 2]);
    assert_eq!(parts.validation, [3, 4]);
    assert_eq!(parts.train, [5, 6, 7, 8, 9]);
    // A row that goes on for 2 reaches into the time of the two parts after it.
    table.span = 2.0;
    let parts = fractions(0.2, 0.3).parts(&table, &[0; 10], 1, "a").unwrap();
    assert_eq!((parts.test, parts.validation), (vec![0, 1, 2], vec![4, 5]));
    assert_eq!(parts.train, [7, 8, 9]);
}

#[test]
fn given_parts_are_kept_and_training_rows_give_the_validation() {
    let classes = [0; 20];
    let mut table = table(&classes);
    let part = |row| if row < 5 { Split::Test } else { Split::Train };
    table.parts = (0..20).map(part).collect();
    let parts = fractions(0.2, 0.9).parts(&table, &classes, 1, "a").unwrap();
    assert_eq!(parts.test, [0, 1, 2, 3, 4]);
    assert_eq!((parts.train.len(), parts.validation.len()), (12, 3));
    table.parts[19] = Split::Validation;
    let parts = fractions(0.2, 0.9).parts(&table, &classes, 1, "a").unwrap();
    assert_eq!((parts.train.len(), parts.validation), (14, vec![19]));
    table.parts = vec![Split::Test; 20];
    let parts = fractions(0.2, 0.3).parts(&table, &classes, 1, "a").unwrap();
    assert_eq!((parts.train.len(), parts.test.len()), (0, 20));
}

#[test]
fn held_out_parts_are_rounded_up_and_stratified() {
    // Cleveland in Fed-Heart-Disease: 303 rows, 164 of class 0, 34 % held out.
    let classes: Vec<usize> = (0..303).map(|row| usize::from(row >= 164)).collect();
    let split = fractions(0.0, 0.34);
    let parts = split.divide(&classes, 7, "Cleveland").unwrap();
    assert_eq!((parts.train.len(), parts.test.len()), (199, 104));
    let positives = parts.test.iter().filter(|&&row| row >= 164).count();
    assert_eq!(positives, 48, "104 × 139 / 303 = 47.7");
}

#[test]
fn too_few_rows_are_refused_with_their_numbers() {
    let split = fractions(0.2, 0.3);
    let error = split.divide(&[0, 0], 7, "small").unwrap_err();
    assert_eq!(
        error.to_string(),
        "silo \"small\" has 2 usable rows, split into train 0, validation 1, test 1; \
         it needs at least 1 to train and 1 to test"
    );
}

#[test]
fn fractions_must_leave_rows_to_train_on() {
    for (validation, test) in [(0.0, 0.0), (0.5, 0.5), (-0.1, 0.3), (f64::NAN, 0.3)] {
        assert!(
            fractions(validation, test).check().is_err(),
            "{validation} {test}"
        );
    }
}

proptest! {
    #[test]
    fn every_row_is_in_exactly_one_part_and_a_seed_repeats_them(
        classes in proptest::collection::vec(0usize..3, 4..60),
        seed in any::<u64>(),
    ) {
        let split = fractions(0.2, 0.3);
        let parts = split.divide(&classes, seed, "a").unwrap();
        prop_assert_eq!(&parts, &split.divide(&classes, seed, "a").unwrap());
        let mut all = [parts.train, parts.validation, parts.test].concat();
        all.sort_unstable();
        prop_assert_eq!(all, (0..classes.len()).collect::<Vec<_>>());
    }
}

proptest! {
    #[test]
    fn the_test_rows_do_not_depend_on_the_validation_fraction(
        classes in proptest::collection::vec(0usize..3, 8..60),
        seed in any::<u64>(),
        validation in 0.0..0.5f64,
        timed in any::<bool>(),
    ) {
        let mut table = table(&classes);
        if timed {
            table.times = (0..classes.len()).map(|row| ((row * 7919) % 101) as f64).collect();
        }
        let parts = |validation| fractions(validation, 0.3).parts(&table, &classes, seed, "a").unwrap();
        let (without, with) = (parts(0.0), parts(validation));
        prop_assert_eq!(&without.test, &with.test);
        let mut both = [with.train, with.validation].concat();
        both.sort_unstable();
        prop_assert_eq!(both, without.train);
    }
}

#[test]
fn another_seed_or_silo_name_gives_another_split() {
    let split = SplitConfig::default();
    let base = split.divide(&[0; 100], 1, "a").unwrap();
    assert_ne!(base, split.divide(&[0; 100], 2, "a").unwrap());
    assert_ne!(base, split.divide(&[0; 100], 1, "b").unwrap());
}

/// The group of every row from these numbers, each of a patient.
fn grouped_table(classes: &[usize], groups: &[u32]) -> Table {
    Table {
        groups: groups.to_vec(),
        ..table(classes)
    }
}

/// The patients of some rows.
fn patients(table: &Table, rows: &[usize]) -> std::collections::BTreeSet<u32> {
    rows.iter().map(|&row| table.groups[row]).collect()
}

#[test]
fn a_split_by_group_is_divided_by_the_classes_of_groups() {
    // Forty patients with three visits each; a quarter died.
    let groups: Vec<u32> = (0..120).map(|row| row % 40).collect();
    let classes: Vec<usize> = groups
        .iter()
        .map(|patient| usize::from(patient % 4 == 0))
        .collect();
    let table = grouped_table(&classes, &groups);
    let parts = fractions(0.2, 0.3).parts(&table, &classes, 1, "a").unwrap();
    let sizes = [&parts.train, &parts.validation, &parts.test].map(Vec::len);
    assert_eq!(sizes, [60, 24, 36]);
    let died = parts.test.iter().filter(|&&row| classes[row] == 1).count();
    assert_eq!(died, 9);
}

#[test]
fn groups_that_begin_last_are_held_out_and_none_trains_later() {
    // Patient 0 comes at 0 and 9, patient 1 at 1 and 2, patient 2 at 3 and 4, patient 3 at 5 and 8.
    let mut table = grouped_table(&[0; 8], &[0, 0, 1, 1, 2, 2, 3, 3]);
    table.times = vec![0.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0];
    let parts = fractions(0.25, 0.25)
        .parts(&table, &[0; 8], 1, "a")
        .unwrap();
    assert_eq!((parts.test, parts.validation), (vec![6, 7], vec![4, 5]));
    assert_eq!(
        parts.train,
        [0, 2, 3],
        "the visit at 9 is later than the test rows"
    );
}

#[test]
fn given_parts_keep_groups_whole_and_validation_is_by_group() {
    let groups: Vec<u32> = (0..40).map(|row| row / 4).collect();
    let mut table = grouped_table(&[0; 40], &groups);
    let part = |row| if row < 8 { Split::Test } else { Split::Train };
    table.parts = (0..40).map(part).collect();
    let parts = fractions(0.25, 0.3)
        .parts(&table, &[0; 40], 1, "a")
        .unwrap();
    assert_eq!(
        (parts.train.len(), parts.validation.len(), parts.test.len()),
        (24, 8, 8)
    );
    assert!(patients(&table, &parts.train).is_disjoint(&patients(&table, &parts.validation)));
    table.parts[8] = Split::Test;
    let error = fractions(0.25, 0.3)
        .parts(&table, &[0; 40], 1, "a")
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("1 of 10 groups of `split.group`"),
        "{error}"
    );
}

#[test]
fn one_patient_cannot_be_divided_and_contradictions_are_refused() {
    let table = grouped_table(&[0; 6], &[7; 6]);
    let error = fractions(0.0, 0.3)
        .parts(&table, &[0; 6], 1, "a")
        .unwrap_err();
    let said = "6 usable rows of 1 group (`split.group`), split into train 0, validation 0, test 1";
    assert!(error.to_string().contains(said), "{error}");
    let text = |text: &str| toml::from_str::<SplitConfig>(text).unwrap().check();
    text("group = 'patient'\ntime = 'day'").unwrap();
    for (wrong, said) in [
        ("group = 'patient'\ncolumn = 'part'", "exclude each other"),
        ("group = 'day'\ntime = 'day'", "are both \"day\""),
    ] {
        let error = text(wrong).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

proptest! {
    #[test]
    fn no_group_is_in_two_parts(
        rows in proptest::collection::vec((0u32..30, 0usize..3), 40..120),
        seed in any::<u64>(),
        timed in any::<bool>(),
        validation in 0.0..0.4f64,
    ) {
        let (groups, classes): (Vec<u32>, Vec<usize>) = rows.into_iter().unzip();
        let mut table = grouped_table(&classes, &groups);
        if timed {
            table.times = (0..groups.len()).map(|row| ((row * 7919) % 101) as f64).collect();
        }
        let Ok(parts) = fractions(validation, 0.3).parts(&table, &classes, seed, "a") else {
            // Patients of whom every visit is late may leave nothing to train on.
            prop_assert!(timed);
            return Ok(());
        };
        let each = [&parts.train, &parts.validation, &parts.test].map(|rows| patients(&table, rows));
        prop_assert!(each[0].is_disjoint(&each[1]) && each[0].is_disjoint(&each[2]));
        prop_assert!(each[1].is_disjoint(&each[2]));
        let held = |rows: &[usize]| rows.iter().map(|&row| table.times[row]).fold(f64::INFINITY, f64::min);
        if timed {
            let first = held(&parts.test).min(held(&parts.validation));
            prop_assert!(parts.train.iter().all(|&row| table.times[row] <= first));
        } else {
            prop_assert_eq!(parts.train.len() + parts.validation.len() + parts.test.len(), groups.len());
            let without = fractions(0.0, 0.3).parts(&table, &classes, seed, "a").unwrap();
            prop_assert_eq!(without.test, parts.test);
        }
    }
}
