//! Drawings of measured numbers with their intervals, beside what they are compared with.

use lab::attack::AttackEstimate;
use maud::{Markup, html};

use crate::svg::{AxisScale, shrinking, tick_text};

/// Width of a drawing.
const WIDTH: f64 = 820.0;
/// Room for a letter of a name, in wide fonts.
const LETTER: f64 = 7.6;
/// Height of a line.
const LINE: f64 = 26.0;
/// Height of the names of the marks.
const TOP: f64 = 22.0;

/// A number with its name and interval.
pub(super) struct MeasuredBar {
    pub(super) name: String,
    pub(super) estimate: AttackEstimate,
}

/// Numbers with intervals, one in a line, and marks across all lines.
pub(super) fn bars(label: &str, all: &[MeasuredBar], marks: &[(&str, f64)]) -> Markup {
    let lines = all.iter().map(|one| {
        let AttackEstimate { value, low, high } = one.estimate;
        (one.name.clone(), [low, value, high])
    });
    drawn(label, &lines.collect::<Vec<_>>(), marks, None)
}

/// Lower bounds, one in a line from 0, and marks across all lines.
pub(super) fn lower(label: &str, all: &[(String, f64)], marks: &[(&str, f64)]) -> Markup {
    let lines = all
        .iter()
        .map(|(name, value)| (name.clone(), [0.0, *value, *value]));
    drawn(label, &lines.collect::<Vec<_>>(), marks, Some(0.0))
}

fn drawn(
    label: &str,
    lines: &[(String, [f64; 3])],
    marks: &[(&str, f64)],
    from: Option<f64>,
) -> Markup {
    let values = lines.iter().flat_map(|(_, values)| values.iter().copied());
    let values = values.chain(marks.iter().map(|(_, at)| *at)).chain(from);
    let values: Vec<_> = values.filter(|value| value.is_finite()).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let pad = ((most - least) * 0.05).max(0.01);
    let least = if from.is_some() { least } else { least - pad };
    let longest = lines.iter().map(|(name, _)| name.chars().count()).max();
    // Left of the scale are the names.
    let left = 24.0 + LETTER * longest.unwrap_or(0) as f64;
    let scale = AxisScale::new((least, most + pad), (left, WIDTH - 20.0));
    let ticks = scale.ticks(6);
    // The names of the marks stand one below the other, so that near ones can be read. They reach to the left of
    // their lines, so no line of a mark further right goes through them.
    let mut marks = marks.to_vec();
    marks.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let top = TOP * marks.len() as f64;
    let bottom = top + LINE * lines.len() as f64;
    shrinking(
        label,
        (WIDTH, bottom + 30.0),
        0.8,
        html! {
            @for tick in &ticks {
                line.grid x1=(scale.at(*tick)) x2=(scale.at(*tick)) y1=(top) y2=(bottom) {}
                text.tick x=(scale.at(*tick)) y=(bottom + 20.0) text-anchor="middle" { (tick_text(&ticks, *tick)) }
            }
            @for (at, (name, value)) in marks.iter().enumerate() {
                line.together x1=(scale.at(*value)) x2=(scale.at(*value))
                    y1=(TOP * at as f64 + 18.0) y2=(bottom) {}
                text x=(scale.at(*value)) y=(TOP * at as f64 + 14.0) text-anchor=(anchor(scale.at(*value))) {
                    (name) " " (format!("{value:.3}"))
                }
            }
            @for (at, (name, [low, value, high])) in lines.iter().enumerate() {
                @let y = top + LINE * (at as f64 + 0.5);
                text x=(left - 10.0) y=(y + 4.0) text-anchor="end" { (name) }
                line.median x1=(scale.at(*low)) x2=(scale.at(*high)) y1=(y) y2=(y) {}
                circle.middle cx=(scale.at(*value)) cy=(y) r="5" {}
            }
        },
    )
}

/// Names near an end of the drawing stand on the inner side of their mark.
fn anchor(x: f64) -> &'static str {
    match x {
        x if x > WIDTH - 160.0 => "end",
        x if x < 80.0 => "start",
        _ => "middle",
    }
}
