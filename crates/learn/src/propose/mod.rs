//! Proposes a schema for files that nobody has described yet.
//!
//! [`propose`] looks at the files, finds out how they are written and what the columns hold, and
//! says why it proposes what it does. People are to read and correct the proposal: a number may be
//! a code, and a code a number.

mod column;
mod describe;
mod sniff;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::data::{DataError, Format, RawFile, Target, pretend_silo, silo_of};
use crate::schema::{Schema, merged};

use self::column::{Cells, Found};

pub use self::sniff::Marks;

/// What the user knows already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The column to predict; by default the last.
    pub target: Option<String>,
    /// The class that counts as positive, of two.
    pub positive: Option<String>,
    /// The column that names each row's silo; by default each file is a silo.
    pub silo_column: Option<String>,
    /// Number of pretend silos to which the rows are dealt in turn, in place of a silo for each file.
    pub pretend_silos: Option<usize>,
    /// Columns to leave out.
    pub drop: Vec<String>,
    /// Columns that hold numbers, whatever they look like.
    pub numbers: Vec<String>,
    /// Columns that hold categories, even if their codes are numbers.
    pub categories: Vec<String>,
    /// Whether the rows of one silo are enough: to describe columns, not to simulate a federation.
    pub alone: bool,
    /// The marks in numbers, where files leave them open.
    pub marks: Marks,
}

/// What was found in the files, and what is proposed.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// How the cells are written, in the first file.
    pub format: Format,
    /// How they are written in each file.
    pub formats: Vec<Format>,
    /// What the columns mean.
    pub schema: Schema,
    /// Columns that are not used, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// Rows in all files.
    pub rows: usize,
    /// The silos, with their rows.
    pub silos: Vec<(String, usize)>,
    /// What was found in each feature column, in one phrase.
    pub columns: Vec<(String, String)>,
    /// What the user should look at, one sentence each.
    pub notes: Vec<String>,
}

impl Proposal {
    /// The kind of the target.
    pub fn target(&self) -> Target {
        self.schema.target()
    }
}

/// Looks at these files, which have the same columns.
///
/// # Errors
/// [`DataError`]: a file that cannot be read, a column that is not there, no column left to learn
/// from, one silo only.
pub fn propose(files: &[PathBuf], wishes: &Wishes) -> Result<Proposal, DataError> {
    let (formats, raw) = sniff::all(files, wishes.marks)?;
    let format = formats
        .first()
        .cloned()
        .ok_or_else(|| DataError::Config("give at least one file".into()))?;
    if let Some(empty) = raw.iter().find(|file| file.rows.is_empty()) {
        return Err(DataError::Config(format!(
            "{} has no rows",
            empty.path.display()
        )));
    }
    let header = &raw[0].header;
    for name in wishes
        .target
        .iter()
        .chain(&wishes.silo_column)
        .chain(&wishes.drop)
        .chain(&wishes.numbers)
        .chain(&wishes.categories)
    {
        raw[0].place(name)?;
    }
    let mut notes = sniff::notes(&format);
    notes.extend(sniff::file_notes(&formats, &raw)?);
    let silos = silos(&raw, wishes, &format)?;
    let target = match &wishes.target {
        Some(target) => target.clone(),
        None => {
            let others = header.iter().rev();
            let last = others
                .filter(|name| Some(*name) != wishes.silo_column.as_ref())
                .find(|name| !wishes.drop.contains(name));
            let last = last.cloned().ok_or_else(no_columns)?;
            notes.push(format!(
                "no --target was given: the last column, {last:?}, is taken"
            ));
            last
        }
    };
    let cells = Cells::of(&raw, &target, &format)?;
    let target = describe::target(&cells, &target, wishes, &mut notes)?;
    let (mut features, mut columns, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for name in header {
        if target.name.iter().any(|target| target == name) {
            continue;
        }
        if Some(name) == wishes.silo_column.as_ref() {
            continue;
        }
        if wishes.drop.contains(name) {
            left_out.push((name.clone(), "as you asked".to_owned()));
            continue;
        }
        let cells = Cells::of(&raw, name, &format)?;
        match cells.found(wishes) {
            Found::Feature(feature, what) => {
                columns.push((name.clone(), what));
                features.push(feature);
            }
            Found::LeftOut(why) => left_out.push((name.clone(), why)),
        }
    }
    if features.is_empty() {
        return Err(no_columns());
    }
    let schema = Schema {
        target,
        min_rows: 10,
        only: Vec::new(),
        subgroup: None,
        features: merged(features),
    };
    schema.check()?;
    Ok(Proposal {
        format,
        formats,
        schema,
        left_out,
        rows: raw.iter().map(|file| file.rows.len()).sum(),
        silos,
        columns,
        notes,
    })
}

/// How a file is written, as far as that can be seen: encoding, separator, marks in numbers.
///
/// # Errors
/// [`DataError`]: it cannot be read, is no table, or has numbers that can be read in two ways.
pub fn format_of(file: &Path) -> Result<Format, DataError> {
    sniff::read(file, Marks::default()).map(|(format, _)| format)
}

/// How each of these files is written, as far as that can be seen. `marks` answer what the files leave
/// open.
///
/// # Errors
/// As of [`format_of`], for the first file that has one.
pub fn formats_of(files: &[PathBuf], marks: Marks) -> Result<Vec<Format>, DataError> {
    let format = |file: &PathBuf| sniff::read(file, marks).map(|(format, _)| format);
    files.iter().map(format).collect()
}

fn no_columns() -> DataError {
    DataError::Config("no column is left to learn from".into())
}

/// The silos with their rows, in the order of their first rows.
fn silos(
    raw: &[RawFile],
    wishes: &Wishes,
    format: &Format,
) -> Result<Vec<(String, usize)>, DataError> {
    let mut found: Vec<(String, usize)> = Vec::new();
    if let Some(count) = wishes.pretend_silos {
        let rows: usize = raw.iter().map(|file| file.rows.len()).sum();
        let silo = |at: usize| {
            (
                pretend_silo(at),
                rows / count + usize::from(at < rows % count),
            )
        };
        return Ok((0..count).map(silo).collect());
    }
    match &wishes.silo_column {
        Some(column) => {
            let mut places: BTreeMap<String, usize> = BTreeMap::new();
            for file in raw {
                let place = file.place(column)?;
                for row in &file.rows {
                    let name = row.cells.get(place).unwrap_or_default();
                    if format.is_missing(name) {
                        continue;
                    }
                    let at = *places.entry(name.to_owned()).or_insert_with(|| {
                        found.push((name.to_owned(), 0));
                        found.len() - 1
                    });
                    found[at].1 += 1;
                }
            }
        }
        None => {
            let silo = |file: &RawFile| (silo_of(&file.path), file.rows.len());
            found.extend(raw.iter().map(silo));
        }
    }
    if found.len() > 1 || wishes.alone {
        return Ok(found);
    }
    let candidates: Vec<String> = raw[0]
        .header
        .iter()
        .filter(|name| {
            let cells = Cells::of(raw, name, format);
            cells.is_ok_and(|cells| cells.may_name_silos())
        })
        .map(|name| format!("{name:?}"))
        .collect();
    let hint = match candidates.is_empty() {
        true => "give a file for each silo".to_owned(),
        false => format!(
            "give a file for each silo, or say which column names it with --silo-column: {} could",
            candidates.join(", ")
        ),
    };
    Err(DataError::Config(format!(
        "all rows are of one silo, and a federation needs several: {hint}; or deal the rows to \
         pretend silos with --pretend-silos 3, to try a federation out"
    )))
}

#[cfg(test)]
mod tests;
