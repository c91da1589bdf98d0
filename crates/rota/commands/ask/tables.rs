//! The tables of the sites, from files or a scenario.

use std::path::Path;

use formatting::numbers;
use node::answers::tables::{SiteFiles, SiteTable, numbers_of, of_files};
use questions::FederatedQuestion;
use questions::table::{CellColumn, RowTable};
use simulations::Scenario;
use task::TaskConfig;
use task::data::{DataError, Target};

use super::CommandError;
use super::file::SitesTable;

/// Reads the rows of all sites: all columns, because earlier questions may have used others.
pub(super) fn read(
    question: &FederatedQuestion,
    sites: &SitesTable,
    data: Option<&Path>,
) -> Result<Vec<SiteTable>, CommandError> {
    let files = SiteFiles {
        files: &sites.files,
        site_column: sites.site_column.as_deref(),
        format: &sites.format,
    };
    match &sites.scenario {
        Some(name) => of_scenario(name, sites.silos, data),
        None => of_files(files, &numbers_of(question)).map_err(unread),
    }
}

/// Why the rows cannot be read. A column of categories in the place of one of numbers is what people write first.
fn unread(error: DataError) -> CommandError {
    match &error {
        DataError::Cell { column, text, .. } => CommandError::failed(format!(
            "{error}; a column of categories is asked for by conditions, such as \"{} = {}\"",
            numbers::plain(column),
            numbers::plain(text)
        )),
        _ => error.into(),
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
        if let Target::Survival { .. } = &read.target {
            for (at, name) in ["event", "time", "entry"].into_iter().enumerate() {
                let cells = (0..rows.len()).map(|row| rows.targets(row).get(at).copied());
                table.insert(name, CellColumn::Numbers(cells.collect()));
            }
        }
        (name.clone(), table)
    });
    Ok(sites.collect())
}
