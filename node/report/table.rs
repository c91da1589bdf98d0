//! The section with the comparison of models per silo, and a small drawing of each row.

use super::story::{Silo, Story};
use maud::{Markup, html};

use super::comparison::{Cell, Column, Comparison, choice};
use super::svg::{Scale, colour, range};
use super::{letter, numbers, terminal};

const DOTS: f64 = 180.0;

/// The section.
pub(crate) fn section(story: &Story, comparison: &Comparison) -> Markup {
    let columns = &comparison.columns;
    let values = comparison
        .rows
        .iter()
        .chain(&comparison.outside)
        .flatten()
        .flatten()
        .map(|cell| cell.value);
    let scale = range(values).map(|range| Scale::new(range, (8.0, DOTS - 8.0)));
    html! {
        section {
            h2 { "Which model is best" }
            p.lead { (comparison.verdict()) }
            @for note in &story.notes { p.note { "Note: " (numbers::plain(note)) "." } }
            @if !columns.is_empty() {
                p.note {
                    "Measured on each silo’s held-out rows: " (terminal::metric(story)) ". "
                    "The best of a row is " b.best { "marked" } "."
                }
                div.scroll.tall tabindex="0" role="region" aria-label="Table per silo" {
                    table {
                        thead { tr {
                            th scope="col" { "Silo" }
                            th.number scope="col" { "Rows" }
                            @for column in columns { th.number scope="col" { (dot_key(*column)) (column.title()) } }
                            th scope="col" { "Side by side" }
                            th scope="col" { "Coalition" }
                            @if !comparison.pooled.is_empty() { th.number scope="col" { "All rows pooled" } }
                            @if !comparison.served.is_empty() { th scope="col" { "Serves" } }
                        } }
                        tbody {
                            @for (at, (silo, cells, coalition)) in rows(story, comparison).enumerate() {
                                tr {
                                    th scope="row" { (silo.name) }
                                    td.number { (numbers::count(silo.samples)) }
                                    (row(cells))
                                    td { (dots(columns, cells, scale)) }
                                    td { @match coalition { Some(coalition) => (chip(coalition)), None => "outside" } }
                                    (beside(comparison, at))
                                }
                            }
                        }
                        tfoot { tr {
                            th scope="row" { "Mean" }
                            td.number { "Σ " (numbers::count(story.silos.iter().map(|silo| silo.samples).sum())) }
                            (row(&comparison.means))
                            td { (dots(columns, &comparison.means, scale)) }
                            td {}
                            @if !comparison.pooled.is_empty() { td.number { (comparison.pooled_mean.as_deref().unwrap_or("–")) } }
                            @if !comparison.served.is_empty() { td { (comparison.served_mean.as_deref().unwrap_or("–")) } }
                        } }
                    }
                }
            }
        }
    }
}

/// Members with their coalition, then silos outside.
fn rows<'a>(
    story: &'a Story,
    comparison: &'a Comparison,
) -> impl Iterator<Item = (&'a Silo, &'a [Option<Cell>], Option<Option<usize>>)> {
    let members = story.silos.iter().zip(&comparison.rows);
    let outside = story.outside.iter().zip(&comparison.outside);
    members
        .map(|(silo, cells)| (silo, cells.as_slice(), Some(silo.coalition_index)))
        .chain(outside.map(|(silo, cells)| (silo, cells.as_slice(), None)))
}

/// The columns that are not compared: the pooled model, and the model that the silo serves.
fn beside(comparison: &Comparison, at: usize) -> Markup {
    html! {
        @if let Some(pooled) = comparison.pooled.get(at) {
            td.number { (pooled.as_deref().unwrap_or("–")) }
        }
        @if let Some(served) = comparison.served.get(at) {
            td {
                @match served {
                    Some((candidate, value)) => { (value) " " span.muted { (choice(*candidate)) } },
                    None => "–",
                }
            }
        }
    }
}

/// A coalition's letter in its colour.
pub(crate) fn chip(coalition: Option<usize>) -> Markup {
    html! {
        @match coalition {
            Some(index) => span class={ "chip " (colour(coalition)) } { (letter(index)) },
            None => "–",
        }
    }
}

fn row(cells: &[Option<Cell>]) -> Markup {
    html! {
        @for cell in cells {
            @match cell {
                Some(cell) if cell.best => td.number { b.best { (cell.text) } },
                Some(cell) => td.number { (cell.text) },
                None => td.number { "–" },
            }
        }
    }
}

/// The sign of a column, as in the drawing of a row.
fn dot_key(column: Column) -> Markup {
    html! { svg.key viewBox="0 0 14 14" aria-hidden="true" { (mark(column, 7.0, 7.0)) } }
}

fn dots(columns: &[Column], cells: &[Option<Cell>], scale: Option<Scale>) -> Markup {
    let places: Vec<(Column, &Cell, f64)> = columns
        .iter()
        .zip(cells)
        .filter_map(|(column, cell)| Some((*column, cell.as_ref()?, scale?)))
        .filter(|(_, cell, _)| cell.value.is_finite())
        .map(|(column, cell, scale)| (column, cell, scale.at(cell.value)))
        .collect();
    html! {
        svg.dots viewBox=(format!("0 0 {DOTS} 18")) role="img" {
            title { @for (column, cell, _) in &places { (column.title()) " " (cell.text) "; " } }
            line.grid x1="0" y1="9" x2=(DOTS) y2="9" {}
            @for (column, _, x) in &places { (mark(*column, *x, 9.0)) }
        }
    }
}

/// The sign of a column: a shape of its own, so that it can be distinguished without colours.
fn mark(column: Column, x: f64, y: f64) -> Markup {
    html! {
        @match column {
            Column::Own => circle.own cx=(x) cy=(y) r="4" {},
            Column::Global => rect.global x=(x - 3.5) y=(y - 3.5) width="7" height="7" {},
            Column::Coalition => path.coalition
                d=(format!("M{x} {}L{} {y}L{x} {}L{} {y}Z", y - 5.5, x + 5.5, y + 5.5, x - 5.5)) {},
        }
    }
}
