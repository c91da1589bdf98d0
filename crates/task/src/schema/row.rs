//! Reads the rows of a file by a schema: finds its columns by name, and encodes cell by cell.

#![deny(clippy::wildcard_enum_match_arm)]

use std::path::Path;

use super::absent::StandIns;
use super::feature::EncodedCells;
use super::remedy::TRANSLATE;
use super::survival::survival_row;
use super::{Days, Levels, LocalNames, MeasuredColumn, MissingRule, Quantity, ReadCells, Schema};
use crate::data::{
    ColumnMarks, DataError, Format, RawFile, RawRow, RawRows, are_with_zeros, composed, number,
    without_zeros,
};
use methods::nearest;

/// Places of the columns of a schema in one file.
pub struct FileLayout<'a> {
    schema: &'a Schema,
    local: &'a LocalNames,
    format: &'a Format,
    path: &'a Path,
    header: &'a [String],
    /// Marks of a missing value, by column of the file.
    marks: Vec<ColumnMarks>,
    /// Place of each feature; `None` for one that the file does not have.
    features: Vec<Option<usize>>,
    /// Replacements of those.
    stand_ins: StandIns,
    /// Replacements of a missing value by agreement alone, of every feature.
    middles: Vec<EncodedCells>,
    /// The levels of every feature; none of a number.
    levels: Vec<Vec<String>>,
    /// Reading of the numbers of every feature.
    measured: Vec<MeasuredColumn<'a>>,
    /// The same of the columns to predict.
    measured_targets: Vec<MeasuredColumn<'a>>,
    /// For every feature and level of the schema, whether the file has it.
    seen: Vec<Vec<bool>>,
    /// Of every column of the file whether its whole numbers are all written with zeros behind the point:
    /// as categories these are left out.
    zeros: Vec<bool>,
    /// True if no row decides how another one is read.
    alone: bool,
    targets: Vec<usize>,
    filters: Vec<usize>,
    subgroup: Option<usize>,
}

/// Result of reading a row.
#[derive(Debug, Clone, PartialEq)]
pub enum ReadRow {
    /// The row is used. Its features as numbers, NaN for a missing one; then the values to predict.
    Used(Vec<f64>, Vec<f64>),
    /// The row has no value to predict.
    NoTarget,
    /// This feature is missing, and rows without it are left out.
    Incomplete(String),
    /// This condition of the schema does not hold.
    Excluded(String),
}

impl<'a> FileLayout<'a> {
    /// Finds the columns. With `target` false the column to predict is not needed: rows are read to
    /// be predicted. Columns that are neither in the schema, nor ignored, nor in `also` (by their agreed
    /// names), are refused.
    ///
    /// # Errors
    /// [`DataError::NoColumn`], [`DataError::ExtraColumns`], [`DataError::Config`]: names in `local`
    /// that are in no schema.
    pub fn new(
        schema: &'a Schema,
        local: &'a LocalNames,
        format: &'a Format,
        file: &'a RawFile,
        target: bool,
        also: &[&str],
    ) -> Result<Self, DataError> {
        let header = &file.header;
        local.check(schema, (also, target))?;
        let stand_ins = StandIns::of(schema, local, &file.path, header)?;
        let place = |agreed: &str| -> Result<usize, DataError> {
            let column = local.column(agreed);
            let name = composed(column);
            let found = header.iter().position(|own| *own == name);
            found.ok_or_else(|| DataError::NoColumn {
                path: file.path.clone(),
                column: column.to_owned(),
                columns: header.clone(),
                renamed: column == agreed,
            })
        };
        let places = |names: &mut dyn Iterator<Item = &str>| {
            names.map(place).collect::<Result<Vec<usize>, _>>()
        };
        let feature = |name: &str| match local.lacks(name) {
            true => Ok(None),
            false => place(name).map(Some),
        };
        let mut layout = Self {
            features: schema.names().map(feature).collect::<Result<_, _>>()?,
            stand_ins,
            middles: schema
                .columns()
                .map(|(_, feature)| feature.kind.middle())
                .collect(),
            marks: local.marks_of_file(schema, header),
            levels: schema
                .columns()
                .map(|(_, feature)| match feature.kind.cells() {
                    ReadCells::Numbers { .. } | ReadCells::Days(_) => Vec::new(),
                    ReadCells::Levels(levels) => levels.all(),
                })
                .map(|levels| levels.iter().map(|level| composed(level).into()).collect())
                .collect(),
            measured: schema
                .names()
                .map(|name| schema.measured(name, local))
                .collect(),
            measured_targets: schema
                .target
                .name
                .iter()
                .map(|name| schema.measured(name, local))
                .collect(),
            targets: places(&mut schema.target.name.iter().filter(|_| target))?,
            filters: places(&mut schema.only.iter().map(|filter| filter.column.as_str()))?,
            // Rows that are to be predicted need none.
            subgroup: places(&mut schema.subgroup.as_deref().into_iter().filter(|_| target))?.pop(),
            zeros: Vec::new(),
            alone: false,
            seen: Vec::new(),
            path: &file.path,
            schema,
            local,
            format,
            header,
        };
        let features = layout.features.iter().flatten();
        let used = features
            .chain(&layout.targets)
            .chain(&layout.filters)
            .chain(&layout.subgroup);
        let used: Vec<usize> = used.copied().collect();
        let categories = schema.columns().zip(&layout.features);
        let categories = categories.filter(|((_, feature), _)| match feature.kind.cells() {
            ReadCells::Numbers { .. } | ReadCells::Days(_) => false,
            ReadCells::Levels(_) => true,
        });
        let categories: Vec<usize> = categories
            .filter_map(|(_, &place)| place)
            .chain(layout.subgroup)
            .collect();
        layout.zeros = vec![false; header.len()];
        for place in categories {
            let cells = file.rows.iter().filter_map(|row| layout.cell(&row, place));
            let found = are_with_zeros(cells);
            layout.zeros[place] = found;
        }
        layout.seen = layout.seen(&file.rows);
        let extra = layout.extra(&used, target, also);
        if extra.is_empty() {
            Ok(layout)
        } else {
            Err(DataError::ExtraColumns {
                path: file.path.clone(),
                columns: extra,
            })
        }
    }

    /// This layout, by which every row is read by itself, whatever the others hold: zeros behind the point of a
    /// whole number are left out wherever the text with them is no agreed level, and a number that is another
    /// text than an agreed level is always asked about.
    #[must_use]
    pub fn row_by_row(mut self) -> Self {
        // Those of numbers stay: 1,000 may be a thousand.
        let categories = self.levels.iter().zip(&self.features);
        let categories = categories.filter(|(levels, _)| !levels.is_empty());
        for place in categories.filter_map(|(_, &place)| place) {
            self.zeros[place] = true;
        }
        if let Some(place) = self.subgroup {
            self.zeros[place] = true;
        }
        self.alone = true;
        for seen in &mut self.seen {
            seen.fill(false);
        }
        self
    }

    /// Columns of the file that nobody reads and nobody said to ignore. `used` are the places of those that
    /// are read, `also` the names of those that others read.
    fn extra(&self, used: &[usize], target: bool, also: &[&str]) -> Vec<String> {
        let (schema, local) = (self.schema, self.local);
        let mut extra = Vec::new();
        for (at, name) in self.header.iter().enumerate() {
            let named = |own: &str| composed(own) == *name;
            let agreed = |own: &str| named(local.column(own));
            let is_target = schema.target.name.iter().any(agreed);
            let is_subgroup = schema.subgroup.as_deref().is_some_and(agreed);
            let ignored = local.ignore.iter().any(|own| named(own));
            let known = used.contains(&at) || is_target || is_subgroup || ignored;
            let beside = also.iter().any(|own| agreed(own))
                || (!target && local.columns.values().any(|own| named(own)));
            if !known && !beside {
                extra.push(name.clone());
            }
        }
        extra
    }

    /// For every feature and level of the schema, whether these rows have it.
    fn seen(&self, rows: &RawRows) -> Vec<Vec<bool>> {
        let columns = self.schema.columns().zip(&self.levels).zip(&self.features);
        let seen = |(((name, _), levels), &place): (((&str, _), &Vec<String>), &Option<usize>)| {
            let mut seen = vec![false; levels.len()];
            let Some(place) = place else {
                return seen;
            };
            // Levels are few; rows that have none of them cost as many comparisons.
            for text in rows.iter().filter_map(|row| self.cell(&row, place)) {
                let value = self.value(name, place, text);
                let at = levels.iter().position(|level| level == value);
                at.into_iter().for_each(|at| seen[at] = true);
            }
            seen
        };
        columns.map(seen).collect()
    }

    /// Reads one row.
    ///
    /// # Errors
    /// [`DataError::Cell`]: a cell does not hold what the schema says.
    pub fn read(&self, row: &RawRow<'_>) -> Result<ReadRow, DataError> {
        for (filter, &place) in self.schema.only.iter().zip(&self.filters) {
            let meets = match self.cell(row, place) {
                None => false,
                Some(text) => {
                    let text = self.local.value(&filter.column, text);
                    let holds = filter.rule.holds(&self.format.plain(text));
                    holds.ok_or_else(|| self.wrong(row, place, &self.format.needed(text)))?
                }
            };
            if !meets {
                return Ok(ReadRow::Excluded(filter.clone().into()));
            }
        }
        let mut targets = Vec::with_capacity(self.targets.len());
        let measured = self.measured_targets.iter();
        let places = self.targets.iter().zip(measured);
        for (at, (name, (&place, measured))) in
            self.schema.target.name.iter().zip(places).enumerate()
        {
            let Some(text) = self.cell(row, place) else {
                return Ok(ReadRow::NoTarget);
            };
            let text = self.local.value(name, text);
            let read = |text: &str| measured.number(self.format, text);
            let value = self
                .schema
                .target
                .value(at, text, &read, &|text| self.format.needed(text));
            targets.push(value.map_err(|expected| self.wrong(row, place, &expected))?);
        }
        // Rows that are to be predicted have no target.
        if let (true, Some(&last)) = (self.schema.target.survival, self.targets.last()) {
            survival_row(&mut targets).map_err(|expected| self.wrong(row, last, &expected))?;
        }
        match self.features(row)? {
            Ok(values) => Ok(ReadRow::Used(values, targets)),
            Err(missing) => Ok(ReadRow::Incomplete(missing.to_owned())),
        }
    }

    /// The numbers of the features; or, if the row is to be left out, the column that is missing.
    fn features(&self, row: &RawRow<'_>) -> Result<Result<Vec<f64>, &str>, DataError> {
        let (mut cells, mut missing) = (EncodedCells::default(), Vec::new());
        let columns = self.schema.columns().zip(&self.levels).zip(&self.features);
        let measured = self.seen.iter().zip(&self.measured).zip(&self.middles);
        for ((((name, feature), own), &place), ((seen, measured), middle)) in columns.zip(measured)
        {
            let Some(place) = place else {
                let instead = match feature.missing.is_middle() {
                    true => Some(middle),
                    false => self.stand_ins.of_column(name),
                };
                instead.into_iter().for_each(|all| cells.extend(all));
                missing.extend(feature.missing.marks().then_some(1.0));
                continue;
            };
            let cell = self.cell(row, place);
            if cell.is_none() {
                match feature.missing {
                    MissingRule::Drop => return Ok(Err(name)),
                    MissingRule::Refuse => {
                        let what =
                            "a value is needed: the schema has no rule for missing values here";
                        return Err(self.wrong(row, place, what));
                    }
                    MissingRule::Mean
                    | MissingRule::Median
                    | MissingRule::Indicator
                    | MissingRule::Middle
                    | MissingRule::MiddleIndicator => {}
                }
            }
            if feature.missing.marks() {
                missing.push(f64::from(cell.is_none()));
            }
            if cell.is_none() && feature.missing.is_middle() {
                cells.extend(middle);
                continue;
            }
            let value = cell.map(|text| self.value(name, place, text));
            let wrong = |expected: String| self.wrong(row, place, &expected);
            match feature.kind.cells() {
                ReadCells::Levels(agreed) => {
                    let place = |text| level(agreed, (own, seen), text);
                    let place = value.map(place).transpose().map_err(wrong)?;
                    cells.level(own.len(), place);
                }
                ReadCells::Days(agreed) => {
                    let number = |text| self.day((agreed, measured), text);
                    let number = value.map(number).transpose().map_err(wrong)?;
                    agreed.encode(number, &mut cells);
                }
                ReadCells::Numbers { agreed, whole } => {
                    let number = |text| self.number((agreed, measured), whole, text);
                    cells.number(value.map(number).transpose().map_err(wrong)?);
                }
            }
        }
        let EncodedCells {
            mut numbers,
            mut levels,
        } = cells;
        numbers.append(&mut levels);
        numbers.append(&mut missing);
        Ok(Ok(numbers))
    }

    fn day(
        &self,
        (agreed, measured): (&Days, &MeasuredColumn<'_>),
        text: &str,
    ) -> Result<f64, String> {
        let value = measured.number(self.format, text);
        let value = value.ok_or(
            "a date is needed, such as 2024-05-31 or 31.05.2024 (`dates` in the names of these files says how they \
             are written otherwise)",
        )?;
        match (agreed.range(), agreed.until) {
            (Some([low, high]), Some(until)) if !(low..=high).contains(&value) => {
                Err(format!("the agreed days are {} to {until}", agreed.since))
            }
            _ => Ok(value),
        }
    }

    fn number(
        &self,
        (quantity, measured): (&Quantity, &MeasuredColumn<'_>),
        whole: bool,
        text: &str,
    ) -> Result<f64, String> {
        let value = measured.number(self.format, text);
        let value = value.ok_or_else(|| self.format.needed(text))?;
        if whole && value.fract() != 0.0 {
            return Err("a whole number is needed".into());
        }
        match quantity.range {
            Some([low, high]) if !(low..=high).contains(&value) => {
                Err(format!("the agreed range is {low} to {high}"))
            }
            Some(_) | None => Ok(value),
        }
    }

    /// The subgroup of a row, if rows have subgroups; `"not stated"` where the cell is empty.
    pub fn subgroup(&self, row: &RawRow<'_>) -> Option<String> {
        let place = self.subgroup?;
        let column = self.schema.subgroup.as_deref().unwrap_or_default();
        let text = self.cell(row, place);
        let text = text.map(|text| self.value(column, place, text));
        Some(text.unwrap_or("not stated").to_owned())
    }

    /// The agreed value of a cell of this agreed column.
    fn value<'r>(&'r self, column: &'r str, place: usize, text: &'r str) -> &'r str {
        let value = self.local.value(column, text);
        let agreed = || {
            let feature = self.schema.columns().find(|(name, _)| *name == column);
            match feature.map(|(_, feature)| feature.kind.cells()) {
                Some(ReadCells::Levels(levels)) => levels.listed.iter().any(|own| own == value),
                Some(ReadCells::Numbers { .. } | ReadCells::Days(_)) | None => false,
            }
        };
        let zeros = self.zeros[place];
        match without_zeros(value).filter(|_| zeros && !(self.alone && agreed())) {
            Some(without) => self.local.value(column, without),
            None => value,
        }
    }

    fn cell<'r>(&self, row: &RawRow<'r>, place: usize) -> Option<&'r str> {
        let text = row.cells.get(place).unwrap_or_default();
        (!self.is_missing(row, place)).then_some(text)
    }

    /// Returns whether the cell of a column of the file means that the value is missing.
    pub fn is_missing(&self, row: &RawRow, place: usize) -> bool {
        let text = row.cells.get(place).unwrap_or_default();
        self.format.is_missing_in(&self.marks[place], text)
    }

    /// Returns what means a missing value, by column of the file.
    pub fn marks(&self) -> &[ColumnMarks] {
        &self.marks
    }

    /// Returns what stands in for the columns that the file does not have, in sentences without a full stop.
    pub fn absent(&self) -> &[String] {
        self.stand_ins.said()
    }

    fn wrong(&self, row: &RawRow<'_>, place: usize, expected: &str) -> DataError {
        DataError::Cell {
            path: self.path.to_owned(),
            at: row.at,
            column: self.header[place].clone(),
            text: row.cells.get(place).unwrap_or_default().to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// The place of the level of a text.
fn level(
    agreed: &Levels,
    (levels, seen): (&[String], &[bool]),
    text: &str,
) -> Result<usize, String> {
    let listed = &levels[..agreed.listed.len()];
    let at = listed.iter().position(|level| level == text);
    let twin = listed
        .iter()
        .position(|level| number(level).is_some() && number(level) == number(text));
    // A code that this file writes in another way only is a question, not one of the others.
    let asked = |twin: &usize| !agreed.other || !seen[*twin];
    if let (None, Some(twin)) = (at, twin.filter(asked).map(|twin| &listed[twin])) {
        return Err(format!(
            "the agreed level is {twin:?}, and codes are compared as texts: if it is the same one, say \
             so in `codes`: {text:?} = {twin:?}"
        ));
    }
    let at = at.or(agreed.other.then_some(levels.len() - 1));
    at.ok_or_else(|| {
        let near = nearest(text, levels.iter().map(String::as_str));
        format!(
            "the agreed levels are {}{}",
            levels.join(", "),
            if near.is_empty() { TRANSLATE } else { &near }
        )
    })
}
