//! The files as they are read first, and what becomes of their columns.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Cells, ColumnUse, OpenQuestions, Wishes, column, no_columns, sniff};
use crate::data::{DataError, Format, RawFile};
use crate::schema::{FeatureColumns, ReadCells};

/// The format of every file as it was found, and the files, each with the format of the first.
type ReadFiles = (Vec<Format>, Vec<(RawFile, Format)>);

/// Reads files, all with the format of the first.
///
/// # Errors
/// [`DataError`]: no file, one that cannot be read, one without rows.
pub(super) fn read_as_the_first(
    files: &[PathBuf],
    wishes: &Wishes,
    notes: &mut Vec<String>,
) -> Result<ReadFiles, DataError> {
    let (mut formats, raw) = sniff::all(files, &wishes.marks)?;
    if let Some(first) = formats.first() {
        notes.extend(sniff::notes(first));
    }
    let header = raw.first().map_or(Vec::new(), |file| file.header.clone());
    notes.extend(sniff::file_notes(&formats, &raw, |name| {
        wishes.marks_of(name, &header)
    })?);
    let (_, marks) = wishes.marks(&header);
    for format in &mut formats {
        format.missing.extend(marks.iter().cloned());
    }
    if let Some(empty) = raw.iter().find(|file| file.rows.is_empty()) {
        let path = empty.path.display();
        return Err(DataError::Config(format!("{path} has no rows")));
    }
    let no_file = || DataError::Config("give at least one file".into());
    let format = formats.first().cloned().ok_or_else(no_file)?;
    let raw = raw.into_iter().map(|file| (file, format.clone()));
    Ok((formats, raw.collect()))
}

/// The column to predict: the wished one, or the last that is not left out.
pub(super) fn chosen_target(
    header: &[String],
    wishes: &Wishes,
    notes: &mut Vec<String>,
) -> Result<String, DataError> {
    if let Some(target) = &wishes.target {
        return Ok(target.clone());
    }
    let others = header.iter().rev();
    let last = others
        .filter(|name| Some(*name) != wishes.silo_column.as_ref())
        .find(|name| !wishes.drop.contains(name));
    let last = last.cloned().ok_or_else(no_columns)?;
    notes.push(format!(
        "no --target was given: the last column, {last:?}, is taken"
    ));
    Ok(last)
}

/// The columns of the files by what becomes of them.
#[derive(Default)]
pub(super) struct Sorted {
    pub(super) features: Vec<FeatureColumns>,
    /// Content of every feature, in one phrase.
    pub(super) columns: Vec<(String, String)>,
    /// Columns that are no features, and why.
    pub(super) left_out: Vec<(String, String)>,
    /// The usual values of columns of numbers.
    pub(super) usual: BTreeMap<String, [f64; 2]>,
    /// Ranges that an agreement could have.
    pub(super) ranges: BTreeMap<String, [f64; 2]>,
}

impl Sorted {
    /// Notes between which numbers those to predict lie.
    pub(super) fn predict(&mut self, cells: &Cells<'_>) {
        if !cells.all_numbers() {
            return;
        }
        let name = || cells.name.to_owned();
        self.usual.extend(cells.usual().map(|both| (name(), both)));
        let range = cells.agreeable();
        self.ranges.extend(range.map(|both| (name(), both)));
    }

    /// A column that is no feature, and why.
    pub(super) fn leave_out(&mut self, name: &str, why: String) {
        self.left_out.push((name.to_owned(), why));
    }

    /// Finds out what a column is. What nobody can tell from its cells is asked.
    pub(super) fn add(
        &mut self,
        cells: Cells<'_>,
        asked: &mut OpenQuestions<'_>,
        notes: &mut Vec<String>,
    ) {
        let name = cells.name.to_owned();
        if asked.minus(&cells) {
            return;
        }
        match column::found(&cells, asked.wishes) {
            ColumnUse::Feature(feature, what) => {
                asked.kept_number(&cells);
                match feature.kind.cells() {
                    // No day stands for a missing one, and nothing that is usual of days is told.
                    ReadCells::Days(_) => {}
                    ReadCells::Numbers { .. } | ReadCells::Levels(_) => {
                        asked.stand_ins(&cells);
                        self.usual
                            .extend(cells.usual().map(|both| (name.clone(), both)));
                    }
                }
                self.ranges
                    .extend(cells.agreeable().map(|both| (name.clone(), both)));
                self.columns.push((name, what));
                self.features.push(feature);
            }
            ColumnUse::Category(feature, what, said) => {
                notes.extend(said);
                asked.alike(&cells);
                self.columns.push((name, what));
                self.features.push(feature);
            }
            ColumnUse::Odd => asked.odd(&cells),
            // Whoever says whose a row is has said what the column is.
            ColumnUse::Question(_) if asked.asks_whose(&name) => {}
            ColumnUse::Question(question) => asked.questions.sentences.push(question),
            ColumnUse::LeftOut(why) => self.leave_out(&name, why),
        }
    }
}
