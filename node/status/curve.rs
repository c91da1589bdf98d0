//! The held-out metric by round, drawn.

use maud::{Markup, html};

use super::Status;
use formatting::numbers::{decimals, value};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 200.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 34.0;
/// Width of a digit where the letters are largest: on the narrow screen of a telephone.
const DIGIT: f64 = 13.0;
/// Between a number and the line that it stands at.
const GAP: f64 = 8.0;

/// A measured round.
struct MeasuredPoint {
    round: u64,
    value: f64,
}

/// The curve of what the adopted models are worth on own held-out rows; nothing where fewer than two rounds were
/// measured.
pub(super) fn curve(status: &Status) -> Markup {
    let Some((_, newest)) = status.measured() else {
        return html! {};
    };
    let measured: Vec<MeasuredPoint> = status
        .rounds
        .iter()
        .filter_map(|round| {
            let found = round.held_out.as_ref()?.metrics.get(&newest.metric)?;
            let round = round.round;
            found.is_finite().then_some(MeasuredPoint {
                round,
                value: *found,
            })
        })
        .collect();
    let ([first, .., last], Some((low, high))) = (&measured[..], ends(&measured)) else {
        return html! {};
    };
    let digits = decimals(low.abs().max(high.abs()));
    let marks = match high > low {
        true => vec![low, high],
        false => vec![low],
    };
    let marks: Vec<(f64, String)> = marks.iter().map(|&at| (at, value(at, digits))).collect();
    let longest = marks.iter().map(|(_, mark)| mark.chars().count()).max();
    let left = GAP + DIGIT * longest.unwrap_or_default() as f64;
    let x = |round: u64| {
        let part = (round - first.round) as f64 / (last.round - first.round).max(1) as f64;
        tenth(left + part * (WIDTH - left - RIGHT))
    };
    let y = |value: f64| {
        let part = if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        };
        tenth(HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP))
    };
    let path = measured.iter().enumerate().map(|(at, one)| {
        let pen = if at == 0 { 'M' } else { 'L' };
        format!("{pen}{} {}", x(one.round), y(one.value))
    });
    let said = format!(
        "{} by round: {} after round {}, {} after round {}",
        newest.metric,
        value(first.value, digits),
        first.round,
        value(last.value, digits),
        last.round
    );
    html! {
        figure {
            figcaption { (newest.metric) " on " (newest.rows) " own held-out rows, by round" }
            svg.curve role="img" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) {
                title { (said) }
                @for (at, mark) in &marks {
                    line.grid x1=(left) x2=(WIDTH - RIGHT) y1=(y(*at)) y2=(y(*at)) {}
                    text x=(left - GAP) y=(y(*at) + 5.0) text-anchor="end" { (mark) }
                }
                path d=(path.collect::<String>()) {}
                @for one in &measured {
                    circle cx=(x(one.round)) cy=(y(one.value)) r="3" {
                        title { "round " (one.round) ": " (value(one.value, digits)) }
                    }
                }
                text x=(x(first.round)) y=(HEIGHT - 8.0) text-anchor="middle" { (first.round) }
                text x=(x(last.round)) y=(HEIGHT - 8.0) text-anchor="middle" { (last.round) }
                text x=((left + WIDTH - RIGHT) / 2.0) y=(HEIGHT - 8.0) text-anchor="middle" { "round" }
            }
        }
    }
}

/// The smallest and the largest value.
fn ends(measured: &[MeasuredPoint]) -> Option<(f64, f64)> {
    let values = measured.iter().map(|one| one.value);
    Some((values.clone().reduce(f64::min)?, values.reduce(f64::max)?))
}

/// A coordinate: a tenth of a unit is enough.
fn tenth(coordinate: f64) -> f64 {
    (coordinate * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::fixture;

    #[test]
    fn the_curve_has_a_point_for_every_measured_round() {
        let mut status = fixture::status();
        let drawn = |status: &Status| curve(status).into_string();
        let both = drawn(&status);
        assert_eq!(both.matches("<circle").count(), 2);
        assert!(
            both.contains("mae by round: 50.48 after round 1, 48.67 after round 2"),
            "{both}"
        );
        // Five letters of the largest size fit before the line.
        assert!(
            both.contains("x=\"65\" y=\"19\" text-anchor=\"end\">50.48</text>"),
            "{both}"
        );
        // A value that was not measured leaves no gap in the line, and one point is no curve.
        status.rounds[0].held_out = None;
        assert_eq!(drawn(&status), "");
        status.rounds.clear();
        assert_eq!(drawn(&status), "");
    }

    #[test]
    fn equal_and_unusable_values_are_drawn_without_dividing_by_zero() {
        let mut status = fixture::status();
        let put = |status: &mut Status, at: usize, value: f64| {
            if let Some(held_out) = &mut status.rounds[at].held_out {
                held_out.metrics.insert("mae".into(), value);
            }
        };
        put(&mut status, 0, 48.67);
        let equal = curve(&status).into_string();
        assert!(!equal.contains("NaN") && equal.contains("<path"), "{equal}");
        put(&mut status, 0, f64::INFINITY);
        assert_eq!(curve(&status).into_string(), "");
    }
}
