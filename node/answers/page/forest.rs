//! Coefficients with their intervals, one below the other.

use maud::{Markup, html};
use questions::Estimate;
use questions::outcome::LEVEL;

use formatting::svg::{AxisScale, described, tick_text};

const WIDTH: f64 = 860.0;
/// Room for the numbers at the right.
const NUMBERS: f64 = 190.0;
/// Room for a letter of a name, in wide fonts.
const LETTER: f64 = 7.6;
const LINE: f64 = 28.0;

/// The section; nothing without intervals. Ratios are e to a coefficient, drawn on a logarithmic axis.
pub(super) fn section(
    title: &str,
    ratios: bool,
    all: impl Iterator<Item = (String, f64, Option<Estimate>)>,
) -> Markup {
    let lines: Vec<(String, f64, [f64; 2])> = all
        .filter_map(|(name, value, estimate)| Some((name, value, estimate?.interval(LEVEL))))
        .collect();
    if lines.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { (title) }
            figure { (drawing(title, ratios, &lines)) }
            p.note { "Points are estimates, lines 95 % intervals; the dashed line is no difference." }
        }
    }
}

fn drawing(title: &str, ratios: bool, lines: &[(String, f64, [f64; 2])]) -> Markup {
    let ends = lines
        .iter()
        .flat_map(|(_, _, interval)| *interval)
        .chain([0.0]);
    let (low, high) = formatting::svg::range(ends).unwrap_or((-1.0, 1.0));
    let longest = lines
        .iter()
        .map(|(name, ..)| name.chars().count())
        .max()
        .unwrap_or(0);
    let left = 24.0 + LETTER * longest as f64;
    let scale = AxisScale::new((low, high), (left, WIDTH - NUMBERS));
    let ticks = scale.ticks(6);
    let bottom = LINE * lines.len() as f64;
    let shown = |value: f64| {
        if ratios {
            format!("{:.2}", value.exp())
        } else {
            format!("{value:.3}")
        }
    };
    let label = |tick: f64| {
        if ratios {
            format!("{:.2}", tick.exp())
        } else {
            tick_text(&ticks, tick)
        }
    };
    let each = lines.iter().map(|(name, value, [low, high])| {
        format!(
            "{name} {} ({} to {})",
            shown(*value),
            shown(*low),
            shown(*high)
        )
    });
    let said = each.collect::<Vec<_>>().join("; ");
    described(
        title,
        &said,
        (WIDTH, bottom + 30.0),
        html! {
            @for tick in &ticks {
                line.grid x1=(scale.at(*tick)) x2=(scale.at(*tick)) y1="0" y2=(bottom) {}
                text.tick x=(scale.at(*tick)) y=(bottom + 20.0) text-anchor="middle" { (label(*tick)) }
            }
            line.together x1=(scale.at(0.0)) x2=(scale.at(0.0)) y1="0" y2=(bottom) {}
            @for (at, (name, value, [low, high])) in lines.iter().enumerate() {
                @let y = LINE * (at as f64 + 0.5);
                text x=(left - 10.0) y=(y + 4.0) text-anchor="end" { (name) }
                line.median x1=(scale.at(*low)) x2=(scale.at(*high)) y1=(y) y2=(y) {}
                circle.middle cx=(scale.at(*value)) cy=(y) r="5" {}
                text.tick x=(WIDTH - NUMBERS + 14.0) y=(y + 4.0) {
                    (shown(*value)) " (" (shown(*low)) " to " (shown(*high)) ")"
                }
            }
        },
    )
}
