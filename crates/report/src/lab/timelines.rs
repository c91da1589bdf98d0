//! The timelines of all policies, one above the other on one clock.

use lab::rotation::{Laboratory, PolicyResult, RotationRun, StoppedMember, TimelineView};
use maud::{Markup, html};

use super::super::clock::TimeAxis;
use super::super::svg::{drawing, px};
use super::super::{download, numbers};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 130.0;
const TOP: f64 = 12.0;
/// Room between two policies.
const GAP: f64 = 26.0;
/// Most lanes of a policy; more members share them.
const LANES: usize = 16;

/// The drawing for the first seed.
pub(super) fn section(all: &Laboratory) -> Markup {
    let first = all
        .policies
        .iter()
        .filter_map(|policy| Some((policy, policy.trials.first()?)));
    let runs: Vec<(&PolicyResult, &RotationRun)> = first.collect();
    let Some((_, one)) = runs.first() else {
        return html! {};
    };
    html! {
        section {
            h2 { "Who led when" }
            p.note {
                "Seed " (one.seed) ", all rotations on one " @if all.deployment.is_none() { "virtual " } "clock. Each silo has a lane; a bar is a \
                 view in the lane of its lead, and grey is the time in which a silo was down. Point at a \
                 bar for its silo, view and round."
                @if all.silos.len() > LANES { " Silos share " (LANES) " lanes." }
            }
            figure {
                (chart(all, &runs))
                (key())
                (download::plot(&format!("{}-timelines", all.scenario), &csv(all, &runs)))
            }
        }
    }
}

fn csv(all: &Laboratory, runs: &[(&PolicyResult, &RotationRun)]) -> String {
    let rows = runs.iter().flat_map(|(policy, trial)| {
        let cells = |view: &TimelineView| {
            [
                policy.policy.clone(),
                view.view.to_string(),
                view.round.to_string(),
                name(all, view.lead).to_owned(),
                view.from.to_string(),
                view.to.to_string(),
                view.result.to_owned(),
            ]
        };
        trial.views.iter().map(cells).collect::<Vec<_>>()
    });
    download::csv(
        &["rotation", "view", "round", "lead", "from", "to", "result"],
        rows,
    )
}

fn name(all: &Laboratory, member: usize) -> &str {
    all.silos.get(member).map_or("", String::as_str)
}

/// One timeline.
pub(crate) struct Strip<'a> {
    /// Name of the timeline, and a word on it.
    pub(crate) labels: [String; 2],
    pub(crate) views: &'a [TimelineView],
    pub(crate) stops: &'a [StoppedMember],
}

fn chart(all: &Laboratory, runs: &[(&PolicyResult, &RotationRun)]) -> Markup {
    let strips = runs.iter().map(|(policy, trial)| Strip {
        labels: [
            policy.policy.clone(),
            format!("{} of {} rounds", trial.rounds, all.rounds),
        ],
        views: &trial.views,
        stops: &trial.stops,
    });
    strips_drawn(&all.silos, &strips.collect::<Vec<_>>())
}

/// Timelines one above the other, on one clock.
pub(crate) fn strips_drawn(silos: &[String], strips: &[Strip<'_>]) -> Markup {
    let lanes = silos.len().clamp(1, LANES);
    // A timeline alone has room for the names of its silos.
    let named = strips.len() == 1 && silos.len() <= LANES;
    let high = match named {
        true => 15.0,
        false if lanes > 10 => 6.0,
        false => 9.0,
    };
    // Two labels need as much.
    let block = (lanes as f64 * high).max(28.0);
    let ends = strips
        .iter()
        .flat_map(|strip| strip.views.iter().map(|view| view.to));
    let end = ends.fold(1e-9, f64::max);
    let ends = (LEFT, WIDTH - 16.0);
    let x = &match strips {
        [strip] => clock(strip, end, ends),
        // Several are compared by their lengths, so nothing is cut.
        _ => TimeAxis::new(&[], &[], (end, false), ends),
    };
    let bottom = TOP + strips.len() as f64 * (block + GAP) - GAP;
    let below = if x.pauses().next().is_some() {
        38.0
    } else {
        24.0
    };
    drawing(
        "Timelines of leads",
        WIDTH,
        bottom + below,
        html! {
            defs {
                pattern #hatch width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect.hatch-ground width="6" height="6" {}
                    rect.hatch-line width="3" height="6" {}
                }
            }
            (x.axis((LEFT, WIDTH - 16.0), (TOP, bottom)))
            @for (nth, strip) in strips.iter().enumerate() {
                (one(silos, strip, x, (TOP + nth as f64 * (block + GAP), high, lanes, end), named))
            }
        },
    )
}

/// The clock of a timeline that stands alone.
fn clock(strip: &Strip<'_>, end: f64, ends: (f64, f64)) -> TimeAxis {
    let views: Vec<(f64, f64)> = strip
        .views
        .iter()
        .map(|view| (view.from, view.to))
        .collect();
    let stops = strip.stops.iter();
    let stops = stops.flat_map(|stop| [Some(stop.at), stop.back]);
    let last = strip.views.iter().max_by(|a, b| a.to.total_cmp(&b.to));
    let waiting = last.is_some_and(|view| view.result == "open");
    let stops: Vec<f64> = stops.flatten().collect();
    TimeAxis::new(&views, &stops, (end, waiting), ends)
}

/// The lanes of one timeline, from `top` downwards.
fn one(
    silos: &[String],
    strip: &Strip<'_>,
    x: &TimeAxis,
    (top, high, lanes, end): (f64, f64, usize, f64),
    named: bool,
) -> Markup {
    let lane = |member: usize| px(top + (member % lanes) as f64 * high);
    let wide = |from: f64, to: f64| px((x.at(to) - x.at(from)).max(1.5));
    let name = |member: usize| silos.get(member).map_or("", String::as_str);
    // The end of this run; others may have taken longer.
    let over = strip.views.last().map_or(end, |view| view.to);
    let bottom = px(top + lanes as f64 * high);
    html! {
        @if named {
            @for (member, silo) in silos.iter().enumerate() {
                text.tick x=(LEFT - 8.0) y=(px(top + member as f64 * high + 11.5)) text-anchor="end" {
                    (numbers::short(silo, 16))
                }
            }
        } @else {
            text.tick x=(LEFT - 8.0) y=(px(top + 11.0)) text-anchor="end" { (strip.labels[0]) }
            text.tick x=(LEFT - 8.0) y=(px(top + 25.0)) text-anchor="end" { (strip.labels[1]) }
        }
        line.axis x1=(LEFT) x2=(WIDTH - 16.0) y1=(bottom) y2=(bottom) {}
        @for stop in strip.stops {
            @let back = stop.back.unwrap_or(over).min(over.max(stop.at));
            rect.stopped x=(x.at(stop.at)) y=(lane(stop.member)) height=(high) width=(wide(stop.at, back)) {
                title {
                    (name(stop.member)) " is down from " (numbers::seconds(stop.at))
                    @match stop.back { Some(back) => { " to " (numbers::seconds(back)) }, None => " on" }
                }
            }
        }
        @for view in strip.views {
            rect class={ "view " (view.result) } x=(x.at(view.from)) y=(px(lane(view.lead) + 1.0))
                height=(high - 2.0) width=(wide(view.from, view.to)) {
                title {
                    (name(view.lead)) ": view " (view.view) ", round " (view.round) ", "
                    (view.result) ", " (numbers::seconds(view.to - view.from))
                }
            }
        }
    }
}

/// Returns what the colours mean.
pub(crate) fn key() -> Markup {
    let box_of = |class: &str| {
        html! { svg.key viewBox="0 0 14 14" aria-hidden="true" {
            rect class=(class) x="1" y="1" width="12" height="12" {}
        } }
    };
    html! {
        ul.legend.inline {
            li { (box_of("view final")) "became final" }
            li { (box_of("view nullified")) "failed" }
            li { (box_of("view empty")) "empty block" }
            li { (box_of("view open")) "under way at the end" }
            li { (box_of("stopped")) "silo down" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(view: u64, from: f64, to: f64, result: &'static str) -> TimelineView {
        TimelineView {
            view,
            round: view,
            lead: 0,
            from,
            to,
            result,
        }
    }

    fn widths(drawn: &str) -> Vec<f64> {
        let bars = drawn.split("<rect class=\"view ").skip(1);
        let width = |bar: &str| {
            bar.split("width=\"")
                .nth(1)?
                .split('"')
                .next()?
                .parse()
                .ok()
        };
        bars.filter_map(width).collect()
    }

    #[test]
    fn a_wait_at_the_end_of_a_history_leaves_room_for_the_rounds() {
        let silos = ["north".to_owned(), "south".to_owned()];
        let views = [
            view(1, 0.0, 1.0, "final"),
            view(2, 1.0, 2.0, "final"),
            view(3, 2.0, 19.0, "open"),
        ];
        let strip = || Strip {
            labels: ["views".into(), "2 final rounds".into()],
            views: &views,
            stops: &[],
        };
        let alone = strips_drawn(&silos, &[strip()]).into_string();
        let wide = widths(&alone);
        assert_eq!(wide.len(), 3);
        assert!(
            wide[0] > 300.0 && wide[2] < 0.21 * (WIDTH - LEFT),
            "{wide:?}"
        );
        assert!(alone.contains("17.0 s, drawn shorter"), "{alone}");
        // Beside another one lengths are compared, so nothing is cut.
        let both = strips_drawn(&silos, &[strip(), strip()]).into_string();
        assert!(widths(&both)[2] > 10.0 * widths(&both)[0], "{both}");
    }
}
