//! Curves of a comparison: the metric by round, and by bytes sent.

use lab::compare::{ComparisonRow, CurvePoint, VariantTable};
use maud::{Markup, html};

use super::super::svg::{AxisFrame, AxisScale, colour, drawing, px, tick_text};
use super::super::{download, numbers};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 36.0;
/// Room for labels at the right.
const LABELS: f64 = 150.0;
/// Colours before lines are dashed.
const COLOURS: usize = 7;

/// The charts of a variant by round, bytes and wall-clock seconds; nothing where no strategy has rounds.
pub(super) fn charts(name: &str, metric: &str, variant: &VariantTable) -> Markup {
    let outside = !variant.outside.is_empty();
    let who = if outside { "unseen silos" } else { "members" };
    let value = move |point: &CurvePoint| if outside { point.outside } else { point.inside };
    let by_round = |point: &CurvePoint| Some(point.round as f64);
    let by_bytes = |point: &CurvePoint| Some(point.bytes / 1e6);
    let by_seconds = |point: &CurvePoint| point.seconds;
    html! {
        div.pair {
            (chart(&format!("{metric} of {who} by round"), "round", name, variant, by_round, value))
            (chart(&format!("{metric} of {who} by megabytes sent"), "megabytes", name, variant, by_bytes, value))
            (chart(&format!("{metric} of {who} by seconds"), "seconds", name, variant, by_seconds, value))
        }
    }
}

fn chart(
    title: &str,
    unit: &str,
    name: &str,
    variant: &VariantTable,
    x_of: impl Fn(&CurvePoint) -> Option<f64>,
    y_of: impl Fn(&CurvePoint) -> Option<f64>,
) -> Markup {
    // References that send nothing have no place on an axis of bytes, those without rounds none on one of
    // seconds; single points are no course.
    let shown = |row: &&ComparisonRow| {
        let sends = row.to_end.as_ref().is_some_and(|all| all.bytes.mean > 0.0);
        let timed = row.curve.iter().filter(|point| x_of(point).is_some());
        timed.count() > 1 && (unit != "megabytes" || sends)
    };
    let rows: Vec<(usize, &ComparisonRow)> = variant
        .strategies
        .iter()
        .enumerate()
        .filter(|(_, row)| shown(row))
        .collect();
    let points = || rows.iter().flat_map(|(_, row)| &row.curve);
    let Some(frame) = AxisFrame::of(points().filter_map(&y_of)) else {
        return html! {};
    };
    let reach = points()
        .filter_map(&x_of)
        .fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
    let right = WIDTH - LABELS;
    let x = AxisScale::new(reach, (LEFT, right));
    let y = AxisScale::framed(&frame, (HEIGHT - BOTTOM, 14.0));
    let path = |row: &ComparisonRow| {
        let mut path = String::new();
        for point in &row.curve {
            let (Some(at), Some(value)) = (x_of(point), y_of(point)) else {
                continue;
            };
            let pen = if path.is_empty() { 'M' } else { 'L' };
            path.push_str(&format!("{pen}{} {}", x.at(at), y.at(frame.inside(value))));
        }
        path
    };
    let table = rows.iter().flat_map(|(_, row)| {
        row.curve.iter().map(|point| {
            [
                row.label.clone(),
                download::number(x_of(point)),
                download::number(y_of(point)),
            ]
        })
    });
    let table = download::csv(&["strategy", unit, "value"], table.collect::<Vec<_>>());
    let labels = labels(&rows, &frame, y, &y_of);
    html! {
        figure {
            figcaption { (title) }
            (drawing(title, WIDTH, HEIGHT, html! {
                (axes(x, y, right, unit))
                @for (at, row) in &rows {
                    g class=(class(*at)) {
                        title { (numbers::plain(&row.label)) }
                        path d=(path(row)) {}
                        path.hit d=(path(row)) {}
                    }
                }
                @for (at, label, place) in &labels {
                    g class=(class(*at)) {
                        line.leader x1=(px(right + 4.0)) x2=(px(right + 16.0)) y1=(px(*place)) y2=(px(*place)) {}
                        text.tick x=(px(right + 20.0)) y=(px(place + 4.0)) { (label) }
                    }
                }
            }))
            (download::plot(&format!("{name}-by-{unit}"), &table))
        }
    }
}

/// The classes of the line at this place in the table.
fn class(at: usize) -> String {
    match at / COLOURS {
        0 => format!("curve {}", colour(Some(at))),
        _ => format!("curve dashed {}", colour(Some(at))),
    }
}

/// Place in the table, label, and height of every line's label: near its end, without overlaps.
fn labels(
    rows: &[(usize, &ComparisonRow)],
    frame: &AxisFrame,
    y: AxisScale,
    y_of: impl Fn(&CurvePoint) -> Option<f64>,
) -> Vec<(usize, String, f64)> {
    const APART: f64 = 15.0;
    let mut labels: Vec<(usize, String, f64)> = rows
        .iter()
        .filter_map(|(at, row)| {
            let last = row.curve.iter().rev().find_map(&y_of)?;
            Some((
                *at,
                numbers::short(&row.label, 20),
                y.at(frame.inside(last)),
            ))
        })
        .collect();
    labels.sort_by(|a, b| a.2.total_cmp(&b.2));
    for at in 1..labels.len() {
        labels[at].2 = labels[at].2.max(labels[at - 1].2 + APART);
    }
    // Labels that were pushed out below are pushed back up.
    let floor = HEIGHT - 8.0;
    for at in (0..labels.len()).rev() {
        let most = labels.get(at + 1).map_or(floor, |next| next.2 - APART);
        labels[at].2 = labels[at].2.min(most);
    }
    labels
}

fn axes(x: AxisScale, y: AxisScale, right: f64, unit: &str) -> Markup {
    // There is nothing between two rounds.
    let whole = |tick: &f64| unit != "round" || tick.fract() == 0.0;
    let across: Vec<f64> = x.ticks(5).into_iter().filter(whole).collect();
    let ticks = y.ticks(5);
    let floor = HEIGHT - BOTTOM;
    html! {
        @for tick in &ticks {
            line.grid x1=(LEFT) x2=(px(right)) y1=(y.at(*tick)) y2=(y.at(*tick)) {}
            text.tick x=(LEFT - 8.0) y=(px(y.at(*tick) + 4.0)) text-anchor="end" { (tick_text(&ticks, *tick)) }
        }
        @for tick in &across {
            line.grid x1=(x.at(*tick)) x2=(x.at(*tick)) y1=(floor) y2=(floor + 5.0) {}
            text.tick x=(x.at(*tick)) y=(floor + 18.0) text-anchor="middle" { @if unit == "round" { (tick) } @else { (tick_text(&across, *tick)) } }
        }
        line.axis x1=(LEFT) x2=(px(right)) y1=(floor) y2=(floor) {}
        text.tick x=(px((LEFT + right) / 2.0)) y=(HEIGHT - 3.0) text-anchor="middle" { (unit) }
    }
}
