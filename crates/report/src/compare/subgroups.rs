//! The table of subgroups of rows.

use lab::compare::{ComparisonRow, LEAST_ROWS, SubgroupResult, VariantTable};
use task::metrics::MetricName;

use super::cells::{TextTable, decimals, scope, value};

/// Most subgroups that have a column; all are in the CSV file.
const COLUMNS: usize = 6;
/// Most subgroups that the page shows beside the gap; it folds the others.
const SHOWN: usize = 3;

/// The most important metric by subgroup; `None` where rows have none.
pub(super) fn table(
    metric: MetricName,
    variant: &VariantTable,
    outside: bool,
) -> Option<TextTable> {
    let of = |row: &'_ ComparisonRow| -> Vec<SubgroupResult> {
        scope(row, 0, outside).map_or_else(Vec::new, |scope| scope.subgroups.clone())
    };
    let first = variant
        .strategies
        .iter()
        .map(of)
        .find(|all| !all.is_empty())?;
    // The largest ones, in the order of their names.
    let mut largest: Vec<&SubgroupResult> = first.iter().collect();
    largest.sort_by(|a, b| b.rows.unwrap_or(0.0).total_cmp(&a.rows.unwrap_or(0.0)));
    largest.truncate(COLUMNS);
    let shown: Vec<&SubgroupResult> = first
        .iter()
        .filter(|one| largest.iter().any(|other| other.name == one.name))
        .collect();
    let values = variant
        .strategies
        .iter()
        .flat_map(of)
        .filter_map(|one| one.value);
    let decimals = decimals(values.map(|spread| spread.mean));
    let mut columns = vec![String::new()];
    columns.extend(shown.iter().map(|one| match one.rows {
        Some(rows) => format!("{} ({rows:.0} rows)", one.name),
        None => format!("{} (fewer than {LEAST_ROWS})", one.name),
    }));
    columns.push("gap".into());
    let cells = |row: &ComparisonRow| {
        let own = of(row);
        let cell = |one: &&SubgroupResult| {
            let found = own.iter().find(|other| other.name == one.name);
            match found.and_then(|found| found.value) {
                None => "–".to_owned(),
                found => value(found, decimals),
            }
        };
        let mut cells = vec![row.label.clone()];
        cells.extend(shown.iter().map(cell));
        cells.push(value(
            scope(row, 0, outside).and_then(|scope| scope.gap),
            decimals,
        ));
        cells
    };
    let more = if first.len() > shown.len() {
        format!(
            " {} more subgroups are in the CSV file.",
            first.len() - shown.len()
        )
    } else {
        String::new()
    };
    let who = if outside { "unseen silos" } else { "members" };
    Some(TextTable {
        title: format!("subgroups of rows, {who}: {}", metric.key()),
        note: format!(
            "Over the rows of all silos together. gap: best subgroup less worst. A subgroup with fewer than \
             {LEAST_ROWS} test {} in a seed is not shown, and not in the gap.{more}",
            if variant.grouped { "persons" } else { "rows" }
        ),
        // The gap, and as many subgroups as have room.
        main: [columns.len() - 1]
            .into_iter()
            .chain(1..=shown.len().min(SHOWN))
            .collect(),
        columns,
        rows: variant.strategies.iter().map(cells).collect(),
        ..TextTable::default()
    })
}
