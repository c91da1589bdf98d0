//! Errors of reading and preparing data.

use std::fmt;
use std::path::PathBuf;

use super::{LeftOut, nearest};
use crate::counted::counted;
use crate::questions::Unanswered;

/// Error of reading, partitioning or preparing data.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// A person has to say something first.
    #[error("{0}")]
    Unanswered(Unanswered),
    /// The source is read from files, and no data folder is given.
    #[error(
        "the {source_name} data are read from files: give their folder with --data DIR or ROTA_DATA. {hint}"
    )]
    NoFolder {
        /// The source.
        source_name: &'static str,
        /// Source of the files.
        hint: &'static str,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {reason}{hint}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason that the system gives.
        reason: String,
        /// Source of the file, if known; starts with a space.
        hint: String,
    },
    /// A file has no column of that name.
    #[error(
        "{}: there is no column {column:?}; the columns are {}{}",
        path.display(), listed(columns), without(column, columns, *renamed)
    )]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The name looked for.
        column: String,
        /// The names there are.
        columns: Vec<String>,
        /// True if the configuration can give the name that the column has in this file.
        renamed: bool,
    },
    /// A column of a file holds what no table can hold.
    #[error(
        "{}: the column {column:?} is not read: it holds {what}; leave it out, or write what it holds into \
         columns of its own",
        path.display()
    )]
    Unread {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Content of the file.
        what: String,
    },
    /// A file has columns that are not in the agreed schema.
    #[error(
        "{}: {} not in the schema: write the name under `ignore` if it is not to be read, or under \
         `columns` if it is another name of a column in the schema",
        path.display(), match columns.as_slice() {
            [one] => format!("the column {one:?} is"),
            several => format!("the columns {} are", listed(several)),
        }
    )]
    ExtraColumns {
        /// The file.
        path: PathBuf,
        /// The columns.
        columns: Vec<String>,
    },
    /// Two columns of a file have one name.
    #[error("{}: the column {column:?} is there twice: rename one of them", path.display())]
    TwoColumns {
        /// The file.
        path: PathBuf,
        /// The name.
        column: String,
    },
    /// A row has more or fewer cells than there are columns.
    #[error(
        "{}, line {line}: expected {expected} cells, one per column, found {got}{}",
        path.display(),
        match quoted {
            Some(from) => format!("; one of them goes over several lines from line {from} on: is a quotation \
                mark there never closed?"),
            None => String::new(),
        }
    )]
    Ragged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// Cells in this row.
        got: usize,
        /// Columns.
        expected: usize,
        /// The line where one of the cells begins that goes over several lines.
        quoted: Option<u64>,
    },
    /// A quotation mark opens a cell that has no proper end.
    #[error(
        "{}, line {line}: a quotation mark opens cell {cell}, which {what}: close it where the cell ends, \
         and write a mark that belongs to the text twice (\"\")",
        path.display()
    )]
    OpenQuote {
        /// The file.
        path: PathBuf,
        /// The line where the cell begins, from 1.
        line: u64,
        /// The cell in its row, from 1.
        cell: usize,
        /// Description of the fault.
        what: String,
    },
    /// Numbers that can be read in two ways, and nothing in the file tells which.
    #[error(
        "{}: column {column:?} holds {readings}, or with the options --thousands and --decimal",
        path.display()
    )]
    Question {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// A cell, its two readings, and how to choose.
        readings: String,
    },
    /// The numbers of a column are written in different ways.
    #[error("{}: column {column:?} holds {cells}: write all its numbers in one way", path.display())]
    Mixed {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Two cells, and where they are.
        cells: String,
    },
    /// A cell holds something other than expected.
    #[error("{}, {at}: column {column:?} holds {text:?}, but {expected}", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// The line or row.
        at: RowPlace,
        /// The column.
        column: String,
        /// Text of the cell.
        text: String,
        /// Description of an acceptable value.
        expected: String,
    },
    /// A file has no usable row.
    #[error("{}: {}", path.display(), match read {
        0 => "it has a header, and no row".to_owned(),
        _ => format!("no usable row: of {read}, {left_out}; {}", left_out.remedy()),
    })]
    NoRows {
        /// The file.
        path: PathBuf,
        /// Rows read.
        read: usize,
        /// Counts of those that are not usable, by reason.
        left_out: LeftOut,
    },
    /// A silo has fewer rows than the schema asks for.
    #[error(
        "silo {silo:?} has {}, but the schema asks for at least {least} (`min-rows`)",
        counted(*rows, "usable row")
    )]
    FewRows {
        /// The silo.
        silo: String,
        /// Usable rows.
        rows: usize,
        /// Rows that it must have.
        least: usize,
    },
    /// A silo has too few rows to train and to test on.
    #[error(
        "silo {silo:?} has {}, split into train {train}, validation {validation}, test {test}; it needs at least 1 to train and 1 to test",
        counted(*rows, "usable row")
    )]
    TooFewRows {
        /// The silo.
        silo: String,
        /// Usable rows.
        rows: usize,
        /// Of these, for training.
        train: usize,
        /// Of these, for validation.
        validation: usize,
        /// Of these, for testing.
        test: usize,
    },
    /// More silos were asked for than there are.
    #[error("{asked} silos were asked for, but the {source_name} data have {has}")]
    TooManySilos {
        /// Number asked for.
        asked: usize,
        /// The source.
        source_name: &'static str,
        /// Number there are, in words.
        has: String,
    },
    /// A column is missing in all training rows, so that there is no mean to put in.
    #[error(
        "silo {silo:?}: column {column:?} is missing in every training row: leave the column out, \
         leave small silos out with `silo-rows`, use `standardise = \"silo\"`, where it counts as average, or \
         agree on its `range` or `usual` values, of which the middle stands in where the column is `absent`"
    )]
    AllMissing {
        /// The silo.
        silo: String,
        /// The column.
        column: String,
    },
    /// The configuration contradicts itself.
    #[error("{0}")]
    Config(String),
}

/// Returns what may be wrong with a file that has no such column.
fn without(column: &str, columns: &[String], renamed: bool) -> String {
    let near = nearest(column, columns.iter().map(String::as_str));
    if !near.is_empty() {
        return near;
    }
    if let [one] = columns
        && let Some(delimiter) = [';', '\t', '|', ',']
            .iter()
            .find(|mark| one.contains(**mark))
    {
        return format!(
            "; is {delimiter:?} what separates its cells? Then say so in `format`: delimiter = {:?}",
            delimiter.to_string()
        );
    }
    let numbers = columns.iter().filter(|name| name.parse::<f64>().is_ok());
    if numbers.count() > 0 {
        return "; does the file have no header? Then name its columns in `format`: columns = [...]"
            .into();
    }
    if renamed {
        format!(
            "; if it has another name here, say so in `names`: columns = {{ {} = \"?\" }}",
            key(column)
        )
    } else {
        String::new()
    }
}

/// A name as a key of TOML.
pub(crate) fn key(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    match !name.is_empty() && name.chars().all(plain) {
        true => name.to_owned(),
        false => serde_json::Value::from(name).to_string(),
    }
}

/// Names of columns, the first forty.
fn listed(columns: &[String]) -> String {
    let mut text = columns
        .iter()
        .take(40)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if columns.len() > 40 {
        text += &format!(" and {} more", columns.len() - 40);
    }
    text
}

/// Place of a row in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPlace {
    /// The line of a text file, from 1.
    Line(u64),
    /// The row of a table, from 1.
    Row(u64),
}

impl fmt::Display for RowPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(formatter, "line {line}"),
            Self::Row(row) => write!(formatter, "row {row}"),
        }
    }
}
