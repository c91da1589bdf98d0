//! Names that columns and codes have in an institution's own files.

use std::collections::{BTreeMap, BTreeSet};

use methods::nearest;
use serde::{Deserialize, Serialize};

use super::{DateForm, MissingRule, ReadCells, Schema};
use crate::data::{ColumnMarks, DataError, composed, key};

/// Stands where only a person knows the name or the value, in names that a program proposes.
pub const OPEN: &str = "?";

/// How an institution's files differ from the schema in names only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LocalNames {
    /// Columns with another name in the file: `agreed = "local"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, String>,
    /// For each column, by its agreed name, the codes of the file and the agreed values that they
    /// mean: `local = "agreed"`. A code is a value of its column even where its text means a missing value in
    /// others (`missing` in `format`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub codes: BTreeMap<String, BTreeMap<String, String>>,
    /// For columns of numbers, by their agreed names, the text that stands before or behind each number in
    /// the file and is left out, where the agreed `unit` is written otherwise, or none is agreed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, String>,
    /// For columns of dates, by their agreed names, the form in which the file writes them, where it is none of `YYYY-MM-DD`,
    /// `YYYY/MM/DD`, `YYYYMMDD` and `DD.MM.YYYY`, which are read in any case: `column = "MM/DD/YYYY"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dates: BTreeMap<String, DateForm>,
    /// For each column, by its agreed name, texts that mean a missing value in this column alone, besides those
    /// that `format` lists for all: `column = ["999"]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, Vec<String>>,
    /// Agreed columns that the files do not have, by their agreed names. Only those whose gaps the agreement
    /// fills: every row then counts as the middle of `usual` there, else of the agreed `range`, or as no level
    /// in particular.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// Columns of the file that are in no agreement and are not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
}

impl LocalNames {
    /// The name of an agreed column in the file.
    pub fn column<'a>(&'a self, agreed: &'a str) -> &'a str {
        self.columns.get(agreed).map_or(agreed, String::as_str)
    }

    /// The agreed value for what a cell of this column holds.
    pub fn value<'a>(&'a self, column: &str, text: &'a str) -> &'a str {
        let Some(codes) = self.codes.get(column) else {
            return text;
        };
        // Letters with accents may be written in two ways.
        let composed = || {
            let mut codes = codes.iter().filter(|(own, _)| !own.is_ascii());
            codes.find(|(own, _)| composed(own) == text)
        };
        let found = codes.get(text).or_else(|| Some(composed()?.1));
        found.map_or(text, String::as_str)
    }

    /// Returns whether the files do not have an agreed column.
    pub fn lacks(&self, agreed: &str) -> bool {
        self.absent.iter().any(|name| name == agreed)
    }

    /// Returns what is known of the texts of an agreed column.
    pub fn marks(&self, schema: &Schema, agreed: &str) -> ColumnMarks {
        let mut marks = ColumnMarks::default();
        self.add_marks(&schema.agreed_values(), agreed, &mut marks);
        marks
    }

    /// Returns what is known of the texts of every column of a file with this header.
    pub(super) fn marks_of_file(&self, schema: &Schema, header: &[String]) -> Vec<ColumnMarks> {
        let values = schema.agreed_values();
        let agreed = values.keys().copied();
        let own = self.codes.keys().chain(self.missing.keys());
        let agreed: BTreeSet<&str> = agreed.chain(own.map(String::as_str)).collect();
        // The header is composed, whoever wrote it.
        let mut by_local: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for agreed in agreed {
            let local = composed(self.column(agreed)).into_owned();
            by_local.entry(local).or_default().push(agreed);
        }
        let marks = |name: &String| {
            let mut marks = ColumnMarks::default();
            for agreed in by_local.get(name).into_iter().flatten() {
                self.add_marks(&values, agreed, &mut marks);
            }
            marks
        };
        header.iter().map(marks).collect()
    }

    fn add_marks(&self, values: &BTreeMap<&str, Vec<&str>>, agreed: &str, marks: &mut ColumnMarks) {
        let codes = self.codes.get(agreed).into_iter().flatten();
        marks
            .codes
            .extend(codes.map(|(text, _)| composed(text).into_owned()));
        let values = values.get(agreed).into_iter().flatten();
        marks
            .agreed
            .extend(values.map(|value| composed(value).into_owned()));
        let missing = self.missing.get(agreed).into_iter().flatten();
        marks
            .missing
            .extend(missing.map(|text| composed(text).into_owned()));
    }

    /// Returns whether all names that somebody left open are filled in, and the schema, or who reads other columns
    /// (`also`), knows all columns that they stand for. `whole`: the column to predict is read, too.
    ///
    /// # Errors
    /// [`DataError::Config`]: the first that is wrong.
    pub(super) fn check(
        &self,
        schema: &Schema,
        (also, whole): (&[&str], bool),
    ) -> Result<(), DataError> {
        let fail = |text: String| Err(DataError::Config(text));
        let open = self.open();
        if !open.is_empty() {
            return fail(format!(
                "{OPEN:?} stands where a name or a value is needed in [data.rows.names]: {}",
                open.join("; ")
            ));
        }
        if whole {
            self.is_agreed(schema, also)?;
        }
        for (column, codes) in &self.codes {
            let mut odd = codes.iter();
            if let Some((code, value)) = odd.find(|(_, value)| !schema.allows(column, value)) {
                return fail(format!(
                    "`codes` of {column:?}: {code:?} stands for {value:?}, which is no agreed value: \
                     the file's text stands left, the agreed value right"
                ));
            }
            let mut missing = self.missing.get(column).into_iter().flatten();
            if let Some(text) = missing.find(|text| codes.contains_key(*text)) {
                return fail(format!(
                    "{text:?} stands in `codes` and in `missing` of {column:?}: it is a value or a missing one"
                ));
            }
        }
        for name in self.dates.keys() {
            let feature = schema.columns().find(|(own, _)| own == name);
            match feature.map(|(_, feature)| feature.kind.cells()) {
                Some(ReadCells::Days(_)) => {}
                Some(ReadCells::Numbers { .. } | ReadCells::Levels(_)) | None => {
                    return fail(format!(
                        "`dates` names {name:?}, which is no column of dates in the agreement"
                    ));
                }
            }
        }
        for name in &self.absent {
            let feature = schema.columns().find(|(own, _)| own == name);
            let rule = feature.map(|(_, feature)| feature.missing);
            let why = match rule {
                None => "no column to learn from has that name in the agreement",
                Some(MissingRule::Refuse) => "the agreement has no rule for missing values there",
                Some(MissingRule::Drop) => {
                    "the agreement leaves out rows without it, so no row would be left"
                }
                Some(_) => continue,
            };
            return fail(format!("`absent` names {name:?}, and {why}"));
        }
        Ok(())
    }

    /// Returns what they say as lines of TOML, one for each name and code: to paste below `[data.rows.names]`.
    pub fn written(&self) -> Vec<String> {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let list = |texts: &[String]| {
            let texts: Vec<String> = texts.iter().map(|one| text(one)).collect();
            format!("[{}]", texts.join(", "))
        };
        let mut lines = Vec::new();
        for (agreed, own) in &self.columns {
            lines.push(format!("columns.{} = {}", key(agreed), text(own)));
        }
        for (column, codes) in &self.codes {
            let code = |(own, value): (&String, &String)| {
                format!("codes.{}.{} = {}", key(column), key(own), text(value))
            };
            lines.extend(codes.iter().map(code));
        }
        for (column, marks) in &self.missing {
            lines.push(format!("missing.{} = {}", key(column), list(marks)));
        }
        for (column, unit) in &self.units {
            lines.push(format!("units.{} = {}", key(column), text(unit)));
        }
        for (column, form) in &self.dates {
            lines.push(format!("dates.{} = {}", key(column), text(form.name())));
        }
        let lists = [("absent", &self.absent), ("ignore", &self.ignore)];
        let lists = lists.into_iter().filter(|(_, all)| !all.is_empty());
        lines.extend(lists.map(|(name, all)| format!("{name} = {}", list(all))));
        lines
    }

    /// The names and codes that nobody has filled in yet, one clause each.
    pub fn open(&self) -> Vec<String> {
        let columns = self.columns.iter().filter(|(_, local)| *local == OPEN);
        let columns = columns.map(|(agreed, _)| format!("what {agreed:?} is called here"));
        let codes = self.codes.iter().flat_map(|(column, codes)| {
            let open = codes.iter().filter(|(_, value)| *value == OPEN);
            open.map(move |(text, _)| format!("what {text:?} of {column:?} means"))
        });
        columns.chain(codes).collect()
    }

    /// Returns whether the schema, or who reads other columns, knows all columns that names stand for.
    fn is_agreed(&self, schema: &Schema, also: &[&str]) -> Result<(), DataError> {
        let agreed = schema.names().chain(schema.target.name.iter());
        let filters = schema.only.iter().map(|filter| filter.column.as_str());
        let all: Vec<&str> = agreed
            .chain(filters)
            .chain(schema.subgroup.as_deref())
            .collect();
        // Whoever predicts keeps the names of all that the learning reads, such as whose a row is.
        let named = self.columns.keys().chain(self.codes.keys());
        let named = named.map(|name| (name, "`columns` or `codes`"));
        let missing = self.missing.keys().map(|name| (name, "`missing`"));
        let units = self.units.keys().map(|name| (name, "`units`"));
        let known = |name: &str| all.contains(&name) || also.contains(&name);
        match named
            .chain(missing)
            .chain(units)
            .find(|(name, _)| !known(name))
        {
            None => Ok(()),
            Some((name, place)) => Err(DataError::Config(format!(
                "{name:?} stands in {place}, but the schema has no such column{}",
                nearest(name, all.iter().copied())
            ))),
        }
    }
}
