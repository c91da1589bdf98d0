//! Survival curves with the numbers at risk below them.

use maud::{Markup, html};
use questions::kinds::km::KmOutcome;
use questions::outcome::LEVEL;
use questions::outcome::curves::{JoinedPoint, joined};

use formatting::svg::{AxisScale, colour, described, px, tick_text};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 110.0;
const HEIGHT: f64 = 340.0;
/// Height of a line of numbers at risk.
const LINE: f64 = 22.0;

/// The section.
pub(super) fn section(found: &KmOutcome, smallest: u64) -> Markup {
    let curves: Vec<(String, Vec<JoinedPoint>)> = found
        .curves
        .iter()
        .map(|curve| {
            (
                curve.group.clone().unwrap_or_else(|| "all".to_owned()),
                joined(curve, smallest),
            )
        })
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let end = curves
        .iter()
        .flat_map(|(_, points)| points)
        .map(|point| point.point.time)
        .fold(0.0, f64::max);
    if end <= 0.0 {
        return html! {};
    }
    html! {
        section {
            h2 { "Survival" }
            figure { (drawing(&curves, end)) }
            p.note { "Bands are 95 % intervals. At risk is counted before the step that a time belongs to. Steps with few events are joined with the next." }
        }
    }
}

fn drawing(curves: &[(String, Vec<JoinedPoint>)], end: f64) -> Markup {
    let across = AxisScale::new((0.0, end), (LEFT, WIDTH - 90.0));
    let up = AxisScale::new((0.0, 1.0), (HEIGHT, 10.0));
    let ticks = across.ticks(7);
    let below = HEIGHT + 34.0;
    let last = |(name, points): &(String, Vec<JoinedPoint>)| {
        points.last().map(|point| {
            format!(
                "{name}: {:.2} at {}",
                point.point.survival, point.point.time
            )
        })
    };
    let said = curves
        .iter()
        .filter_map(last)
        .collect::<Vec<_>>()
        .join("; ");
    described(
        "Survival curves",
        &said,
        (WIDTH, below + 26.0 + LINE * curves.len() as f64),
        html! {
            @for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
                line.grid x1=(LEFT) x2=(WIDTH - 90.0) y1=(up.at(part)) y2=(up.at(part)) {}
                text.tick x=(LEFT - 8.0) y=(up.at(part) + 4.0) text-anchor="end" { (part) }
            }
            @for tick in &ticks {
                text.tick x=(across.at(*tick)) y=(HEIGHT + 20.0) text-anchor="middle" { (tick_text(&ticks, *tick)) }
            }
            text.tick x="0" y=(below + 14.0) { "at risk" }
            @for (at, (name, points)) in curves.iter().enumerate() {
                g class=(colour(Some(at))) { path.band style="fill:var(--k)" d=(band(points, &across, &up)) {} }
                g class=(format!("curve {}", colour(Some(at)))) {
                    path d=(path(points, &across, &up)) {}
                    @if let Some(last) = points.last() {
                        text x=(across.at(last.point.time) + 6.0) y=(up.at(last.point.survival) + 4.0) { (name) }
                    }
                }
                @let y = below + 14.0 + LINE * (at as f64 + 1.0);
                text x="0" y=(y) { (name) }
                @for tick in &ticks {
                    @if let Some(count) = at_risk(points, *tick) {
                        text.tick x=(across.at(*tick)) y=(y) text-anchor="middle" { (count) }
                    }
                }
            }
        },
    )
}

/// Steps down at every point.
fn path(points: &[JoinedPoint], across: &AxisScale, up: &AxisScale) -> String {
    let mut path = format!("M{},{}", px(across.at(0.0)), px(up.at(1.0)));
    for point in points {
        path += &format!(
            "H{}V{}",
            across.at(point.point.time),
            up.at(point.point.survival)
        );
    }
    path
}

/// The intervals as an area: their upper ends in steps to the right, and the lower ones back.
fn band(points: &[JoinedPoint], across: &AxisScale, up: &AxisScale) -> String {
    let ends = |point: &JoinedPoint| {
        point
            .point
            .interval(LEVEL)
            .unwrap_or([point.point.survival; 2])
    };
    let mut path = format!("M{},{}", px(across.at(0.0)), px(up.at(1.0)));
    for point in points {
        path += &format!("H{}V{}", across.at(point.point.time), up.at(ends(point)[1]));
    }
    for (at, point) in points.iter().enumerate().rev() {
        let before = match at.checked_sub(1) {
            Some(before) => ends(&points[before])[0],
            None => 1.0,
        };
        path += &format!("V{}H{}", up.at(ends(point)[0]), across.at(point.point.time));
        path += &format!("V{}", up.at(before));
    }
    path + "Z"
}

/// Rows at risk before the step that a time belongs to.
fn at_risk(points: &[JoinedPoint], time: f64) -> Option<f64> {
    let point = points.iter().find(|point| point.point.time >= time)?;
    Some(point.at_risk)
}
