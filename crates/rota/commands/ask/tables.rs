//! The tables of the sites, from files or a scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use questions::Question;
use questions::table::{Cells, Comparison, Input, Table};
use simulations::Scenario;
use task::TaskConfig;
use task::data::{DataError, Format, RawFile, RowsFile, Target, open_columns, silo_of};

use super::CommandError;
use super::file::SitesTable;

/// A site by name, with its rows.
pub(super) type SiteTable = (String, Table);

/// Reads the columns that a question names.
pub(super) fn read(
    question: &Question,
    sites: &SitesTable,
    data: Option<&Path>,
) -> Result<Vec<SiteTable>, CommandError> {
    let wanted = Wanted::of(question);
    match &sites.scenario {
        Some(name) => of_scenario(name, sites.silos, data),
        None => of_files(sites, &wanted),
    }
}

/// The columns that a question reads.
struct Wanted {
    all: BTreeSet<String>,
    /// Those that have to be numbers.
    numbers: BTreeSet<String>,
}

impl Wanted {
    fn of(question: &Question) -> Self {
        let inputs = question.inputs().unwrap_or_default();
        let mut conditions: Vec<_> = question.filter.iter().collect();
        let (mut all, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for input in &inputs {
            all.insert(input.column().to_owned());
            match input {
                Input::Scaled { column, .. } | Input::Number { column, .. } => {
                    numbers.insert(column.clone());
                }
                Input::Indicator(condition) => conditions.push(condition),
                Input::Level { .. } => {}
            }
        }
        for condition in conditions {
            all.insert(condition.column.clone());
            if !matches!(condition.comparison, Comparison::Is | Comparison::IsNot) {
                numbers.insert(condition.column.clone());
            }
        }
        Self { all, numbers }
    }
}

fn of_files(sites: &SitesTable, wanted: &Wanted) -> Result<Vec<SiteTable>, CommandError> {
    // The cells of every site by column; a site may have several files.
    let mut cells: Vec<(String, BTreeMap<String, Vec<Option<CellText>>>, usize)> = Vec::new();
    for file in &sites.files {
        let format = sites.format_of(file);
        let mut names: Vec<&str> = wanted
            .all
            .iter()
            .map(|name| file.names.column(name))
            .collect();
        names.extend(sites.site_column.as_deref());
        let raw = open_columns(file.path.clone(), format, Some(&names))?;
        let site_place = sites
            .site_column
            .as_deref()
            .map(|column| raw.place(column))
            .transpose()?;
        for row in &raw.rows {
            let site = match site_place {
                None => file.silo.clone().unwrap_or_else(|| silo_of(&file.path)),
                Some(place) => row.cells.get(place).unwrap_or_default().to_owned(),
            };
            let at = cells
                .iter()
                .position(|(name, ..)| *name == site)
                .unwrap_or_else(|| {
                    cells.push((site, BTreeMap::new(), 0));
                    cells.len() - 1
                });
            let (_, columns, rows) = &mut cells[at];
            for column in wanted
                .all
                .iter()
                .filter(|column| raw.has(file.names.column(column)))
            {
                let place = raw.place(file.names.column(column))?;
                let text = row.cells.get(place).unwrap_or_default();
                let numeric = wanted.numbers.contains(column);
                let cell = CellText::of(file, &raw, format, column, text, numeric, row.at)?;
                columns
                    .entry(column.clone())
                    .or_insert_with(|| vec![None; *rows])
                    .push(cell);
            }
            *rows += 1;
            columns
                .values_mut()
                .for_each(|cells| cells.resize(*rows, None));
        }
    }
    let table =
        |(name, columns, rows): (String, BTreeMap<String, Vec<Option<CellText>>>, usize)| {
            let mut table = Table::new(rows);
            for (column, cells) in columns {
                table.insert(&column, in_one_kind(cells));
            }
            (name, table)
        };
    Ok(cells.into_iter().map(table).collect())
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
        column: &str,
        text: &str,
        numeric: bool,
        at: task::data::RowPlace,
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
fn in_one_kind(cells: Vec<Option<CellText>>) -> Cells {
    let numbers = cells.iter().flatten().all(|cell| cell.number.is_some());
    match numbers {
        true => Cells::Numbers(cells.into_iter().map(|cell| cell?.number).collect()),
        false => Cells::Words(cells.into_iter().map(|cell| Some(cell?.text)).collect()),
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
        let mut table = Table::new(rows.len());
        for (at, column) in rows.columns.iter().enumerate() {
            let cells =
                (0..rows.len()).map(|row| Some(rows.row(row)[at]).filter(|x| x.is_finite()));
            table.insert(column, Cells::Numbers(cells.collect()));
        }
        let target = |row: usize| rows.targets(row).first().copied();
        let cells = match &read.target {
            Target::Classes(names) => {
                let class = |row: usize| names.get(target(row)? as usize).cloned();
                Cells::Words((0..rows.len()).map(class).collect())
            }
            _ => Cells::Numbers(
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
