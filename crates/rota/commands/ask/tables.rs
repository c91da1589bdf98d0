//! The tables of the sites, from files or a scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use questions::FederatedQuestion;
use questions::table::{CellColumn, ConditionSign, QuestionInput, RowTable};
use simulations::Scenario;
use task::TaskConfig;
use task::data::{DataError, Format, RawFile, RowPlace, RowsFile, Target, open, silo_of};

use super::CommandError;
use super::file::SitesTable;

/// A site by name, with its rows.
pub(super) type SiteTable = (String, RowTable);

/// Reads the rows of all sites: all columns, because earlier questions may have used others.
pub(super) fn read(
    question: &FederatedQuestion,
    sites: &SitesTable,
    data: Option<&Path>,
) -> Result<Vec<SiteTable>, CommandError> {
    match &sites.scenario {
        Some(name) => of_scenario(name, sites.silos, data),
        None => of_files(sites, &numbers_of(question)),
    }
}

/// The columns that a question needs as numbers.
fn numbers_of(question: &FederatedQuestion) -> BTreeSet<String> {
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

fn of_files(
    sites: &SitesTable,
    numbers: &BTreeSet<String>,
) -> Result<Vec<SiteTable>, CommandError> {
    let mut read: Vec<(String, SiteCells)> = Vec::new();
    for file in &sites.files {
        let format = sites.format_of(file);
        let raw = open(file.path.clone(), format)?;
        let site_place = sites
            .site_column
            .as_deref()
            .map(|column| raw.place(column))
            .transpose()?;
        let columns = agreed_names(file, &raw);
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
            for (place, column) in &columns {
                let text = row.cells.get(*place).unwrap_or_default();
                let numeric = numbers.contains(column);
                let cell = CellText::of(file, &raw, format, (column, text), numeric, row.at)?;
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
    ) -> Result<Option<Self>, DataError> {
        if format.is_missing(text) && file.names.value(column, text) == text {
            return Ok(None);
        }
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
        Ok(Some(Self {
            text: text.to_owned(),
            number,
        }))
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

/// The rows of a scenario's silos: features by their names, and the target as "target".
fn of_scenario(
    name: &str,
    silos: Option<usize>,
    data: Option<&Path>,
) -> Result<Vec<SiteTable>, CommandError> {
    let scenario = Scenario::load(name)?;
    let TaskConfig::Table(task) = &scenario.task else {
        return Err(CommandError::usage(format!(
            "the scenario {name} has no table of rows: questions need one"
        )));
    };
    let read = task.tables(silos.or(scenario.silos), data, scenario.seed)?;
    let sites = read.silos.iter().map(|(name, rows)| {
        let mut table = RowTable::new(rows.len());
        for (at, column) in rows.columns.iter().enumerate() {
            let cells =
                (0..rows.len()).map(|row| Some(rows.row(row)[at]).filter(|x| x.is_finite()));
            table.insert(column, CellColumn::Numbers(cells.collect()));
        }
        let target = |row: usize| rows.targets(row).first().copied();
        let cells = match &read.target {
            Target::Classes(names) => {
                let class = |row: usize| names.get(target(row)? as usize).cloned();
                CellColumn::Words((0..rows.len()).map(class).collect())
            }
            _ => CellColumn::Numbers(
                (0..rows.len())
                    .map(|row| target(row).filter(|x| x.is_finite()))
                    .collect(),
            ),
        };
        table.insert("target", cells);
        (name.clone(), table)
    });
    Ok(sites.collect())
}
