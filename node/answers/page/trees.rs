//! The loss of boosted trees by their number, and the importance of columns.

use maud::{Markup, html};
use questions::kinds::trees::{ColumnImportance, TreesOutcome};

use formatting::svg::{AxisScale, colour, described, px, tick_text};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 70.0;
/// Room for the names of the curves at the right.
const NAMES: f64 = 110.0;
const HEIGHT: f64 = 300.0;
/// Height of a line of importance.
const LINE: f64 = 28.0;
/// Room for a letter of a name, in wide fonts.
const LETTER: f64 = 7.6;
/// Most columns in the drawing of importance.
const COLUMNS: usize = 20;

/// The sections; that of importance is left out where no column has a split.
pub(super) fn sections(found: &TreesOutcome) -> Markup {
    let importance = found.importance();
    html! {
        @if found.losses.len() > 1 {
            section {
                h2 { (loss(found)) " by the number of trees" }
                figure { (curves(found)) }
                @if let Some(best) = found.best() {
                    p.note { "The dashed line is the number of trees with the least loss of held-out rows: " (best) "." }
                }
            }
        }
        @if !importance.is_empty() {
            section {
                h2 { "Importance of columns" }
                figure { (bars(&importance[..importance.len().min(COLUMNS)])) }
                p.note { "By how much the splits at a column lower the loss, as part of that of all splits." }
            }
        }
    }
}

fn loss(found: &TreesOutcome) -> &'static str {
    match found.is_probability {
        true => "Log loss",
        false => "Root mean squared error",
    }
}

fn curves(found: &TreesOutcome) -> Markup {
    let trained: Vec<f64> = found.losses.iter().map(|loss| loss.trained).collect();
    let held_out: Option<Vec<f64>> = found.losses.iter().map(|loss| loss.held_out).collect();
    let lines = [
        Some(("in training", trained)),
        held_out.map(|line| ("held out", line)),
    ];
    let lines: Vec<(&str, Vec<f64>)> = lines.into_iter().flatten().collect();
    let values = lines.iter().flat_map(|(_, line)| line.iter().copied());
    let (low, high) = formatting::svg::range(values).unwrap_or((0.0, 1.0));
    let across = AxisScale::new(
        (0.0, (found.losses.len() - 1) as f64),
        (LEFT, WIDTH - NAMES),
    );
    let up = AxisScale::new((low, high), (HEIGHT, 10.0));
    let (trees, losses) = (across.ticks(8), up.ticks(5));
    let each = lines.iter().map(|(name, line)| {
        let ends = [line.first(), line.last()].map(|end| end.copied().unwrap_or_default());
        format!("{name} from {:.4} to {:.4}", ends[0], ends[1])
    });
    let said = each.collect::<Vec<_>>().join("; ");
    described(
        loss(found),
        &said,
        (WIDTH, HEIGHT + 44.0),
        html! {
            @for tick in &losses {
                line.grid x1=(LEFT) x2=(WIDTH - NAMES) y1=(up.at(*tick)) y2=(up.at(*tick)) {}
                text.tick x=(LEFT - 8.0) y=(up.at(*tick) + 4.0) text-anchor="end" { (tick_text(&losses, *tick)) }
            }
            @for tick in trees.iter().filter(|tick| tick.fract() == 0.0) {
                text.tick x=(across.at(*tick)) y=(HEIGHT + 20.0) text-anchor="middle" { (tick_text(&trees, *tick)) }
            }
            text.tick x=(WIDTH - NAMES + 8.0) y=(HEIGHT + 20.0) { "trees" }
            @if let Some(best) = found.best() {
                line.together x1=(across.at(best as f64)) x2=(across.at(best as f64)) y1="10" y2=(HEIGHT) {}
            }
            @for (at, (name, line)) in lines.iter().enumerate() {
                g class=(format!("curve {}", colour(Some(at)))) {
                    path d=(path(line, &across, &up)) {}
                    @if let Some(last) = line.last() {
                        text x=(WIDTH - NAMES + 8.0) y=(up.at(*last) + 4.0) { (name) }
                    }
                }
            }
        },
    )
}

fn path(line: &[f64], across: &AxisScale, up: &AxisScale) -> String {
    let points = line.iter().enumerate();
    let points = points.map(|(at, loss)| format!("{},{}", across.at(at as f64), up.at(*loss)));
    format!("M{}", points.collect::<Vec<_>>().join("L"))
}

fn bars(importance: &[ColumnImportance]) -> Markup {
    let letters = importance.iter().map(|one| one.column.chars().count());
    let left = 24.0 + LETTER * letters.max().unwrap_or(0) as f64;
    let most = importance.iter().map(|one| one.share).fold(0.0, f64::max);
    let across = AxisScale::new((0.0, most), (left, WIDTH - NAMES));
    let said = importance
        .iter()
        .map(|one| format!("{} {:.3}", one.column, one.share))
        .collect::<Vec<_>>()
        .join("; ");
    described(
        "Importance of columns",
        &said,
        (WIDTH, LINE * importance.len() as f64 + 6.0),
        html! {
            @for (at, one) in importance.iter().enumerate() {
                @let y = LINE * (at as f64 + 0.5);
                text x=(left - 10.0) y=(y + 4.0) text-anchor="end" { (one.column) }
                g.curve.k0 {
                    rect x=(left) y=(y - 8.0) width=(px(across.at(one.share) - left)) height="16" style="fill:var(--k);opacity:.5" {}
                }
                text.tick x=(across.at(one.share) + 8.0) y=(y + 4.0) { (format!("{:.3}", one.share)) }
            }
        },
    )
}
