//! Whose a row is, in files that nobody has described yet: its silo, and columns that may name persons.

use std::collections::BTreeMap;

use super::{Wishes, personal, persons};
use crate::data::{DataError, Format, RawFile};
use crate::questions::{RowColumn, RowColumns, RowQuestion, RowValues, groups_of, identifiers};
use crate::typed::typed;

/// The silo of every row, by number; empty where all rows are of one.
pub(super) fn silos_of(raw: &[(RawFile, Format)], wishes: &Wishes) -> Result<Vec<u32>, DataError> {
    let mut names: BTreeMap<&str, u32> = BTreeMap::new();
    let mut silos = Vec::new();
    for (at, (file, _)) in raw.iter().enumerate() {
        let place = wishes.silo_column.as_ref().map(|column| file.place(column));
        let place = place.transpose()?;
        for row in &file.rows {
            let next = names.len() as u32;
            silos.push(match place {
                Some(place) => *names
                    .entry(row.cells.get(place).unwrap_or_default())
                    .or_insert(next),
                None => at as u32,
            });
        }
    }
    Ok(silos)
}

/// The column that says whose a row is: the one that the person names, or one that looks so.
pub(super) fn group(
    raw: &[(RawFile, Format)],
    silos: &[u32],
    target: &str,
    wishes: &Wishes,
    notes: &mut Vec<String>,
) -> Option<(String, String)> {
    if let Some(column) = &wishes.group {
        return Some((column.clone(), "as you said".to_owned()));
    }
    let header = &raw.first()?.0.header;
    let beside = [&wishes.silo_column, &wishes.time, &wishes.entry];
    let others = header
        .iter()
        .filter(|name| *name != target && !beside.iter().any(|own| own.as_ref() == Some(*name)));
    let known = |name: &&String| {
        let listed = [&wishes.numbers, &wishes.categories];
        !listed.iter().any(|names| names.contains(name))
    };
    let others = others.filter(known);
    let rows = raw.iter().map(|(file, _)| file.rows.len()).sum();
    let columns = others.filter_map(|name| {
        let cells = cells_of(raw, name).ok()?;
        persons::ColumnCells::of(name, rows, cells.into_iter())
    });
    let columns: Vec<persons::ColumnCells<'_>> = columns.collect();
    let found = persons::group_column(&columns, silos)?;
    if wishes.drop.contains(&found.column) {
        notes.push(format!(
            "{:?} is dropped, and it seems to say whose a row is ({}): rows of one person may be among the \
             training and the test rows, which makes a model look better than it is; to keep them together, \
             say --group {} instead",
            found.column,
            found.reason,
            typed(&found.column)
        ));
        return None;
    }
    Some((found.column, found.reason))
}

/// The cells of a column in all files, empty where there is no value.
pub(super) fn cells_of<'a>(
    raw: &'a [(RawFile, Format)],
    name: &str,
) -> Result<Vec<&'a str>, DataError> {
    let mut cells = Vec::new();
    for (file, format) in raw {
        let place = file.place(name)?;
        cells.extend(file.rows.iter().map(|row| {
            let text = row.cells.get(place).unwrap_or_default();
            if format.is_missing(text) { "" } else { text }
        }));
    }
    Ok(cells)
}

/// The columns that behave like the number of a person or case, beside the `group` that is known already, where
/// rows of one silo are compared by all other columns and by the target.
///
/// # Errors
/// [`DataError`]: a column that is not there.
pub(super) fn identifiers_of(
    raw: &[(RawFile, Format)],
    silos: &[u32],
    (target, group): (&str, Option<&str>),
    wishes: &Wishes,
) -> Result<Vec<RowQuestion>, DataError> {
    let header = raw.first().map_or(&[][..], |(file, _)| &file.header);
    let other = |name: &&String| {
        let known = [&wishes.silo_column, &wishes.time, &wishes.entry].map(|own| own.as_deref());
        let beside = [Some(target), group].into_iter().chain(known);
        let beside: Vec<Option<&str>> = beside.collect();
        !beside.contains(&Some(name.as_str())) && !wishes.drop.contains(name)
    };
    let mut names: Vec<String> = Vec::new();
    for name in header.iter().filter(other) {
        let mut cells = cells_of(raw, name)?;
        // A day is no person, and is said to be a day; what differs in every row is left out.
        let days = personal::are_dates(&cells);
        cells.retain(|cell| !cell.is_empty());
        let present = cells.len();
        cells.sort_unstable();
        cells.dedup();
        if !days && cells.len() < present {
            names.push(name.clone());
        }
    }
    let known = group.map(|group| cells_of(raw, group)).transpose()?;
    let known = known.map(|cells| groups_of(&RowColumn::of_texts(&cells)));
    let of = names.clone();
    let rows = RowColumns {
        names,
        column: Box::new(move |at| {
            let cells = cells_of(raw, &of[at]);
            column(raw, &cells.unwrap_or_default())
        }),
        targets: vec![(target.to_owned(), column(raw, &cells_of(raw, target)?))],
        silos: silos.to_vec(),
        groups: known.unwrap_or_default(),
    };
    Ok(identifiers(&rows))
}

/// The numbers of a column, or the places of its texts.
fn column(raw: &[(RawFile, Format)], cells: &[&str]) -> RowColumn {
    let formats = raw
        .iter()
        .flat_map(|(file, format)| vec![format; file.rows.len()]);
    let number = |(cell, format): (&&str, &Format)| match cell.is_empty() {
        true => Some(f64::NAN),
        false => format.number(cell),
    };
    let numbers: Option<Vec<f64>> = cells.iter().zip(formats).map(number).collect();
    match numbers {
        Some(values) => RowColumn {
            values,
            kind: RowValues::Numbers,
        },
        None => RowColumn::of_texts(cells),
    }
}

#[cfg(test)]
mod tests;
