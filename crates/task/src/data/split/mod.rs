//! Splits a silo's rows into those to train on, to choose hyper-parameters with, and to test on.

mod dated;
mod keyed;

use serde::{Deserialize, Serialize};

use methods::learner::{Split, together};

use super::{DataError, Table};
use crate::counted::counted;
use crate::random::{shuffle, stream};
use crate::schema::Schema;

pub use self::keyed::SplitKey;

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
    /// With `time`: rows at or after this time are test rows, whatever their number; `test` and `validation`
    /// then do not apply. A number or a date such as `"2024-05-31"`, as the column holds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_from: Option<String>,
    /// With `test-from`: rows before that and at or after this time are validation rows. By default there
    /// are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_from: Option<String>,
    /// Whether a keyed hash of itself holds a row out, or of what the files call its group: a row is in the
    /// same part for ever, whichever other rows there are. Each institution has a secret for it, in the file
    /// `split.key` beside its key; simulated silos have theirs from `seed` and their names. Equal rows are in
    /// one part, the fractions hold roughly, classes are not divided alike, and a small institution may have
    /// no test rows. Of training rows that `column` gives, the hash takes those for validation. Rounds with
    /// noise need it, or `column` without `validation`, or `test-from`. Default false: rows are dealt out by
    /// `seed`, and one row more changes the parts of others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keyed: bool,
    /// The column of `rows` with the group of each row, such as its patient: all rows of a group are in
    /// one part, in the split, in folds of the training rows, and when held-out rows are drawn again for
    /// intervals. The fractions are then of groups. Beside `time`, the groups that begin last, or from the
    /// agreed time on, are held out, and training rows of others that are as late are left out. It is no
    /// feature, and what it holds stays at the silo. Not beside `column`. By default every row is a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
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
            test_from: None,
            validation_from: None,
            keyed: false,
            group: None,
            seed: None,
            shift: None,
        }
    }
}

/// Row numbers of each part, in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    pub train: Vec<usize>,
    pub validation: Vec<usize>,
    pub test: Vec<usize>,
}

impl Parts {
    /// The rows of all units, each in the part of its unit.
    fn of(units: &Units, part: impl Fn(&Vec<usize>) -> Split) -> Self {
        let rows = |wanted| {
            let units = units.0.iter().filter(|unit| part(unit) == wanted);
            let mut rows: Vec<usize> = units.flatten().copied().collect();
            rows.sort_unstable();
            rows
        };
        Self {
            train: rows(Split::Train),
            validation: rows(Split::Validation),
            test: rows(Split::Test),
        }
    }
}

impl SplitConfig {
    /// Returns whether the part of each row, or of each group, depends on itself alone: one more or less changes
    /// nothing for the others. What noise promises holds for no other split.
    pub fn is_by_unit(&self) -> bool {
        self.may_leave_none() || (self.column.is_some() && self.validation == 0.0)
    }

    /// Returns whether a hash or a date holds rows out, however many these are, so that any part may be empty.
    pub fn may_leave_none(&self) -> bool {
        self.keyed || self.test_from.is_some()
    }

    /// This split, or the same by a keyed hash, so that it goes with noise.
    ///
    /// # Errors
    /// [`DataError::Config`]: rows are held out by fractions of the latest ones, for which only people can
    /// choose a date.
    pub fn made_by_unit(&self) -> Result<Self, DataError> {
        let keyed = Self {
            keyed: true,
            ..self.clone()
        };
        let split = if self.is_by_unit() {
            self.clone()
        } else {
            keyed
        };
        split.check().map(|()| split)
    }

    /// Checks that the fractions leave rows to train on.
    ///
    /// # Errors
    /// [`DataError::Config`].
    pub fn check(&self) -> Result<(), DataError> {
        let fine = (0.0..1.0).contains(&self.validation)
            && self.test > 0.0
            && self.validation + self.test < 1.0;
        if let (Some(group), Some(column)) = (&self.group, &self.column) {
            return Err(DataError::Config(format!(
                "`split`: `group = {group:?}` and `column = {column:?}` exclude each other: both say which \
                 rows are in one part. Leave out one of them"
            )));
        }
        if let Some(group) = &self.group
            && self.time.as_ref() == Some(group)
        {
            return Err(DataError::Config(format!(
                "`split`: `group` and `time` are both {group:?}: a group is who or what a row is of, such \
                 as a patient"
            )));
        }
        if let (true, Some(time)) = (self.keyed, &self.time) {
            return Err(DataError::Config(format!(
                "`split`: `keyed` and `time = {time:?}` exclude each other: both say which rows are held out. \
                 Leave out `keyed`, and write `test-from`, the date from which on rows are test rows"
            )));
        }
        self.dates()?;
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

    /// Refuses a schema in which the group of a row is a feature, too: a model would learn who it is of.
    ///
    /// # Errors
    /// [`DataError::Config`].
    pub fn fits(&self, schema: &Schema) -> Result<(), DataError> {
        let Some(group) = &self.group else {
            return Ok(());
        };
        let is = |name: &str| name == group;
        let what = match (schema.names().any(is), schema.target.name.iter().any(is)) {
            (true, _) => "a feature",
            (_, true) => "the target",
            (false, false) => return Ok(()),
        };
        Err(DataError::Config(format!(
            "`split`: `group = {group:?}` is {what} in the schema, too, and a model must not learn who a row \
             is of: take the column out of the schema, or name another one"
        )))
    }

    /// The parts of a silo's rows. Where its table gives them, they are used; of the training rows the
    /// fraction `validation` is then taken for validation, if the table has no validation rows: by time
    /// where the table has times, at random otherwise. Rows without parts are divided by time, or at
    /// random where they have none; or each by itself ([`is_by_unit`](Self::is_by_unit)), and then any part
    /// may be empty.
    ///
    /// # Errors
    /// [`DataError::TooFewRows`] where nothing is left to train on or to test on, unless the data want
    /// it so; [`DataError::Config`] where the data give parts that divide a group, or parts and an agreed
    /// date.
    pub fn parts(
        &self,
        table: &Table,
        classes: &[usize],
        seed: u64,
        silo: &str,
    ) -> Result<Parts, DataError> {
        let seed = self.seed.unwrap_or(seed);
        let units = Units::of(table, silo)?;
        match self.dates()? {
            Some(_) if !table.parts.is_empty() => {
                return Err(DataError::Config(format!(
                    "silo {silo:?}: its files are given a `part`, and `split.test-from` says which rows are test \
                     rows: leave out one of them"
                )));
            }
            Some(dates) => return Ok(dates.parts(table, &units)),
            None => {}
        }
        if self.keyed {
            return Ok(self.by_hash(table, &units, seed, silo));
        }
        if table.parts.is_empty() && table.times.is_empty() {
            return self.divide_units(&units, classes, seed, silo);
        }
        if table.parts.is_empty() {
            return self.by_time(table, &units, silo);
        }
        let of = |part: Split| -> Vec<usize> {
            let rows = table.parts.iter().enumerate();
            let rows = rows.filter(|(_, own)| **own == part);
            rows.map(|(row, _)| row).collect()
        };
        let (mut train, mut validation) = (of(Split::Train), of(Split::Validation));
        let given = train.len();
        if validation.is_empty() && !train.is_empty() {
            let inside = units.within(&train);
            let held = count(self.validation, inside.len());
            if table.times.is_empty() {
                let all: Vec<usize> = (0..inside.len()).collect();
                let mut groups = grouped(&all, &inside.classes(classes));
                let mut rng = stream(seed, &format!("validation {silo}"));
                groups.iter_mut().for_each(|group| shuffle(&mut rng, group));
                validation = inside.rows(&take(&mut groups, held));
                train = inside.rows(&groups.concat());
            } else {
                validation = last(table, &inside, &mut train, held);
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
    fn by_time(&self, table: &Table, units: &Units, silo: &str) -> Result<Parts, DataError> {
        let all = units.len();
        let (held, tested) = (count(self.validation, all), count(self.test, all));
        let mut train: Vec<usize> = (0..table.len()).collect();
        if held + tested < all {
            let test = last(table, units, &mut train, tested);
            let rest = units.within(&train);
            let validation = last(table, &rest, &mut train, held.min(rest.len()));
            if !train.is_empty() {
                return Ok(Parts {
                    train,
                    validation,
                    test,
                });
            }
        }
        Err(units.too_few(silo, (0, held, tested)))
    }

    /// Divides groups of rows as [`divide`](Self::divide) does rows, by the class that most rows of a
    /// group have.
    fn divide_units(
        &self,
        units: &Units,
        classes: &[usize],
        seed: u64,
        silo: &str,
    ) -> Result<Parts, DataError> {
        let parts = self.divide(&units.classes(classes), seed, silo);
        let parts = parts.map_err(|error| match error {
            DataError::TooFewRows {
                train,
                validation,
                test,
                ..
            } => units.too_few(silo, (train, validation, test)),
            other => other,
        })?;
        Ok(Parts {
            train: units.rows(&parts.train),
            validation: units.rows(&parts.validation),
            test: units.rows(&parts.test),
        })
    }

    /// Divides the rows of `silo` by `seed`. `classes` holds the class of every row, or the same
    /// number for all; every class is divided alike, up to one row. Held-out parts are rounded up.
    /// Depends on the silo's name, not on its position among the silos.
    ///
    /// # Errors
    /// [`DataError::TooFewRows`] where train or test would be empty.
    pub fn divide(&self, classes: &[usize], seed: u64, silo: &str) -> Result<Parts, DataError> {
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

/// The number of rows in this fraction of them, rounded up.
fn count(fraction: f64, rows: usize) -> usize {
    // A product such as 0.07 × 100 may lie a hair above the whole number meant.
    (fraction * rows as f64 - 1e-9).ceil().max(0.0) as usize
}

/// The rows by class.
fn grouped(rows: &[usize], classes: &[usize]) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); classes.iter().max().map_or(0, |most| most + 1)];
    rows.iter().for_each(|&row| groups[classes[row]].push(row));
    groups
}

/// Takes the last `count` of these units by time, that of the first row of each; rows of others that
/// go on into their time are dropped.
fn last(table: &Table, units: &Units, rows: &mut Vec<usize>, count: usize) -> Vec<usize> {
    let begins = |unit: usize| {
        let times = units.0[unit].iter().map(|&row| table.times[row]);
        times.fold(f64::INFINITY, f64::min)
    };
    let mut order: Vec<(f64, usize)> = (0..units.len()).map(|at| (begins(at), at)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let taken = order.split_off(order.len() - count);
    let kept: Vec<usize> = order.into_iter().map(|(_, at)| at).collect();
    *rows = units.rows(&kept);
    if let Some(&(first, _)) = taken.first() {
        rows.retain(|&row| table.times[row] + table.span <= first);
    }
    let taken: Vec<usize> = taken.into_iter().map(|(_, at)| at).collect();
    units.rows(&taken)
}

/// Units of the division: the rows of every group, or every row by itself.
struct Units(Vec<Vec<usize>>);

impl Units {
    /// # Errors
    /// [`DataError::Config`] where the data give parts that divide a group.
    fn of(table: &Table, silo: &str) -> Result<Self, DataError> {
        let units = together(&table.groups, table.len());
        let part = |row: &usize| table.parts.get(*row);
        let divided = |rows: &&Vec<usize>| rows.iter().any(|row| part(row) != part(&rows[0]));
        match units.iter().filter(divided).count() {
            0 => Ok(Self(units)),
            divided => Err(DataError::Config(format!(
                "silo {silo:?}: {divided} of {} groups of `split.group` have rows in several of the parts \
                 that its files are given: move all rows of a group to one file, or leave out `part`",
                units.len()
            ))),
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// The units that have a row among these, with these rows alone, which are in ascending order.
    fn within(&self, rows: &[usize]) -> Self {
        let inside = |row: &usize| rows.binary_search(row).is_ok();
        let each = self.0.iter().map(|unit| -> Vec<usize> {
            let own = unit.iter().copied();
            own.filter(inside).collect()
        });
        Self(each.filter(|unit| !unit.is_empty()).collect())
    }

    /// All rows of some of them, in ascending order.
    fn rows(&self, units: &[usize]) -> Vec<usize> {
        let mut rows: Vec<usize> = units.iter().flat_map(|&at| &self.0[at]).copied().collect();
        rows.sort_unstable();
        rows
    }

    /// The class that most of the rows of each have, of several the first.
    fn classes(&self, classes: &[usize]) -> Vec<usize> {
        let most = |rows: &Vec<usize>| {
            let mut own: Vec<usize> = rows.iter().map(|&row| classes[row]).collect();
            own.sort_unstable();
            let runs = own.chunk_by(|a, b| a == b);
            let most = runs.rev().max_by_key(|run| run.len());
            most.map_or(0, |run| run[0])
        };
        self.0.iter().map(most).collect()
    }

    fn too_few(&self, silo: &str, (train, validation, test): (usize, usize, usize)) -> DataError {
        let rows: usize = self.0.iter().map(Vec::len).sum();
        if rows == self.len() {
            return DataError::TooFewRows {
                silo: silo.to_owned(),
                rows,
                train,
                validation,
                test,
            };
        }
        DataError::Config(format!(
            "silo {silo:?} has {} of {} (`split.group`), split into train {train}, validation {validation}, test \
             {test} groups; it needs at least 1 to train and 1 to test",
            counted(rows, "usable row"),
            counted(self.len(), "group"),
        ))
    }
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
mod tests;
