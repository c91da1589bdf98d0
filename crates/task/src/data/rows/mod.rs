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
mod silos;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use methods::learner::Split;

use self::extra::{ExtraColumns, Groups};
use super::{
    DataError, DataSet, Format, LeftOut, RawFile, Rule, SplitConfig, Table, missing_notes,
    mojibake, notation_notes, open_columns, open_row_by_row,
};
use crate::counted::verb;
use crate::questions::RowAnswers;
use crate::schema::{FileLayout, Filter, LocalNames, ReadRow, Schema};

pub use self::columns::{number_columns, read_columns};
pub use self::own::{OwnFile, OwnRows};
pub(crate) use self::reading::Reading;
use self::reading::UnreadableRows;
pub use self::silo_names::{pretend_silo, silo_of};
use self::silos::Silos;

/// Files of rows and how to read them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RowsConfig {
    /// The files, at least one: CSV, Parquet, .xlsx or .ods, compressed with gzip or not.
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
    /// Number of synthetic silos, at least two, to which all rows are dealt in turn, whichever file they
    /// are in: to try a federation out with the table of one institution. Whose a row is then depends on how
    /// many stand before it, so what noise promises for real institutions does not hold for pretend ones. Not
    /// beside `silo-column`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    #[serde(rename = "split-into")]
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
    /// `{ mask = [columns] }` for the pixels of a mask, each 0 or 1; or `{ event, time, entry, at }` for a time to an
    /// event, with the columns of the event (1, or 0 where it was not observed), of its time, and of the entry into
    /// observation where rows have one.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "the name of a column, a list of columns, { mask = [columns] }, or { event = \"column\", time = \
                 \"column\" } is needed"
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
    /// A time to an event.
    Survival {
        /// The column that says whether the event was observed, 1 or 0.
        event: String,
        /// The column of the time at which it was, or observation ended.
        time: String,
        /// The column of the time from which a row is observed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<String>,
        /// Times at which survival is predicted, in ascending order; none by default.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        at: Vec<f64>,
    },
}

impl TargetColumns {
    /// Names of the columns.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::One(name) => vec![name],
            Self::Several(names) | Self::Mask { mask: names } => {
                names.iter().map(String::as_str).collect()
            }
            Self::Survival {
                event, time, entry, ..
            } => {
                let entry = entry.as_deref();
                [event.as_str(), time.as_str()]
                    .into_iter()
                    .chain(entry)
                    .collect()
            }
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
        let path = |file: &RowsFile| {
            folder.map_or_else(|| file.path.clone(), |folder| folder.join(&file.path))
        };
        let opened = |file: &RowsFile| {
            let format = self.format_of(file);
            if reading == Reading::RowByRow {
                return open_row_by_row(path(file), format);
            }
            // The short form is filled in by what the files hold in all columns.
            let used = schema.map(|schema| self.used_columns(file, schema, split));
            open_columns(path(file), format, used.as_deref())
        };
        let raw = self.files.iter().map(opened);
        let raw = raw.collect::<Result<Vec<_>, _>>()?;
        let inferred = self.inferred(schema, &raw, split)?;
        let schema = inferred.as_ref().or(schema).expect("one of the two");
        schema.check()?;
        split.fits(schema)?;
        let columns = schema.encoded();
        let mut notes: Vec<String> = mojibake(&raw).iter().map(ToString::to_string).collect();
        let mut silos = Silos {
            columns: &columns,
            target_range: schema.target.range,
            tables: Vec::new(),
            dealt: 0,
            subgroups: Vec::new(),
            groups: Groups::default(),
        };
        for (file, raw) in self.files.iter().zip(raw) {
            notes.extend(self.read_file((file, &raw), reading, schema, split, &mut silos)?);
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

    /// The columns of a file that are read by a schema and a split.
    fn used_columns<'a>(
        &'a self,
        file: &'a RowsFile,
        schema: &'a Schema,
        split: &'a SplitConfig,
    ) -> Vec<&'a str> {
        let beside = [&self.silo_column, &split.column, &split.time, &split.group];
        let beside = beside.into_iter().flatten().chain(&schema.subgroup);
        let agreed = beside
            .map(String::as_str)
            .chain(schema.only.iter().map(|filter| filter.column.as_str()));
        let own = agreed.flat_map(|name| [name, file.names.column(name)]);
        own.chain(read_columns(schema, &file.names)).collect()
    }

    /// Returns whether the keys fit each other.
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
                    "`split-into` is {count}, and a federation needs at least 2"
                )));
            }
            if self.silo_column.is_some() {
                return Err(DataError::Config(
                    "`split-into` and `silo-column` exclude each other: both say whose rows \
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

    /// Returns how the cells of a file are written.
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
        let format = self.format_of(file);
        let layout = FileLayout::new(schema, &names, format, raw, true, &also)?;
        let layout = match reading {
            Reading::Whole => layout,
            Reading::RowByRow => layout.row_by_row(),
        };
        let extra = ExtraColumns::new(split, file.part, raw, format, &names)?;
        let mut notes = raw.notes.clone();
        notes.extend(layout.absent().iter().cloned());
        let columns = number_columns(schema, &names);
        let notation = notation_notes(raw, &columns, format, layout.marks());
        notes.extend(match (notation, reading) {
            (Err(DataError::Mixed { column, cells, .. }), Reading::RowByRow) => {
                vec![format!("the column {column:?} holds {cells}")]
            }
            (notation, _) => notation?,
        });
        let columns = read_columns(schema, &names);
        notes.extend(missing_notes(raw, &columns, format, layout.marks()));
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
            let (values, targets) = match layout.read(&row) {
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
                    if layout.is_missing(&row, place) {
                        left.no_silo += 1;
                        continue;
                    }
                    text
                }
            };
            let extra = match extra.read(&row, &layout) {
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

/// Counts a row that is not used.
fn count(left: &mut LeftOut, row: &ReadRow) {
    match row {
        ReadRow::Used(..) => {}
        ReadRow::NoTarget => left.no_target += 1,
        ReadRow::Incomplete(_) => left.incomplete += 1,
        ReadRow::Excluded(_) => left.excluded += 1,
    }
}

#[cfg(test)]
mod tests;
