//! Reads silos from CSV files: one file per silo, or a column that names the silo.

mod encode;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::encode::{Cell, File, Row};
use super::label::{Rule, category, number};
use super::{DataError, DataSet, Table, Target};
use crate::file;

/// CSV files and how to read them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CsvConfig {
    /// The files, at least one. Without `silo-column` each is a silo.
    pub files: Vec<CsvFile>,
    /// The column that names each row's silo, if silos share files.
    #[serde(default)]
    pub silo_column: Option<String>,
    /// Names of the columns, for files without a first line of names. `[]` names them by
    /// position: `"1"`, `"2"`, and so on.
    #[serde(default)]
    pub columns: Option<Vec<String>>,
    /// Separator of cells, one ASCII character. Default: `","`.
    #[serde(default = "comma")]
    pub delimiter: char,
    /// The column to predict; or a list of columns that hold numbers in one unit; or
    /// `{ mask = [columns] }` for the pixels of a mask, each 0 or 1.
    pub target: TargetColumns,
    /// Rule that turns a target of numbers into two classes, such as `"> 0"`: rows that satisfy it are
    /// positive.
    #[serde(default)]
    pub positive: Option<Rule>,
    /// Names of the classes of a target of categories, in this order.
    #[serde(default)]
    pub classes: Option<Vec<String>>,
    /// Unit of a target of numbers, for reports.
    #[serde(default)]
    pub unit: Option<String>,
    /// The feature columns. Default: all but target, silo column and `drop`.
    #[serde(default)]
    pub features: Option<Vec<String>>,
    /// Columns that are not used as features.
    #[serde(default)]
    pub drop: Vec<String>,
    /// Feature columns that hold categories: each becomes one column of 0 and 1 per level but the
    /// first, after all other columns.
    #[serde(default)]
    pub one_hot: Vec<String>,
    /// Levels of `one-hot` columns, in order. Default: all levels that occur, in ascending order. Needed
    /// if every silo reads only its own file, so that all silos have the same columns.
    #[serde(default)]
    pub levels: BTreeMap<String, Vec<String>>,
    /// Texts that stand for a missing value. Default: `["?", "", "NA"]`.
    #[serde(default = "markers")]
    pub missing: Vec<String>,
    /// How rows with a missing feature are treated. Rows without a target are always dropped.
    #[serde(default)]
    pub incomplete: Incomplete,
}

/// The columns to predict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "the name of a column, a list of columns, or { mask = [columns] } is needed"
)]
pub enum TargetColumns {
    /// One column.
    One(String),
    /// Several columns of numbers in one unit.
    Several(Vec<String>),
    /// The pixels of a mask.
    Mask {
        /// Row by row.
        mask: Vec<String>,
    },
}

impl TargetColumns {
    /// Names of columns for writing such targets to a file: `target`, or `target 1`, `target 2`, ….
    pub fn of(target: &Target) -> Self {
        let several = |count| (1..=count).map(|at| format!("target {at}")).collect();
        match target {
            Target::Number { .. } | Target::Classes(_) => Self::One("target".into()),
            Target::Numbers { count, .. } => Self::Several(several(*count)),
            Target::Mask { pixels } => Self::Mask {
                mask: several(*pixels),
            },
        }
    }

    /// Their names.
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

/// One CSV file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CsvFile {
    /// Path, relative to the data folder.
    pub path: PathBuf,
    /// Name of the silo. Default: the file's name without its extension.
    #[serde(default)]
    pub silo: Option<String>,
}

/// How rows with a missing feature are treated.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Incomplete {
    /// The rows are left out.
    #[default]
    Drop,
    /// Missing values are replaced by the mean of the silo's training rows.
    Impute,
}

fn comma() -> char {
    ','
}

fn markers() -> Vec<String> {
    ["?", "", "NA"].map(String::from).to_vec()
}

impl CsvConfig {
    /// Reads all files, from under `folder` if given.
    ///
    /// # Errors
    /// [`DataError`]: a file that cannot be read, a missing column, an invalid cell, or no usable rows.
    pub fn read(&self, folder: Option<&Path>) -> Result<DataSet, DataError> {
        self.check()?;
        let mut files = Vec::with_capacity(self.files.len());
        let mut features = self.features.clone();
        for file in &self.files {
            let path = folder.map_or_else(|| file.path.clone(), |folder| folder.join(&file.path));
            let silo = file.silo.clone().unwrap_or_else(|| {
                file.path
                    .file_stem()
                    .map_or_else(String::new, |stem| stem.to_string_lossy().into())
            });
            files.push(self.read_file(path, silo, &mut features)?);
        }
        let features = features.unwrap_or_default();
        if features.is_empty() {
            return Err(DataError::Config("no feature columns are left".into()));
        }
        let levels = self.all_levels(&features, &files);
        let columns = self.column_names(&features, &levels);
        let mut silos: Vec<(String, Table)> = Vec::new();
        for file in &files {
            for row in &file.rows {
                let place = silos.iter().position(|(name, _)| *name == row.silo);
                let place = place.unwrap_or_else(|| {
                    silos.push((row.silo.clone(), Table::new(columns.clone())));
                    silos.len() - 1
                });
                let values = self.encode(row, &features, &levels, &file.path)?;
                silos[place].1.push_all(&values, &row.targets);
            }
        }
        Ok(DataSet {
            target: self.target_kind(),
            silos,
        })
    }

    fn check(&self) -> Result<(), DataError> {
        let fail = |text: &str| Err(DataError::Config(text.into()));
        if self.files.is_empty() {
            return fail("`files` names no file");
        }
        if !self.delimiter.is_ascii() {
            return fail("`delimiter` must be one ASCII character");
        }
        if self.positive.is_some() && self.classes.is_some() {
            return fail("`positive` and `classes` exclude each other");
        }
        if self
            .classes
            .as_ref()
            .is_some_and(|classes| classes.len() < 2)
        {
            return fail("`classes` needs at least two names");
        }
        if self.target.names().is_empty() {
            return fail("`target` names no column");
        }
        if !matches!(self.target, TargetColumns::One(_))
            && (self.positive.is_some() || self.classes.is_some())
        {
            return fail("`positive` and `classes` go with one `target` column");
        }
        if let Some(name) = self.levels.keys().find(|name| !self.one_hot.contains(name)) {
            return fail(&format!(
                "`levels` names {name:?}, which is not in `one-hot`"
            ));
        }
        Ok(())
    }

    fn target_kind(&self) -> Target {
        let names = self.target.names();
        let unit = || {
            let unit = self.unit.clone();
            unit.unwrap_or_else(|| format!("units of {}", names[0]))
        };
        match (&self.target, &self.positive, &self.classes) {
            (TargetColumns::Mask { mask }, ..) => Target::Mask { pixels: mask.len() },
            (TargetColumns::Several(names), ..) => Target::Numbers {
                unit: unit(),
                count: names.len(),
            },
            (TargetColumns::One(name), Some(rule), _) => {
                let rule = String::from(rule.clone());
                Target::Classes(vec![format!("not {name} {rule}"), format!("{name} {rule}")])
            }
            (TargetColumns::One(_), None, Some(classes)) => Target::Classes(classes.clone()),
            (TargetColumns::One(_), None, None) => Target::Number { unit: unit() },
        }
    }

    /// Reads one file. The first one decides on the features, unless the configuration does.
    fn read_file(
        &self,
        path: PathBuf,
        silo: String,
        features: &mut Option<Vec<String>>,
    ) -> Result<File, DataError> {
        let unreadable = |error: csv::Error| DataError::File {
            path: path.clone(),
            reason: error.to_string(),
            hint: String::new(),
        };
        let bytes = file::read(&path, file::DATA).map_err(|error| DataError::File {
            path: path.clone(),
            reason: error.to_string(),
            hint: "; paths are relative to the data folder (--data DIR or ROTA_DATA)".into(),
        })?;
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(self.columns.is_none())
            .delimiter(self.delimiter as u8)
            .trim(csv::Trim::All)
            .flexible(true)
            .from_reader(bytes.as_slice());
        let names: Vec<String> = match &self.columns {
            Some(names) if !names.is_empty() => names.clone(),
            // Without column names, `headers` still looks at the first row.
            Some(_) => (1..=reader.headers().map_err(unreadable)?.len())
                .map(|position| position.to_string())
                .collect(),
            None => reader
                .headers()
                .map_err(unreadable)?
                .iter()
                .map(String::from)
                .collect(),
        };
        let place = |column: &str| {
            names
                .iter()
                .position(|name| name == column)
                .ok_or_else(|| DataError::NoColumn {
                    path: path.clone(),
                    column: column.to_owned(),
                    columns: names.clone(),
                })
        };
        let targets = self.target.names().iter().map(|name| place(name));
        let targets = targets.collect::<Result<Vec<_>, _>>()?;
        let silo_column = self.silo_column.as_deref().map(place).transpose()?;
        for column in self.drop.iter().chain(&self.one_hot) {
            place(column)?;
        }
        let features = features.get_or_insert_with(|| {
            let rest = names.iter().enumerate().filter(|(index, name)| {
                !targets.contains(index) && Some(*index) != silo_column && !self.drop.contains(name)
            });
            rest.map(|(_, name)| name.clone()).collect()
        });
        let places = features
            .iter()
            .map(|name| place(name))
            .collect::<Result<Vec<_>, _>>()?;

        let mut rows = Vec::new();
        let mut read = 0;
        for record in reader.records() {
            let record = record.map_err(unreadable)?;
            let line = record.position().map_or(0, |start| {
                // A record's position is where the empty lines before it begin.
                let ahead = bytes[start.byte() as usize..].iter();
                let empty = ahead.take_while(|byte| matches!(byte, b'\r' | b'\n'));
                start.line() + empty.filter(|byte| **byte == b'\n').count() as u64
            });
            if record.len() != names.len() {
                let (got, expected) = (record.len(), names.len());
                return Err(DataError::Ragged {
                    path,
                    line,
                    got,
                    expected,
                });
            }
            read += 1;
            let cell = |place: usize| {
                Some(&record[place]).filter(|text| !self.missing.iter().any(|m| m == text))
            };
            let wrong = |place: usize, expected: &str| DataError::Cell {
                path: path.clone(),
                line,
                column: names[place].clone(),
                text: record[place].to_owned(),
                expected: expected.to_owned(),
            };
            let labels = targets.iter().map(|&target| cell(target));
            let Some(labels) = labels.collect::<Option<Vec<_>>>() else {
                continue;
            };
            if self.incomplete == Incomplete::Drop && places.iter().any(|&p| cell(p).is_none()) {
                continue;
            }
            let mut cells = Vec::with_capacity(places.len());
            for (name, &place) in features.iter().zip(&places) {
                cells.push(match cell(place) {
                    None => Cell::Missing,
                    Some(text) if self.one_hot.contains(name) => Cell::Level(category(text)),
                    Some(text) => Cell::Number(
                        number(text).ok_or_else(|| wrong(place, "a number is needed"))?,
                    ),
                });
            }
            let silo = match silo_column {
                Some(place) => cell(place)
                    .ok_or_else(|| wrong(place, "the name of a silo is needed"))?
                    .to_owned(),
                None => silo.clone(),
            };
            let labels = labels
                .into_iter()
                .zip(&targets)
                .map(|(text, &place)| self.label(text).map_err(|expected| wrong(place, &expected)));
            rows.push(Row {
                line,
                silo,
                cells,
                targets: labels.collect::<Result<_, _>>()?,
            });
        }
        if rows.is_empty() {
            return Err(DataError::NoRows { path, read });
        }
        Ok(File { path, rows })
    }

    /// The number to predict, or the index of the class.
    fn label(&self, text: &str) -> Result<f64, String> {
        if let Some(rule) = &self.positive {
            return rule
                .holds(text)
                .map(f64::from)
                .ok_or_else(|| "a number is needed".into());
        }
        let value = || number(text).ok_or_else(|| "a number is needed".into());
        match &self.classes {
            None if matches!(self.target, TargetColumns::Mask { .. }) => match value()? {
                pixel @ (0.0 | 1.0) => Ok(pixel),
                _ => Err("the pixels of a mask are 0 or 1".into()),
            },
            None => value(),
            Some(classes) => classes
                .iter()
                .position(|class| category(class) == category(text))
                .map(|class| class as f64)
                .ok_or_else(|| format!("the classes are {}", classes.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests;
