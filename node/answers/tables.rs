//! Tables of rows for questions: every column of files, by agreed names.

use std::collections::{BTreeMap, BTreeSet};

use questions::FederatedQuestion;
use questions::table::{CellColumn, ConditionSign, QuestionInput, RowTable};
use task::data::{ColumnMarks, DataError, Format, RawFile, RowPlace, RowsFile, open, silo_of};

/// A site by name, with its rows.
pub type SiteTable = (String, RowTable);

/// The columns that a question needs as numbers.
pub fn numbers_of(question: &FederatedQuestion) -> BTreeSet<String> {
    let inputs = question.inputs().unwrap_or_default();
    let mut numbers = BTreeSet::new();
    let mut conditions: Vec<_> = question.filter.iter().collect();
    for input in &inputs {
        match input {
            QuestionInput::Scaled { column, .. } | QuestionInput::Number { column, .. } => {
                numbers.insert(column.clone());
            }
            QuestionInput::Indicator(condition) => conditions.push(condition),
            QuestionInput::Level { .. } => {}
        }
    }
    let ordered = |comparison| !matches!(comparison, ConditionSign::Is | ConditionSign::IsNot);
    let ordered = conditions
        .into_iter()
        .filter(|condition| ordered(condition.comparison));
    numbers.extend(ordered.map(|condition| condition.column.clone()));
    numbers
}

/// The cells of a site by column while its files are read, and its rows so far.
#[derive(Default)]
struct SiteCells {
    columns: BTreeMap<String, Vec<Option<CellText>>>,
    rows: usize,
}

impl SiteCells {
    /// Adds a cell of the row that is read.
    fn push(&mut self, column: &str, cell: Option<CellText>) {
        let rows = self.rows;
        let cells = self.columns.entry(column.to_owned());
        cells.or_insert_with(|| vec![None; rows]).push(cell);
    }

    /// Ends a row: columns that its file lacks have no value there.
    fn end_row(&mut self) {
        self.rows += 1;
        let rows = self.rows;
        self.columns
            .values_mut()
            .for_each(|cells| cells.resize(rows, None));
    }

    fn table(self) -> RowTable {
        let mut table = RowTable::new(self.rows);
        for (column, cells) in self.columns {
            table.insert(&column, in_one_kind(cells));
        }
        table
    }
}

/// Files of rows, and whose they are.
#[derive(Debug, Clone, Copy)]
pub struct SiteFiles<'a> {
    /// The files. Without a column each is a site.
    pub files: &'a [RowsFile],
    /// The column that names each row's site, if sites share files.
    pub site_column: Option<&'a str>,
    /// Format of the cells, in files without a format of their own.
    pub format: &'a Format,
}

/// Reads the rows of all sites: all columns, because earlier questions may have used others. A column of
/// `numbers` has nothing else.
///
/// # Errors
/// [`DataError`]: a file that cannot be read, a column that is missing, or a cell that is no number.
pub fn of_files(
    sites: SiteFiles<'_>,
    numbers: &BTreeSet<String>,
) -> Result<Vec<SiteTable>, DataError> {
    let mut read: Vec<(String, SiteCells)> = Vec::new();
    for file in sites.files {
        let format = file.format.as_ref().unwrap_or(sites.format);
        let raw = open(file.path.clone(), format)?;
        let site_column = sites.site_column.map(|column| raw.place(column));
        let site_place = site_column.transpose()?;
        let columns = agreed_names(file, &raw);
        let marks: Vec<ColumnMarks> = columns.iter().map(|(_, name)| marks(file, name)).collect();
        for row in &raw.rows {
            let site = match site_place {
                None => file.silo.clone().unwrap_or_else(|| silo_of(&file.path)),
                Some(place) => row.cells.get(place).unwrap_or_default().to_owned(),
            };
            let at = read
                .iter()
                .position(|(name, _)| *name == site)
                .unwrap_or_else(|| {
                    read.push((site, SiteCells::default()));
                    read.len() - 1
                });
            let cells = &mut read[at].1;
            for ((place, column), marks) in columns.iter().zip(&marks) {
                let text = row.cells.get(*place).unwrap_or_default();
                if format.is_missing_in(marks, text) {
                    cells.push(column, None);
                    continue;
                }
                let numeric = numbers.contains(column);
                let cell = Some(CellText::of(
                    file,
                    &raw,
                    format,
                    (column, text),
                    numeric,
                    row.at,
                )?);
                cells.push(column, cell);
            }
            cells.end_row();
        }
    }
    Ok(read
        .into_iter()
        .map(|(name, cells)| (name, cells.table()))
        .collect())
}

/// The columns of a file by their places, with their agreed names.
fn agreed_names(file: &RowsFile, raw: &RawFile) -> Vec<(usize, String)> {
    let agreed = |local: &String| {
        let mut names = file.names.columns.iter();
        let found = names.find(|(_, own)| *own == local);
        found.map_or(local, |(agreed, _)| agreed).clone()
    };
    let read = raw
        .header
        .iter()
        .enumerate()
        .filter(|(_, name)| !file.names.ignore.contains(name));
    read.map(|(place, name)| (place, agreed(name))).collect()
}

/// Returns what means a missing value in a column, by its agreed name.
fn marks(file: &RowsFile, column: &str) -> ColumnMarks {
    let codes = file.names.codes.get(column).into_iter().flatten();
    ColumnMarks {
        codes: codes.map(|(text, _)| text.clone()).collect(),
        agreed: Vec::new(),
        missing: file.names.missing.get(column).cloned().unwrap_or_default(),
    }
}

/// A cell with a value, and the number that it writes, if it is one.
#[derive(Debug, Clone)]
struct CellText {
    text: String,
    number: Option<f64>,
}

impl CellText {
    fn of(
        file: &RowsFile,
        raw: &RawFile,
        format: &Format,
        (column, text): (&str, &str),
        numeric: bool,
        at: RowPlace,
    ) -> Result<Self, DataError> {
        let text = file.names.value(column, text.trim());
        let number = format.number(text);
        if numeric && number.is_none() {
            return Err(DataError::Cell {
                path: raw.path.clone(),
                at,
                column: column.to_owned(),
                text: text.to_owned(),
                expected: format.needed(text),
            });
        }
        Ok(Self {
            text: text.to_owned(),
            number,
        })
    }
}

/// Numbers if all cells are, else categories.
fn in_one_kind(cells: Vec<Option<CellText>>) -> CellColumn {
    let numbers = cells.iter().flatten().all(|cell| cell.number.is_some());
    match numbers {
        true => CellColumn::Numbers(cells.into_iter().map(|cell| cell?.number).collect()),
        false => CellColumn::Words(cells.into_iter().map(|cell| Some(cell?.text)).collect()),
    }
}
