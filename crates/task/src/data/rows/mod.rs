//! The rows of a simulation from files: one file per silo, or a column that names the silo.
//!
//! With a [`Schema`] the files are read by it, as the nodes of a federation read theirs. Without
//! one, [`RowsConfig`] describes the columns in short, and the schema follows from that and from
//! what the files hold.

mod columns;
mod extra;
mod infer;
mod own;
mod reading;
mod silo_names;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use methods::learner::Split;

use self::extra::{Extra, ExtraColumns, Groups};
use super::{
    DataError, DataSet, Format, GroupId, LeftOut, RawFile, Rule, SplitConfig, Table, missing_notes,
    mojibake, notation_notes, open, open_row_by_row,
};
use crate::counted::verb;
use crate::questions::RowAnswers;
use crate::schema::{EncodedColumn, FileLayout, Filter, LocalNames, ReadRow, Schema};

pub use self::columns::{agreed_values, number_columns, read_columns};
pub use self::own::{OwnFile, OwnRows};
pub(crate) use self::reading::Reading;
use self::reading::UnreadableRows;
pub use self::silo_names::{pretend_silo, silo_of};

/// Files of rows and how to read them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RowsConfig {
    /// The files, at least one: CSV or Parquet, compressed with gzip or not.
    /// Without `silo-column` each is a silo.
    pub files: Vec<RowsFile>,
    /// The column that names each row's silo, if silos share files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silo_column: Option<String>,
    /// Fewest rows of a silo: smaller ones are left out of the simulation, which says so; 0 by
    /// default.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(extend("x-unit" = "rows"))]
    pub silo_rows: usize,
    /// Number of pretend silos, at least two, to which all rows are dealt in turn, whichever file they
    /// are in: to try a federation out with the table of one institution. Whose a row is then depends on how
    /// many stand before it, so what noise promises for real institutions does not hold for pretend ones. Not
    /// beside `silo-column`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub pretend_silos: Option<usize>,
    /// Columns of the files that are not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// How the cells are written, in all files that have no `format` of their own.
    #[serde(default)]
    pub format: Format,
    /// What the columns mean in short, in place of a schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<ColumnsConfig>,
    /// What a person has answered about these rows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub answers: RowAnswers,
}

/// What the columns mean, in short. The schema follows from it and from what the files hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ColumnsConfig {
    /// The column to predict; or a list of columns that hold numbers in one unit; or
    /// `{ mask = [columns] }` for the pixels of a mask, each 0 or 1.
    pub target: TargetColumns,
    /// Makes the target two classes: the rule, such as `"> 0"`, says which rows are positive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<Rule>,
    /// Makes the target classes by name, in this order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// Unit of a target that is a number, for reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The feature columns; by default all but target, silo column and `drop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Vec<String>>,
    /// Columns that are no features.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// Feature columns that hold categories: each becomes one column of 0 and 1 per level but the
    /// first, after all other columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_hot: Vec<String>,
    /// Levels of `one-hot` columns, in order; by default all levels that occur, in ascending order.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub levels: std::collections::BTreeMap<String, Vec<String>>,
    /// Conditions that a row must meet to be used, such as `"age >= 18"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<Filter>,
    /// The column whose values are subgroups of the rows, such as the patient's gender, by which reports
    /// can measure. It is a feature, too, unless `drop` names it. None by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subgroup: Option<String>,
    /// How rows with a missing feature are treated. Rows without a target are always left out.
    #[serde(default)]
    pub incomplete: Incomplete,
}

/// Which columns are to be predicted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "the name of a column, a list of columns, or { mask = [columns] } is needed"
)]
pub enum TargetColumns {
    /// This one.
    One(String),
    /// All of these, numbers in one unit.
    Several(Vec<String>),
    /// The pixels of a mask.
    Mask {
        /// Row by row.
        mask: Vec<String>,
    },
}

impl TargetColumns {
    /// Names of the columns.
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) | Self::Mask { mask: names } => names,
        }
    }
}

impl From<&str> for TargetColumns {
    fn from(name: &str) -> Self {
        Self::One(name.into())
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RowsFile {
    /// Where it is, relative to this TOML file.
    pub path: PathBuf,
    /// The silo's name; by default the file's, without its extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silo: Option<String>,
    /// The part that all its rows belong to: `"train"`, `"validation"` or `"test"`. Without it the rows
    /// are split. Files of one silo all have it, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Split>,
    /// Names that columns and codes have in this file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub names: LocalNames,
    /// How the cells of this file are written; by default as those of the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
}

impl RowsFile {
    /// The silo of its rows.
    fn silo(&self) -> String {
        self.silo.clone().unwrap_or_else(|| silo_of(&self.path))
    }
}

/// How rows with a missing feature are treated.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Incomplete {
    /// They are left out.
    #[default]
    Drop,
    /// The mean of the silo's training rows is put in.
    Impute,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl RowsConfig {
    /// Reads all files, relative to `folder` if given, with the columns that `split` names.
    ///
    /// # Errors
    /// [`DataError`]: a file that cannot be read, a column that is not there, a cell that is not
    /// what it should be, no usable rows; neither or both of a schema and `columns`.
    pub fn read(
        &self,
        schema: Option<&Schema>,
        folder: Option<&Path>,
        split: &SplitConfig,
    ) -> Result<DataSet, DataError> {
        self.read_by(Reading::Whole, schema, folder, split)
    }

    /// Reads all files as [`read`](Self::read) does. Row by row only what is wrong with a file or the
    /// configuration, whatever rows there are, is an error; a schema that follows from the rows takes the whole.
    pub(crate) fn read_by(
        &self,
        reading: Reading,
        schema: Option<&Schema>,
        folder: Option<&Path>,
        split: &SplitConfig,
    ) -> Result<DataSet, DataError> {
        self.check()?;
        let reading = match &self.columns {
            Some(_) => Reading::Whole,
            None => reading,
        };
        let opened = match reading {
            Reading::Whole => open,
            Reading::RowByRow => open_row_by_row,
        };
        let path = |file: &RowsFile| {
            folder.map_or_else(|| file.path.clone(), |folder| folder.join(&file.path))
        };
        let raw = self.files.iter();
        let raw = raw.map(|file| opened(path(file), self.format_of(file)));
        let raw = raw.collect::<Result<Vec<_>, _>>()?;
        let inferred = self.inferred(schema, &raw, split)?;
        let schema = inferred.as_ref().or(schema).expect("one of the two");
        schema.check()?;
        split.fits(schema)?;
        let columns = schema.encoded();
        let mut notes = mojibake(&raw);
        let mut silos = Silos {
            columns: &columns,
            target_range: schema.target.range,
            tables: Vec::new(),
            dealt: 0,
            subgroups: Vec::new(),
            groups: Groups::default(),
        };
        for (file, raw) in self.files.iter().zip(&raw) {
            notes.extend(self.read_file((file, raw), reading, schema, split, &mut silos)?);
        }
        let subgroups = silos.sorted_subgroups(reading)?;
        let mut silos = silos.tables;
        let unreadable = silos.iter().flat_map(|(_, table)| &table.unreadable);
        notes.extend(unreadable.cloned());
        // With noise whether a silo takes part may not depend on a row.
        let least = schema.min_rows * usize::from(reading == Reading::Whole);
        notes.extend(self.left_out(&mut silos, least)?);
        Ok(DataSet {
            target: schema.target(),
            silos,
            schema: Some(schema.clone()),
            notes,
            subgroups,
        })
    }

    /// Whether the keys fit each other.
    fn check(&self) -> Result<(), DataError> {
        if self.files.is_empty() {
            return Err(DataError::Config("`files` names no file".into()));
        }
        for format in self.files.iter().map(|file| self.format_of(file)) {
            format.check()?;
        }
        if let Some(count) = self.pretend_silos {
            if count < 2 {
                return Err(DataError::Config(format!(
                    "`pretend-silos` is {count}, and a federation needs at least 2"
                )));
            }
            if self.silo_column.is_some() {
                return Err(DataError::Config(
                    "`pretend-silos` and `silo-column` exclude each other: both say whose rows \
                     the rows are"
                        .into(),
                ));
            }
        }
        Ok(())
    }

    /// The schema that `columns` and the files make, where there is no other.
    fn inferred(
        &self,
        schema: Option<&Schema>,
        raw: &[RawFile],
        split: &SplitConfig,
    ) -> Result<Option<Schema>, DataError> {
        Ok(match (schema, &self.columns) {
            (Some(_), Some(_)) => {
                return Err(DataError::Config(
                    "`columns` and a schema exclude each other: both say what the columns mean"
                        .into(),
                ));
            }
            (None, None) => {
                return Err(DataError::Config(
                    "what do the columns mean? Write [task.table.data.rows.columns] with the `target`, \
                     or a [task.table.schema]; `rota init FILE` writes one".into(),
                ));
            }
            (Some(_), None) => None,
            (None, Some(columns)) => {
                let beside = [&self.silo_column, &split.column, &split.time, &split.group];
                let beside: Vec<&str> = beside.into_iter().flatten().map(String::as_str).collect();
                let formats = self.files.iter().map(|file| self.format_of(file).clone());
                Some(columns.schema(raw, &beside, &formats.collect::<Vec<_>>())?)
            }
        })
    }

    /// Leaves out silos of fewer rows than `silo-rows`, and says so. With a schema every other one needs `least`.
    ///
    /// # Errors
    /// [`DataError`]: a silo whose files say different things of parts, one with too few rows, or none.
    fn left_out(
        &self,
        silos: &mut Vec<(String, Table)>,
        least: usize,
    ) -> Result<Option<String>, DataError> {
        let mixed = |(_, table): &&(String, Table)| ![0, table.len()].contains(&table.parts.len());
        if let Some((silo, _)) = silos.iter().find(mixed) {
            return Err(DataError::Config(format!(
                "silo {silo:?}: some of its files have a `part` and some have none: give one to each, or \
                 to none"
            )));
        }
        let mut note = None;
        let small = silos
            .iter()
            .filter(|(_, table)| table.len() < self.silo_rows)
            .count();
        if small > 0 {
            silos.retain(|(_, table)| table.len() >= self.silo_rows);
            note = Some(format!(
                "{small} of {} silos {} fewer than {} rows and {} left out",
                small + silos.len(),
                verb(small, "have"),
                self.silo_rows,
                verb(small, "are")
            ));
        }
        let few = |(_, table): &&(String, Table)| table.len() < least;
        if let (None, Some((silo, table))) = (&self.columns, silos.iter().find(few)) {
            return Err(DataError::FewRows {
                silo: silo.clone(),
                rows: table.len(),
                least,
            });
        }
        if silos.is_empty() {
            return Err(DataError::Config(format!(
                "no silo has {} rows: choose a smaller `silo-rows`",
                self.silo_rows
            )));
        }
        Ok(note)
    }

    /// How the cells of a file are written.
    fn format_of<'a>(&'a self, file: &'a RowsFile) -> &'a Format {
        file.format.as_ref().unwrap_or(&self.format)
    }

    /// Adds every usable row of a file to its silo. What is left out or read otherwise is in the notes.
    fn read_file(
        &self,
        (file, raw): (&RowsFile, &RawFile),
        reading: Reading,
        schema: &Schema,
        split: &SplitConfig,
        silos: &mut Silos<'_>,
    ) -> Result<Vec<String>, DataError> {
        let silo = file.silo();
        // In short form, columns that nobody named are left unread, in all files but the first.
        let mut names = file.names.clone();
        names.ignore.extend(self.ignore.iter().cloned());
        if self.columns.is_some() {
            names.ignore.extend(raw.header.iter().cloned());
        }
        let also = [&self.silo_column, &split.column, &split.time, &split.group]
            .into_iter()
            .flatten();
        let also: Vec<&str> = also.map(String::as_str).collect();
        let codes = names.codes.values().flat_map(|codes| codes.keys());
        let known = agreed_values(schema).chain(codes.map(String::as_str));
        let format = self.format_of(file).without_marks(known);
        let layout = FileLayout::new(schema, &names, &format, raw, true, &also)?;
        let layout = match reading {
            Reading::Whole => layout,
            Reading::RowByRow => layout.row_by_row(),
        };
        let extra = ExtraColumns::new(split, file.part, raw, &format, &names)?;
        let mut notes = raw.notes.clone();
        let notation = notation_notes(raw, &number_columns(schema, &names), &format);
        notes.extend(match (notation, reading) {
            (Err(DataError::Mixed { column, cells, .. }), Reading::RowByRow) => {
                vec![format!("the column {column:?} holds {cells}")]
            }
            (notation, _) => notation?,
        });
        notes.extend(missing_notes(raw, &read_columns(schema, &names), &format));
        let silo_place = match &self.silo_column {
            None => None,
            Some(column) => Some(raw.place(column)?),
        };
        let mut left = LeftOut::default();
        let mut used = 0;
        let mut unreadable = UnreadableRows::default();
        raw.unreadable
            .iter()
            .for_each(|error| unreadable.add(error));
        for row in &raw.rows {
            let (values, targets) = match layout.read(row) {
                Ok(ReadRow::Used(values, targets)) => (values, targets),
                Ok(other) => {
                    count(&mut left, &other);
                    continue;
                }
                Err(error) if reading == Reading::RowByRow => {
                    unreadable.add(&error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let silo = match silo_place {
                None => silo.as_str(),
                Some(place) => {
                    let text = row.cells.get(place).unwrap_or_default();
                    if format.is_missing(text) {
                        left.no_silo += 1;
                        continue;
                    }
                    text
                }
            };
            let extra = match extra.read(row, &layout) {
                Err(error) if reading == Reading::RowByRow => {
                    unreadable.add(&error);
                    continue;
                }
                extra => extra?,
            };
            used += 1;
            match self.pretend_silos {
                None => silos.push(silo, &values, &targets, extra),
                Some(count) => silos.deal(count, &values, &targets, extra),
            }
        }
        if reading == Reading::RowByRow && silo_place.is_none() && self.pretend_silos.is_none() {
            let table = silos.table(&silo);
            silos.tables[table].1.unreadable.extend(unreadable.lines());
        } else if used > 0 {
            notes.extend(unreadable.lines());
        } else {
            return Err(DataError::NoRows {
                path: raw.path.clone(),
                read: raw.rows.len(),
                left_out: left,
            });
        }
        if !left.is_empty() {
            let unused = raw.rows.len() - used;
            notes.push(format!(
                "{unused} of {} rows {} left out: {left}",
                raw.rows.len(),
                verb(unused, "are")
            ));
        }
        let path = raw.path.display();
        Ok(notes.iter().map(|note| format!("{path}: {note}")).collect())
    }
}

/// Most subgroups: more are hardly a division of the rows that anybody wants to see.
const SUBGROUPS: usize = 100;

/// Counts a row that is not used.
fn count(left: &mut LeftOut, row: &ReadRow) {
    match row {
        ReadRow::Used(..) => {}
        ReadRow::NoTarget => left.no_target += 1,
        ReadRow::Incomplete(_) => left.incomplete += 1,
        ReadRow::Excluded(_) => left.excluded += 1,
    }
}

/// The rows of silos, in the order of their first rows.
struct Silos<'a> {
    columns: &'a [EncodedColumn],
    /// The range of the numbers to predict.
    target_range: Option<[f64; 2]>,
    tables: Vec<(String, Table)>,
    /// Rows dealt to pretend silos.
    dealt: usize,
    /// Names of the subgroups, in the order of their first rows.
    subgroups: Vec<String>,
    groups: Groups,
}

impl Silos<'_> {
    /// Gives a row to the next of `count` pretend silos, or to the one that has its group.
    fn deal(&mut self, count: usize, values: &[f64], targets: &[f64], extra: Extra) {
        let group = extra.group.as_deref();
        let turn = group.map_or(self.dealt, |group| self.groups.number(group));
        let silo = pretend_silo(turn % count);
        self.dealt += 1;
        self.push(&silo, values, targets, extra);
    }

    /// The place of the table of a silo, which has no rows yet if it was not there.
    fn table(&mut self, silo: &str) -> usize {
        let place = self.tables.iter().position(|(name, _)| name == silo);
        place.unwrap_or_else(|| {
            let table = Table {
                target_range: self.target_range,
                ..Table::encoded(self.columns)
            };
            self.tables.push((silo.to_owned(), table));
            self.tables.len() - 1
        })
    }

    fn push(&mut self, silo: &str, values: &[f64], targets: &[f64], extra: Extra) {
        let place = self.table(silo);
        let table = &mut self.tables[place].1;
        table.push_all(values, targets);
        table.parts.extend(extra.part);
        table.times.extend(extra.time);
        if let Some(group) = extra.group {
            let number = self.groups.within(place, &group);
            table.groups.push(number);
            if table.group_ids.len() <= number as usize {
                table.group_ids.push(GroupId(group));
            }
        }
        if let Some(name) = extra.subgroup {
            let known = self.subgroups.iter().position(|own| *own == name);
            let at = known.unwrap_or_else(|| {
                self.subgroups.push(name);
                self.subgroups.len() - 1
            });
            // Too many to count are refused when all rows are read.
            table.subgroups.push(u16::try_from(at).unwrap_or(u16::MAX));
        }
    }

    /// The names of the subgroups in alphabetical order, in which the rows then refer to them. Row by row, too
    /// many are none.
    fn sorted_subgroups(&mut self, reading: Reading) -> Result<Vec<String>, DataError> {
        let names = std::mem::take(&mut self.subgroups);
        if names.len() > SUBGROUPS && reading == Reading::RowByRow {
            let tables = self.tables.iter_mut();
            tables.for_each(|(_, table)| table.subgroups.clear());
            return Ok(Vec::new());
        }
        if names.len() > SUBGROUPS {
            return Err(DataError::Config(format!(
                "the column `subgroup` holds {} different values, such as {:?}: choose one with at most \
                 {SUBGROUPS}",
                names.len(),
                names[0]
            )));
        }
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by(|&a, &b| names[a].cmp(&names[b]));
        let mut places = vec![0; names.len()];
        for (place, &name) in order.iter().enumerate() {
            places[name] = place as u16;
        }
        for at in self
            .tables
            .iter_mut()
            .flat_map(|(_, table)| &mut table.subgroups)
        {
            *at = places[usize::from(*at)];
        }
        Ok(order.into_iter().map(|at| names[at].clone()).collect())
    }
}

#[cfg(test)]
mod tests;
