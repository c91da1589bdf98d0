//! Sheets of counts, means and correlations.

use super::{Sheet, SheetCell};
use crate::disclosure::suppression::{hidden, totals};
use crate::kinds::correlate::CorrelateOutcome;
use crate::kinds::crosstab::CrosstabOutcome;
use crate::kinds::describe::DescribeOutcome;
use crate::kinds::quantiles::QuantilesOutcome;
use crate::special::chi_squared_above;

/// Means and deviations; nothing of fewer than `smallest` values.
pub(super) fn described(found: &DescribeOutcome, smallest: u64) -> Sheet {
    let columns = [
        ("column", "column"),
        ("n", "n"),
        ("missing", "missing"),
        ("mean", "mean"),
        ("standard_deviation", "SD"),
    ];
    let mut sheet = Sheet::new("columns", "Columns", &columns);
    let grouped = found.columns.iter().any(|column| column.group.is_some());
    if grouped {
        sheet.columns.insert(0, "group".to_owned());
        sheet.header.insert(0, "group".to_owned());
    }
    let mut any = false;
    for column in &found.columns {
        let mut row = Vec::new();
        if grouped {
            row.push(SheetCell::Text(column.group.clone().unwrap_or_default()));
        }
        row.push(SheetCell::Text(column.column.clone()));
        if column.known > 0.0 && column.known < smallest as f64 {
            any = true;
            row.extend([
                SheetCell::Suppressed,
                SheetCell::Suppressed,
                SheetCell::Suppressed,
                SheetCell::Suppressed,
            ]);
        } else {
            let missing = column.rows - column.known;
            row.extend([SheetCell::Count(column.known), SheetCell::Count(missing)]);
            row.extend([
                SheetCell::number(column.mean),
                SheetCell::number(column.deviation),
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
pub(super) fn quantiles(found: &QuantilesOutcome) -> Sheet {
    let columns = [
        ("column", "column"),
        ("n", "n"),
        ("probability", "quantile"),
        ("value", "value"),
        ("within", "within ±"),
    ];
    let mut sheet = Sheet::new("quantiles", "Quantiles", &columns);
    for quantile in &found.quantiles {
        sheet.rows.push(vec![
            SheetCell::Text(quantile.column.clone()),
            SheetCell::Count(quantile.rows),
            SheetCell::Exact(quantile.probability),
            SheetCell::Number(quantile.value),
            SheetCell::Number(quantile.width),
        ]);
    }
    sheet
}

/// A table of counts with suppressed cells, and the test of independence.
pub(super) fn crosstab(found: &CrosstabOutcome, smallest: u64) -> Vec<Sheet> {
    let title = format!("{} by {}", found.row_column, found.column_column);
    let mut sheet = Sheet::new("counts", &title, &[("level", found.row_column.as_str())]);
    for level in &found.columns {
        sheet.column(level, level);
    }
    let hidden = hidden(&found.counts, smallest);
    let [row_sums, column_sums] = totals(&found.counts, smallest);
    if row_sums.is_some() {
        sheet.column("total", "total");
    }
    for (at, counts) in found.counts.iter().enumerate() {
        let mut row = vec![SheetCell::Text(found.rows[at].clone())];
        let cell = |column: usize| {
            if hidden[at][column] {
                SheetCell::Suppressed
            } else {
                SheetCell::Count(counts[column])
            }
        };
        row.extend((0..counts.len()).map(cell));
        row.extend(row_sums.iter().map(|sums| SheetCell::Count(sums[at])));
        sheet.rows.push(row);
    }
    if let Some(sums) = &column_sums {
        let mut row = vec![SheetCell::Text("total".to_owned())];
        row.extend(sums.iter().map(|sum| SheetCell::Count(*sum)));
        if row_sums.is_some() {
            row.push(SheetCell::Count(sums.iter().sum()));
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
pub(super) fn test(name: &str, title: &str, statistic: f64, freedom: f64) -> Sheet {
    let mut sheet = Sheet::new(
        name,
        title,
        &[("chi_squared", "χ²"), ("freedom", "df"), ("p_value", "p")],
    );
    let p = chi_squared_above(statistic, freedom);
    sheet.rows.push(vec![
        SheetCell::Number(statistic),
        SheetCell::Count(freedom),
        SheetCell::Probability(p),
    ]);
    sheet
}

/// Correlations and principal components.
pub(super) fn correlations(found: &CorrelateOutcome) -> [Sheet; 2] {
    let mut sheet = Sheet::new(
        "correlations",
        "Correlations",
        &[
            ("column", "column"),
            ("mean", "mean"),
            ("standard_deviation", "SD"),
        ],
    );
    let mut components = Sheet::new(
        "components",
        "Principal components of the standardised columns",
        &[("component", "component"), ("share", "share of variance")],
    );
    for column in &found.columns {
        sheet.column(column, column);
        components.column(column, column);
    }
    let width = found.columns.len();
    let correlation = crate::algebra::Symmetric::of_triangle(width, &found.correlation);
    let covariance = crate::algebra::Symmetric::of_triangle(width, &found.covariance);
    for (at, column) in found.columns.iter().enumerate() {
        let mut row = vec![
            SheetCell::Text(column.clone()),
            SheetCell::Number(found.means[at]),
        ];
        row.push(SheetCell::Number(covariance.at(at, at).sqrt()));
        row.extend((0..width).map(|other| SheetCell::Number(correlation.at(at, other))));
        sheet.rows.push(row);
    }
    for (at, component) in found.components.iter().enumerate() {
        let mut row = vec![
            SheetCell::Count((at + 1) as f64),
            SheetCell::Number(component.variance / width as f64),
        ];
        row.extend(
            component
                .weights
                .iter()
                .map(|weight| SheetCell::Number(*weight)),
        );
        components.rows.push(row);
    }
    [sheet, components]
}
