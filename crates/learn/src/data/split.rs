//! Splits a silo's rows into those to train on, to choose hyper-parameters with, and to test on.

use serde::{Deserialize, Serialize};

use methods::learner::Split;

use super::{DataError, Table};
use crate::random::{shuffle, stream};

/// Which rows of a silo are held out. The rest trains. The test rows of a seed are the same whatever
/// `validation` is, so that after choosing on validation rows one can train again on training and
/// validation rows together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SplitConfig {
    /// Fraction for choosing hyper-parameters; of the training rows alone, where the data give the
    /// parts and none for validation. Default 0.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
    pub validation: f64,
    /// Fraction for the final evaluation. Default 0.3 (CS-RCFL, experiments). Without meaning where the
    /// data give the parts.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub test: f64,
    /// The column of `rows` that gives each row's part: `train`, `validation` or `test`. A silo whose
    /// rows are all for testing stays outside of the federation. By default rows are divided at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// The column of `rows` with each row's time, a number or a date such as `2024-05-31`: the last rows
    /// of every silo are then its test rows, and those before them its validation rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Seed of the split, and of what a source draws. By default that of the scenario; with one of its own
    /// silos and their rows stay the same while trainings vary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How the test rows are changed, to measure models on rows unlike those that they learned from. Not
    /// at all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<ShiftConfig>,
}

/// How test rows differ from the others. Columns of zeros and ones stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ShiftConfig {
    /// Standard deviation of normal noise that is added to every feature, in deviations of that column
    /// over the silo's training rows. Default 0.
    #[schemars(range(min = 0), extend("x-unit" = "deviations"))]
    pub noise: f64,
    /// What is added to every feature, in the same unit. Default 0.
    #[schemars(extend("x-unit" = "deviations"))]
    pub mean: f64,
}

impl Default for SplitConfig {
    fn default() -> Self {
        Self {
            validation: 0.0,
            test: 0.3,
            column: None,
            time: None,
            seed: None,
            shift: None,
        }
    }
}

/// Row numbers of each part, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) train: Vec<usize>,
    pub(crate) validation: Vec<usize>,
    pub(crate) test: Vec<usize>,
}

impl SplitConfig {
    /// Checks that the fractions leave rows to train on.
    ///
    /// # Errors
    /// [`DataError::Config`].
    pub(crate) fn check(&self) -> Result<(), DataError> {
        let fine = (0.0..1.0).contains(&self.validation)
            && self.test > 0.0
            && self.validation + self.test < 1.0;
        if let Some(ShiftConfig { noise, mean }) = self.shift
            && !(noise.is_finite() && noise >= 0.0 && mean.is_finite())
        {
            return Err(DataError::Config(format!(
                "`split.shift`: `noise` is {noise} and `mean` is {mean}: `noise` must be at least 0, and \
                 both finite"
            )));
        }
        fine.then_some(()).ok_or_else(|| {
            DataError::Config(format!(
                "`split`: `validation` is {} and `test` is {}: `validation` must be at least 0, `test` above 0, and both together below 1",
                self.validation, self.test
            ))
        })
    }

    /// The parts of a silo's rows. Where its table gives them, they are used; of the training rows the
    /// fraction `validation` is then taken for validation, if the table has no validation rows: by time
    /// where the table has times, at random otherwise. Rows without parts are divided by time, or at
    /// random where they have none.
    ///
    /// # Errors
    /// [`DataError::TooFewRows`] where nothing is left to train on or to test on, unless the data want
    /// it so.
    pub(crate) fn parts(
        &self,
        table: &Table,
        classes: &[usize],
        seed: u64,
        silo: &str,
    ) -> Result<Parts, DataError> {
        let seed = self.seed.unwrap_or(seed);
        if table.parts.is_empty() && table.times.is_empty() {
            return self.divide(classes, seed, silo);
        }
        if table.parts.is_empty() {
            return self.by_time(table, silo);
        }
        let of = |part: Split| -> Vec<usize> {
            let rows = table.parts.iter().enumerate();
            let rows = rows.filter(|(_, own)| **own == part);
            rows.map(|(row, _)| row).collect()
        };
        let (mut train, mut validation) = (of(Split::Train), of(Split::Validation));
        let given = train.len();
        if validation.is_empty() && !train.is_empty() {
            let held = count(self.validation, train.len());
            if table.times.is_empty() {
                let mut groups = grouped(&train, classes);
                let mut rng = stream(seed, &format!("validation {silo}"));
                groups.iter_mut().for_each(|group| shuffle(&mut rng, group));
                validation = take(&mut groups, held);
                train = groups.concat();
                train.sort_unstable();
            } else {
                validation = last(table, &mut train, held);
            }
        }
        if train.is_empty() && given > 0 {
            return Err(DataError::TooFewRows {
                silo: silo.to_owned(),
                rows: table.len(),
                train: 0,
                validation: validation.len(),
                test: of(Split::Test).len(),
            });
        }
        Ok(Parts {
            train,
            validation,
            test: of(Split::Test),
        })
    }

    /// The last rows by time for testing, and those before them for validation.
    fn by_time(&self, table: &Table, silo: &str) -> Result<Parts, DataError> {
        let rows = table.len();
        let (held, tested) = (count(self.validation, rows), count(self.test, rows));
        let mut train: Vec<usize> = (0..rows).collect();
        if held + tested < rows {
            let test = last(table, &mut train, tested);
            let held = held.min(train.len());
            let validation = last(table, &mut train, held);
            if !train.is_empty() {
                return Ok(Parts {
                    train,
                    validation,
                    test,
                });
            }
        }
        Err(DataError::TooFewRows {
            silo: silo.to_owned(),
            rows,
            train: 0,
            validation: held,
            test: tested,
        })
    }

    /// Divides the rows of `silo` by `seed`. `classes` holds the class of every row, or the same
    /// number for all; every class is divided alike, up to one row. Held-out parts are rounded up.
    /// Depends on the silo's name, not on its position among the silos.
    ///
    /// # Errors
    /// [`DataError::TooFewRows`] where train or test would be empty.
    pub(crate) fn divide(
        &self,
        classes: &[usize],
        seed: u64,
        silo: &str,
    ) -> Result<Parts, DataError> {
        let rows = classes.len();
        let (validation, test) = (count(self.validation, rows), count(self.test, rows));
        let train = rows.saturating_sub(validation + test);
        if train == 0 || test == 0 {
            let silo = silo.to_owned();
            return Err(DataError::TooFewRows {
                silo,
                rows,
                train,
                validation,
                test,
            });
        }
        let mut rng = stream(seed, &format!("split {silo}"));
        let all: Vec<usize> = (0..rows).collect();
        let mut groups = grouped(&all, classes);
        groups.iter_mut().for_each(|group| shuffle(&mut rng, group));
        let test = take(&mut groups, test);
        let validation = take(&mut groups, validation);
        let mut train = groups.concat();
        train.sort_unstable();
        Ok(Parts {
            train,
            validation,
            test,
        })
    }
}

/// So many of the rows, rounded up.
fn count(fraction: f64, rows: usize) -> usize {
    // A product such as 0.07 × 100 may lie a hair above the whole number meant.
    (fraction * rows as f64 - 1e-9).ceil().max(0.0) as usize
}

/// These rows by class.
fn grouped(rows: &[usize], classes: &[usize]) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); classes.iter().max().map_or(0, |most| most + 1)];
    rows.iter().for_each(|&row| groups[classes[row]].push(row));
    groups
}

/// Takes the last `count` of these rows by time; those that go on into their time are dropped.
fn last(table: &Table, rows: &mut Vec<usize>, count: usize) -> Vec<usize> {
    rows.sort_by(|&a, &b| table.times[a].total_cmp(&table.times[b]));
    let mut taken = rows.split_off(rows.len() - count);
    if let Some(&first) = taken.first() {
        rows.retain(|&row| table.times[row] + table.span <= table.times[first]);
    }
    rows.sort_unstable();
    taken.sort_unstable();
    taken
}

/// Takes `count` rows off the ends of the groups, in proportion to their sizes (largest
/// remainders; the first group wins ties).
fn take(groups: &mut [Vec<usize>], count: usize) -> Vec<usize> {
    let rows: usize = groups.iter().map(Vec::len).sum();
    let share = |group: &Vec<usize>| count * group.len() / rows.max(1);
    let mut shares: Vec<usize> = groups.iter().map(share).collect();
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&group| std::cmp::Reverse(count * groups[group].len() % rows.max(1)));
    let missing = count - shares.iter().sum::<usize>();
    for &group in order.iter().take(missing) {
        shares[group] += 1;
    }
    let mut taken: Vec<usize> = groups
        .iter_mut()
        .zip(shares)
        .flat_map(|(group, share)| group.split_off(group.len() - share))
        .collect();
    taken.sort_unstable();
    taken
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

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
    fn given_parts_are_kept_and_validation_rows_come_from_the_training_rows() {
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
            "silo \"small\" has 2 usable row(s), but split into train 0, validation 1, test 1; \
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
        fn every_row_is_in_exactly_one_part_and_a_seed_gives_the_same_parts(
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
        fn the_test_rows_are_the_same_whatever_the_validation_fraction_is(
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
}
