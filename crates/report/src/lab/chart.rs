//! A chart with one line for every policy.

use maud::{Markup, html};

use super::super::svg::{AxisFrame, AxisScale, colour, px, shrinking, tick_text};
use super::super::{download, numbers};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 36.0;
/// Room for labels at the right.
const LABELS: f64 = 130.0;
/// Least distance of two labels.
const APART: f64 = 15.0;

/// A named line.
pub(crate) struct ChartLine {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// The chart, with downloads as `file`.
pub(crate) fn chart(
    title: &str,
    file: &str,
    (across, up): (&str, &str),
    lines: &[ChartLine],
) -> Markup {
    let points = || lines.iter().flat_map(|line| &line.points);
    let Some(frame) = AxisFrame::of(points().map(|point| point.1)) else {
        return html! { figure { figcaption { (title) } p { "Nothing was measured." } } };
    };
    let ends = points().fold((f64::INFINITY, 0.0f64), |(low, high), (x, _)| {
        (low.min(*x), high.max(*x))
    });
    let right = WIDTH - LABELS;
    let x = AxisScale::new(ends, (LEFT, right));
    let y = AxisScale::framed(&frame, (HEIGHT - BOTTOM, 14.0));
    let path = |line: &ChartLine| {
        let mut path = String::new();
        for (at, value) in &line.points {
            let pen = if path.is_empty() { 'M' } else { 'L' };
            path.push_str(&format!(
                "{pen}{} {}",
                x.at(*at),
                y.at(frame.inside(*value))
            ));
        }
        path
    };
    let (ticks, columns) = (y.ticks(5), x.ticks(6));
    let floor = HEIGHT - BOTTOM;
    let table = lines.iter().flat_map(|line| {
        line.points
            .iter()
            .map(|(at, value)| [line.name.clone(), at.to_string(), value.to_string()])
    });
    let table = download::csv(&["rotation", across, up], table.collect::<Vec<_>>());
    html! {
        figure {
            figcaption { (title) }
            (shrinking(title, (WIDTH, HEIGHT), 0.6, html! {
                @for tick in &ticks {
                    line.grid x1=(LEFT) x2=(px(right)) y1=(y.at(*tick)) y2=(y.at(*tick)) {}
                    text.tick x=(LEFT - 8.0) y=(px(y.at(*tick) + 4.0)) text-anchor="end" { (tick_text(&ticks, *tick)) }
                }
                @for tick in &columns {
                    line.grid x1=(x.at(*tick)) x2=(x.at(*tick)) y1=(floor) y2=(floor + 5.0) {}
                    text.tick x=(x.at(*tick)) y=(floor + 18.0) text-anchor="middle" { (tick_text(&columns, *tick)) }
                }
                line.axis x1=(LEFT) x2=(px(right)) y1=(floor) y2=(floor) {}
                text.tick x=(px((LEFT + right) / 2.0)) y=(HEIGHT - 3.0) text-anchor="middle" { (across) }
                @for (nth, line) in lines.iter().enumerate() {
                    g class={ "curve " (colour(Some(nth))) } {
                        title { (numbers::plain(&line.name)) }
                        path d=(path(line)) {}
                        path.hit d=(path(line)) {}
                        // A single point makes no line.
                        @if let [(at, value)] = line.points.as_slice() {
                            circle cx=(x.at(*at)) cy=(y.at(frame.inside(*value))) r="3" {}
                        }
                    }
                }
                @for (nth, name, place) in labels(lines, |value| y.at(frame.inside(value))) {
                    g class={ "curve " (colour(Some(nth))) } {
                        path d=(format!("M{} {place}L{} {place}", px(right + 4.0), px(right + 16.0))) {}
                        text.tick x=(px(right + 20.0)) y=(px(place + 4.0)) { (name) }
                    }
                }
            }))
            (download::plot(file, &table))
        }
    }
}

/// Place in the order, name and height of every line's label: near its end, without overlaps.
fn labels(lines: &[ChartLine], y: impl Fn(f64) -> f64) -> Vec<(usize, String, f64)> {
    let ends = lines.iter().enumerate();
    let mut labels: Vec<_> = ends
        .filter_map(|(nth, line)| {
            let (_, last) = line.points.last()?;
            Some((nth, numbers::short(&line.name, 18), y(*last)))
        })
        .collect();
    labels.sort_by(|a, b| a.2.total_cmp(&b.2));
    for at in 1..labels.len() {
        labels[at].2 = labels[at].2.max(labels[at - 1].2 + APART);
    }
    // Labels that were pushed out below are pushed back up.
    for at in (0..labels.len()).rev() {
        let most = labels
            .get(at + 1)
            .map_or(HEIGHT - 8.0, |next| next.2 - APART);
        labels[at].2 = px(labels[at].2.min(most));
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_point_is_a_dot() {
        let line = |points: &[(f64, f64)]| ChartLine {
            name: "a".into(),
            points: points.to_vec(),
        };
        let drawn = |points| {
            let chart = chart("x", "x", ("round", "mae"), &[line(points)]).into_string();
            chart.matches("<circle").count()
        };
        assert_eq!(drawn(&[(1.0, 2.0)]), 1);
        assert_eq!(drawn(&[(1.0, 2.0), (2.0, 1.0)]), 0);
    }
}
