//! Sheets of counts, means and correlations.

use super::{PrintedCell, PrintedTable};
use crate::disclosure::suppression::{hidden, totals};
use crate::kinds::correlate::CorrelateOutcome;
use crate::kinds::crosstab::CrosstabOutcome;
use crate::kinds::describe::DescribeOutcome;
use crate::kinds::quantiles::QuantilesOutcome;
use crate::special::chi_squared_above;

/// Means and deviations; nothing of fewer than `smallest` values.
pub(super) fn described(found: &DescribeOutcome, smallest: u64) -> PrintedTable {
    let columns = [
        ("column", "column"),
        ("n", "n"),
        ("missing", "missing"),
        ("mean", "mean"),
        ("standard_deviation", "SD"),
    ];
    let mut sheet = PrintedTable::new("columns", "Columns", &columns);
    let grouped = found.columns.iter().any(|column| column.group.is_some());
    if grouped {
        sheet.columns.insert(0, "group".to_owned());
        sheet.header.insert(0, "group".to_owned());
    }
    let mut any = false;
    for column in &found.columns {
        let mut row = Vec::new();
        if grouped {
            row.push(PrintedCell::Text(column.group.clone().unwrap_or_default()));
        }
        row.push(PrintedCell::Text(column.column.clone()));
        if column.known > 0.0 && column.known < smallest as f64 {
            any = true;
            row.extend([
                PrintedCell::Suppressed,
                PrintedCell::Suppressed,
                PrintedCell::Suppressed,
                PrintedCell::Suppressed,
            ]);
        } else {
            let missing = column.rows - column.known;
            row.extend([
                PrintedCell::Count(column.known),
                PrintedCell::Count(missing),
            ]);
            row.extend([
                PrintedCell::number(column.mean),
                PrintedCell::number(column.deviation),
            ]);
        }
        sheet.rows.push(row);
    }
    sheet
        .notes
        .push("the mean of a condition is the proportion of rows in which it holds".to_owned());
    if any {
        sheet
            .notes
            .push(format!("· suppressed: fewer than {smallest} values"));
    }
    sheet
}

/// Quantiles with the width of their bins.
pub(super) fn quantiles(found: &QuantilesOutcome) -> PrintedTable {
    let columns = [
        ("column", "column"),
        ("n", "n"),
        ("probability", "quantile"),
        ("value", "value"),
        ("within", "within ±"),
    ];
    let mut sheet = PrintedTable::new("quantiles", "Quantiles", &columns);
    for quantile in &found.quantiles {
        sheet.rows.push(vec![
            PrintedCell::Text(quantile.column.clone()),
            PrintedCell::Count(quantile.rows),
            PrintedCell::Exact(quantile.probability),
            PrintedCell::Number(quantile.value),
            PrintedCell::Number(quantile.width),
        ]);
    }
    sheet
}

/// A table of counts with suppressed cells, and the test of independence.
pub(super) fn crosstab(found: &CrosstabOutcome, smallest: u64) -> Vec<PrintedTable> {
    let title = format!("{} by {}", found.row_column, found.column_column);
    let mut sheet = PrintedTable::new("counts", &title, &[("level", found.row_column.as_str())]);
    for level in &found.columns {
        sheet.column(level, level);
    }
    let hidden = hidden(&found.counts, smallest);
    let [row_sums, column_sums] = totals(&found.counts, smallest);
    if row_sums.is_some() {
        sheet.column("total", "total");
    }
    for (at, counts) in found.counts.iter().enumerate() {
        let mut row = vec![PrintedCell::Text(found.rows[at].clone())];
        let cell = |column: usize| {
            if hidden[at][column] {
                PrintedCell::Suppressed
            } else {
                PrintedCell::Count(counts[column])
            }
        };
        row.extend((0..counts.len()).map(cell));
        row.extend(row_sums.iter().map(|sums| PrintedCell::Count(sums[at])));
        sheet.rows.push(row);
    }
    if let Some(sums) = &column_sums {
        let mut row = vec![PrintedCell::Text("total".to_owned())];
        row.extend(sums.iter().map(|sum| PrintedCell::Count(*sum)));
        if row_sums.is_some() {
            row.push(PrintedCell::Count(sums.iter().sum()));
        }
        sheet.rows.push(row);
    }
    let count = hidden.iter().flatten().filter(|hidden| **hidden).count();
    if count > 0 {
        sheet.notes.push(format!(
            "· suppressed: {count} cells, those of 1 to {} rows and further ones from which they could be computed",
            smallest.saturating_sub(1)
        ));
    }
    let mut sheets = vec![sheet];
    if let Some(statistic) = found.statistic.filter(|_| count == 0) {
        sheets.push(test(
            "independence",
            "Test of independence (Pearson)",
            statistic,
            found.freedom,
        ));
    } else if count > 0 {
        sheets[0]
            .notes
            .push("no test is printed of a table with suppressed cells".to_owned());
    }
    sheets
}

/// A χ² statistic with its degrees of freedom and p-value.
pub(super) fn test(name: &str, title: &str, statistic: f64, freedom: f64) -> PrintedTable {
    let mut sheet = PrintedTable::new(
        name,
        title,
        &[("chi_squared", "χ²"), ("freedom", "df"), ("p_value", "p")],
    );
    let p = chi_squared_above(statistic, freedom);
    sheet.rows.push(vec![
        PrintedCell::Number(statistic),
        PrintedCell::Count(freedom),
        PrintedCell::Probability(p),
    ]);
    sheet
}

/// Correlations and principal components.
pub(super) fn correlations(found: &CorrelateOutcome) -> [PrintedTable; 2] {
    let mut sheet = PrintedTable::new(
        "correlations",
        "Correlations",
        &[
            ("column", "column"),
            ("mean", "mean"),
            ("standard_deviation", "SD"),
        ],
    );
    let mut components = PrintedTable::new(
        "components",
        "Principal components of the standardised columns",
        &[("component", "component"), ("share", "share of variance")],
    );
    if found.noise.is_some() {
        sheet.column("mean_noise", "noise in mean");
        sheet.column("deviation_noise", "noise in SD");
    }
    for column in &found.columns {
        sheet.column(column, column);
        components.column(column, column);
    }
    let width = found.columns.len();
    let correlation = crate::algebra::Symmetric::of_triangle(width, &found.correlation);
    let covariance = crate::algebra::Symmetric::of_triangle(width, &found.covariance);
    for (at, column) in found.columns.iter().enumerate() {
        let mut row = vec![
            PrintedCell::Text(column.clone()),
            PrintedCell::Number(found.means[at]),
        ];
        row.push(PrintedCell::Number(covariance.at(at, at).sqrt()));
        if let Some(noise) = &found.noise {
            row.push(PrintedCell::Number(noise.means[at]));
            row.push(PrintedCell::Number(noise.deviations[at]));
        }
        row.extend((0..width).map(|other| PrintedCell::Number(correlation.at(at, other))));
        sheet.rows.push(row);
    }
    for (at, component) in found.components.iter().enumerate() {
        let mut row = vec![
            PrintedCell::Count((at + 1) as f64),
            PrintedCell::Number(component.variance / width as f64),
        ];
        row.extend(
            component
                .weights
                .iter()
                .map(|weight| PrintedCell::Number(*weight)),
        );
        components.rows.push(row);
    }
    if let Some(noise) = &found.noise {
        let most = noise.correlation.iter().copied().fold(0.0, f64::max);
        sheet.notes.push(format!(
            "noise has a standard deviation of up to {most:.4} in a correlation; shares of variance and weights of \
             components have noise of that order"
        ));
    }
    [sheet, components]
}
