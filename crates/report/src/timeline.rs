//! Who led when: every view on the federation's clock, and every hand-over.

use lab::summary::ViewLead;

use super::story::Story;
use maud::{Markup, html};

use super::clock::TimeAxis;
use super::svg::{drawing, px};
use super::{download, numbers, terminal};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 150.0;
const TOP: f64 = 30.0;
/// The most rows of the chart; more leads share them.
const ROWS: usize = 40;

/// The section.
pub(crate) fn section(story: &Story) -> Markup {
    let failed = story.hand_overs().count();
    html! {
        section {
            h2 { "Who led when" }
            p.note {
                "Every view has the next lead; time is "
                @match story.virtual_seconds { Some(_) => "virtual. ", None => "real. " }
                @match failed {
                    0 => "Every round became final in its first view.",
                    _ => {
                        (numbers::plural(failed, "view"))
                        " failed, and the next lead took over."
                    }
                }
            }
            @if story.timeline.is_empty() { p { "There was no view." } } @else {
                figure {
                    (chart(story))
                    (key())
                    (download::plot(&format!("{}-views", story.scenario), &csv(story)))
                }
            }
            @if failed > 0 { (table(story)) }
        }
    }
}

/// The views as CSV.
fn csv(story: &Story) -> String {
    let rows = story.timeline.iter().map(|view| {
        vec![
            view.view.to_string(),
            view.round.to_string(),
            view.lead.clone(),
            view.from.to_string(),
            view.to.to_string(),
            view.result.to_owned(),
            story.reason(view.view).unwrap_or_default().to_owned(),
        ]
    });
    download::csv(
        &["view", "round", "lead", "from", "to", "result", "reason"],
        rows,
    )
}

fn chart(story: &Story) -> Markup {
    let mut leads: Vec<&str> = Vec::new();
    for view in &story.timeline {
        if !leads.contains(&view.lead.as_str()) {
            leads.push(&view.lead);
        }
    }
    let rows = leads.len().min(ROWS);
    let shared = leads.len() > ROWS;
    let high = if shared { 14.0 } else { 24.0 };
    let bottom = TOP + rows as f64 * high;
    let ends = story
        .timeline
        .iter()
        .map(|view| view.to)
        .chain([story.lasted()]);
    let end = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
    let x = &clock(story, end.max(1e-9), (LEFT, WIDTH - 16.0));
    let row = |view: &ViewLead| {
        let index = leads
            .iter()
            .position(|lead| *lead == view.lead)
            .unwrap_or(0);
        TOP + (index % rows) as f64 * high
    };
    drawing(
        "Timeline of leads",
        WIDTH,
        bottom + 38.0,
        html! {
            defs {
                pattern #hatch width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect.hatch-ground width="6" height="6" {}
                    rect.hatch-line width="3" height="6" {}
                }
            }
            (x.axis((LEFT, WIDTH - 16.0), (TOP, bottom)))
            @if !shared { @for (index, lead) in leads.iter().enumerate() {
                text.tick x=(LEFT - 8.0) y=(px(TOP + index as f64 * high + high / 2.0 + 4.0)) text-anchor="end" {
                    (numbers::short(lead, 20))
                }
            } }
            (rounds(story, x, bottom))
            (path_of_lead(story, x, high, &row))
            @for view in &story.timeline {
                @let (from, to) = (x.at(view.from), x.at(view.to));
                rect class={ "view " (class(view)) } x=(from) y=(px(row(view) + 3.0)) rx="2"
                    width=(px((to - from).max(2.5))) height=(high - 6.0) {
                    title {
                        "view " (view.view) ", round " (view.round) ", led by " (view.lead) ": "
                        (terminal::ending(story, view))
                    }
                }
            }
        },
    )
}

/// The clock of the views from 0 to `end`.
fn clock(story: &Story, end: f64, ends: (f64, f64)) -> TimeAxis {
    let views: Vec<(f64, f64)> = story
        .timeline
        .iter()
        .map(|view| (view.from, view.to))
        .collect();
    let waiting = story
        .timeline
        .last()
        .is_some_and(|view| class(view) == "open");
    TimeAxis::new(&views, &[], (end, waiting), ends)
}

fn class(view: &ViewLead) -> &'static str {
    match view.result {
        "final" => "final",
        "nullified" => "nullified",
        "empty" => "empty",
        _ => "open",
    }
}

/// A line where each round became final, with its number if there is room.
fn rounds(story: &Story, x: &TimeAxis, bottom: f64) -> Markup {
    let mut free = f64::NEG_INFINITY;
    let marks: Vec<(u64, f64, bool)> = story
        .rounds
        .iter()
        .filter_map(|round| {
            let view = story
                .timeline
                .iter()
                .find(|view| Some(view.view) == round.view())?;
            let at = x.at(view.to);
            let room = at - free >= 26.0;
            if room {
                free = at;
            }
            Some((round.round, at, room))
        })
        .collect();
    html! {
        text.tick x=(LEFT - 8.0) y=(TOP - 10.0) text-anchor="end" { "round final" }
        @for (round, at, room) in marks {
            line.round x1=(at) x2=(at) y1=(TOP - 5.0) y2=(px(bottom)) { title { "round " (round) " final" } }
            @if room { text.tick x=(at) y=(TOP - 10.0) text-anchor="middle" { (round) } }
        }
    }
}

/// The path of the lead from silo to silo; after a failed view it has the colour of failures.
fn path_of_lead(story: &Story, x: &TimeAxis, high: f64, row: &impl Fn(&ViewLead) -> f64) -> Markup {
    let (mut passed, mut failed) = (String::new(), String::new());
    for pair in story.timeline.windows(2) {
        let path = if pair[0].result == "nullified" {
            &mut failed
        } else {
            &mut passed
        };
        let (at, from, to) = (x.at(pair[1].from), row(&pair[0]), row(&pair[1]));
        path.push_str(&format!(
            "M{at} {}L{at} {}",
            px(from + high / 2.0),
            px(to + high / 2.0)
        ));
    }
    html! {
        path.passed d=(passed) {}
        path.failed d=(failed) {}
    }
}

fn key() -> Markup {
    let box_of = |class: &str| {
        html! { svg.key viewBox="0 0 14 14" aria-hidden="true" {
            rect class={ "view " (class) } x="1" y="1" width="12" height="12" rx="2" {}
        } }
    };
    html! {
        ul.legend.inline {
            li { (box_of("final")) "became final" }
            li { (box_of("nullified")) "nullified" }
            li { (box_of("empty")) "empty block" }
            li { (box_of("open")) "under way at the end" }
        }
    }
}

fn table(story: &Story) -> Markup {
    html! {
        h3 { "Hand-overs after a failure" }
        div.scroll.tall tabindex="0" role="region" aria-label="Hand-overs after a failure" {
            table {
                thead { tr {
                    th.number scope="col" { "View" } th.number scope="col" { "Round" } th scope="col" { "Lead" }
                    th scope="col" { "Why" } th.number scope="col" { "After" } th scope="col" { "Taken over by" }
                } }
                tbody { @for (view, next) in story.hand_overs() { tr {
                    td.number { (view.view) }
                    td.number { (view.round) }
                    th scope="row" { (view.lead) }
                    td { (story.reason(view.view).unwrap_or("no reason is known")) }
                    td.number { (numbers::seconds((view.to - view.from).max(0.0))) }
                    td { @match next { Some(next) => (next.lead), None => "none: the run ended" } }
                } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_view_is_a_bar_and_failures_have_reasons() {
        for (silos, rounds) in [(1, 1), (8, 6), (100, 90)] {
            let story = fixture::story(silos, 1, rounds);
            let page = section(&story).into_string();
            let bars = page.matches("<rect class=\"view ").count() - 4;
            assert_eq!(bars, story.timeline.len());
            assert_eq!(page.contains("the lead was silent"), rounds > 1);
            assert!(!page.contains("NaN"));
        }
    }

    #[test]
    fn a_long_pause_does_not_squeeze_the_rest() {
        let mut story = fixture::story(4, 1, 8);
        let paused = 5_000.0;
        for view in story.timeline.iter_mut().skip(4) {
            view.from += paused;
            view.to += paused;
        }
        story.timeline[3].to += paused;
        story.virtual_seconds = story.virtual_seconds.map(|lasted| lasted + paused);
        let page = section(&story).into_string();
        assert!(
            page.contains("83 min 2") && page.contains("drawn shorter"),
            "{page}"
        );
        let events = || story.timeline.iter().flat_map(|view| [view.from, view.to]);
        let clock = clock(&story, story.lasted(), (0.0, 1000.0));
        // The views after the pause have as much room as before, the pause has at most half of it.
        let [first, last] = [&story.timeline[0], &story.timeline[7]];
        assert!(clock.at(first.to) - clock.at(first.from) > 10.0);
        assert!(clock.at(last.to) - clock.at(last.from) > 10.0);
        let (from, to, lasts) = clock.pauses().next().unwrap_or_default();
        assert!(to - from < 750.0 && lasts > 4_999.0, "{from} {to} {lasts}");
        let places: Vec<f64> = events().map(|time| clock.at(time)).collect();
        assert!(
            places.windows(2).all(|pair| pair[0] <= pair[1]),
            "{places:?}"
        );
    }

    #[test]
    fn a_run_without_views_or_time_is_drawn() {
        let mut story = fixture::story(2, 1, 1);
        story.virtual_seconds = Some(0.0);
        (story.timeline[0].from, story.timeline[0].to) = (0.0, 0.0);
        assert!(!section(&story).into_string().contains("NaN"));
        story.timeline.clear();
        assert!(section(&story).into_string().contains("There was no view."));
    }
}
