//! Gathers the rows of a table from records, one after the other: what stands before the names of the columns,
//! between the rows and behind them is left out, and said.

use std::collections::BTreeMap;
use std::path::PathBuf;

use csv::StringRecord;

use super::lexer::CsvRecord;
use super::origin::{Origin, ROW};
use super::{RawFile, RawRows, cells, composed, end, shape};
use crate::counted::verb;
use crate::data::{DataError, Format, RowPlace};

/// Most records at the end of a table that may sum up the others.
const TAIL: usize = 8;

/// The columns of a file whose cells are needed; all where nobody knows them yet.
pub type Wanted<'a> = Option<&'a [&'a str]>;

/// A table of which some rows are read.
pub(in crate::data) struct Gathering<'a> {
    path: PathBuf,
    format: &'a Format,
    unit: &'static str,
    /// The names of the columns as the file has them.
    names: Vec<String>,
    /// The record with the names, where the file has one.
    header: Option<StringRecord>,
    /// Fewest cells of a row: columns without a name behind the last with one need none.
    least: usize,
    /// Columns without a name before the first with one.
    margin: usize,
    rows: RawRows,
    /// The last records, as far as they may sum up the others.
    tail: Vec<CsvRecord>,
    /// Counts of records that begin with a word for a sum, by its place and the word.
    words: BTreeMap<(usize, String), usize>,
    before: Option<String>,
    empty: Vec<u64>,
    again: Vec<u64>,
    /// Rows that end with separators and nothing between them.
    cut: usize,
    notes: Vec<String>,
}

impl<'a> Gathering<'a> {
    /// Finds the names of the columns in the first records, at least [`shape::HEAD`] if there are as many, and
    /// takes their rows.
    ///
    /// # Errors
    /// [`DataError`]: a row that does not fit.
    pub(in crate::data) fn begin(
        path: PathBuf,
        mut head: Vec<CsvRecord>,
        origin: Origin<'_>,
        format: &'a Format,
        wanted: Wanted<'_>,
    ) -> Result<Self, DataError> {
        let named = format.columns.is_none();
        let mut empty = Vec::new();
        head.retain(|record| {
            let keep = shape::filled(&record.cells) > 0;
            if !keep {
                empty.push(record.line);
            }
            keep
        });
        let ahead = shape::ahead(&head, named, origin);
        let skipped: Vec<u64> = head.drain(..ahead).map(|record| record.line).collect();
        let unit = origin.unit();
        let before = (ahead > 0).then(|| {
            format!(
                "{} {} before the table and {} left out: a title or a comment",
                shape::lines(unit, &skipped),
                match ahead {
                    1 => "stands",
                    _ => "stand",
                },
                verb(ahead, "are")
            )
        });
        let mut notes = Vec::new();
        let mut records = head.into_iter();
        let mut header = None;
        let mut names = match &format.columns {
            Some(names) if !names.is_empty() => names.clone(),
            Some(_) => {
                let first = records.as_slice().first();
                let first = first.map_or(0, |record| record.cells.len());
                (1..=first).map(|at| at.to_string()).collect()
            }
            None => match (records.next(), origin) {
                (None, _) => Vec::new(),
                (Some(record), Origin::Text(text)) => {
                    let names = shape::written_names(text, &record, format);
                    header = Some(record.cells);
                    names
                }
                (Some(record), Origin::Sheet) => {
                    let names = record.cells.iter().map(String::from).collect();
                    header = Some(record.cells);
                    names
                }
            },
        };
        if named {
            if let Some(note) = shape::labels_beside_names(&mut names, records.as_slice(), origin) {
                notes.push(note);
            }
            let second = header.as_ref();
            let second = second.and_then(|own| shape::second_names(own, records.as_slice(), unit));
            if let Some(note) = second {
                records.next();
                notes.push(note);
            }
        }
        let width = names.len();
        let nameless = names
            .iter()
            .rev()
            .take_while(|name| name.trim().is_empty())
            .count();
        let (tidied, _) = shape::tidied(&names);
        let kept = |name: &String| {
            let same = |own: &&str| composed(own) == name.as_str();
            name.is_empty() || wanted.is_none_or(|wanted| wanted.iter().any(same))
        };
        let kept: Vec<bool> = tidied.iter().map(kept).collect();
        let mut table = Self {
            path,
            format,
            unit,
            names,
            header: header.filter(|names| shape::filled(names) > 1),
            least: match origin {
                Origin::Text(_) => width - nameless,
                Origin::Sheet => 0,
            },
            margin: tidied.iter().take_while(|name| name.is_empty()).count(),
            rows: RawRows::new(&kept, matches!(origin, Origin::Text(_))),
            tail: Vec::new(),
            words: BTreeMap::new(),
            before,
            empty,
            again: Vec::new(),
            cut: 0,
            notes,
        };
        for record in records {
            table.add(record)?;
        }
        Ok(table)
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// [`DataError`]: it does not fit.
    pub(in crate::data) fn add(&mut self, record: CsvRecord) -> Result<(), DataError> {
        if shape::filled(&record.cells) == 0 {
            self.empty.push(record.line);
            return Ok(());
        }
        if self.header.as_ref() == Some(&record.cells) {
            self.again.push(record.line);
            return Ok(());
        }
        for (place, cell) in record.cells.iter().enumerate().take(self.margin + 2) {
            if let Some(word) = shape::total_word(cell) {
                *self.words.entry((place, word)).or_default() += 1;
            }
        }
        let sums = shape::summing(&record.cells, self.margin).is_some();
        let settled = match sums {
            true => self.tail.len().saturating_sub(TAIL - 1),
            false => self.tail.len(),
        };
        for earlier in self.tail.drain(..settled).collect::<Vec<_>>() {
            self.push(earlier)?;
        }
        match sums {
            true => {
                self.tail.push(record);
                Ok(())
            }
            false => self.push(record),
        }
    }

    fn push(&mut self, record: CsvRecord) -> Result<(), DataError> {
        let line = record.line;
        // A sheet has no cells that are empty at the end of a row.
        let mut more = record.cells.iter().enumerate().skip(self.names.len());
        let beside = more.find(|(_, cell)| !cell.is_empty());
        if let Some((place, text)) = beside.filter(|_| self.unit == ROW) {
            return Err(DataError::Cell {
                path: self.path.clone(),
                at: RowPlace::Row(line),
                column: (place + 1).to_string(),
                text: text.to_owned(),
                expected: "a name is needed above it, in the row with the names of the columns"
                    .into(),
            });
        }
        let widths = self.least..=self.names.len();
        let delimiter = self.format.delimiter;
        let cells = cells(record, widths, delimiter, &self.path, &mut self.cut)?;
        self.rows.push(&self.path, line, cells.iter())
    }

    /// Leaves the last rows out that sum up the others.
    fn leave_totals_out(&mut self) -> Result<Vec<String>, DataError> {
        let mut notes = Vec::new();
        while let Some(last) = self.tail.last()
            && self.rows.len() + self.tail.len() > 1
            && let Some((place, cell)) = shape::summing(&last.cells, self.margin)
            && let Some(word) = shape::total_word(cell)
            && self.words.get(&(place, word.clone())) == Some(&1)
        {
            notes.push(format!(
                "{} {} begins with {cell:?} and is left out: it sums up the rows before it",
                self.unit, last.line
            ));
            self.tail.pop();
        }
        for record in std::mem::take(&mut self.tail) {
            self.push(record)?;
        }
        Ok(notes)
    }

    /// The table, of which `ends` tells whether its last line has an end.
    ///
    /// # Errors
    /// [`DataError::Ragged`], [`DataError::TwoColumns`]; an empty file.
    pub(in crate::data) fn finish(mut self, ends: bool) -> Result<RawFile, DataError> {
        let totals = self.leave_totals_out()?;
        let mut notes: Vec<String> = self.before.take().into_iter().collect();
        notes.append(&mut self.notes);
        if !self.empty.is_empty() {
            notes.push(format!(
                "{} {} separators only and {} left out",
                shape::lines(self.unit, &self.empty),
                verb(self.empty.len(), "have"),
                verb(self.empty.len(), "are")
            ));
        }
        if !self.again.is_empty() {
            notes.push(format!(
                "{} {} the names of the columns and {} left out",
                shape::lines(self.unit, &self.again),
                verb(self.again.len(), "repeat"),
                verb(self.again.len(), "are")
            ));
        }
        notes.extend(totals);
        if self.cut > 0 {
            notes.push(format!(
                "{} of {} rows {} with separators and nothing between them, which are left out",
                self.cut,
                self.rows.len(),
                verb(self.cut, "end")
            ));
        }
        self.rows.shrink();
        let mut file = RawFile::new(self.path, &self.names, self.rows, notes)?;
        if !ends {
            file.notes.extend(end::broken_off(&file));
        }
        if self.format.columns.is_none() {
            file.leave_row_labels_out();
        }
        Ok(file)
    }
}
