//! Leads over time: every view on the federation's clock, and every hand-over.

use lab::summary::{StoppedMember, ViewLead};

use super::story::Story;
use maud::{Markup, PreEscaped, html};

use super::clock::TimeAxis;
use super::palette::inlined;
use super::svg::{drawing, px};
use super::{download, numbers, terminal};

/// Rules of the drawing, for pages and for a file of its own.
pub(crate) const STYLE: &str = include_str!("timeline.css");
/// Further rules for a file, which pages have anyway.
const FILE_STYLE: &str = include_str!("timeline-file.css");

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 150.0;
const TOP: f64 = 30.0;
/// The most rows of the chart; more members share them.
const ROWS: usize = 40;
/// The height of the title above the drawing in a file, and of the legend below it.
const HEAD: f64 = 58.0;
const FOOT: f64 = 34.0;
/// The width of a letter of a text in a bar.
const LETTER: f64 = 6.6;

/// The drawing as one SVG file, for light and dark mode, with a title and a legend. The same federation
/// gives the same file.
pub fn leads_svg(story: &Story) -> String {
    let (height, content) = picture(story);
    let whole = px(HEAD + height + FOOT);
    let title = numbers::short(&story.description, 125);
    let note = story.hand_overs().next().map_or_else(
        || "Every round became final in its first view.".to_owned(),
        |(view, next)| hand_over(story, view, next),
    );
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox=(format!("0 0 {WIDTH} {whole}"))
            width=(WIDTH) height=(whole) {
            title { (title) }
            desc { (note) }
            style { (PreEscaped(inlined(&(FILE_STYLE.to_owned() + STYLE)))) }
            rect.paper width="100%" height="100%" {}
            text.title x="16" y="26" { (title) }
            text.note x="16" y="46" { (numbers::short(&note, 150)) }
            g transform=(format!("translate(0 {HEAD})")) { (content) }
            g transform=(format!("translate({LEFT} {})", px(HEAD + height + 6.0))) {
                @for (nth, (class, text)) in MEANINGS.iter().enumerate() {
                    rect class=(class) x=(nth as f64 * 165.0) y="1" width="12" height="12" rx="2" {}
                    text.tick x=(nth as f64 * 165.0 + 18.0) y="11" { (text) }
                }
            }
        }
    }
    .into_string()
}

/// The classes of bars, and what they mean.
const MEANINGS: [(&str, &str); 5] = [
    ("view final", "became final"),
    ("view nullified", "nullified"),
    ("view empty", "empty block"),
    ("view open", "under way at the end"),
    ("stopped", "member is down"),
];

/// One sentence on a view that failed.
fn hand_over(story: &Story, view: &ViewLead, next: Option<&ViewLead>) -> String {
    let reason = story.reason(view.view).unwrap_or("no reason is known");
    let after = match next {
        Some(next) => format!("{} leads the same round", next.lead),
        None => "the run ended".to_owned(),
    };
    let lasted = numbers::seconds((view.to - view.from).max(0.0));
    let round = view.round;
    format!("Round {round}: {reason}; after {lasted} its view is nullified, and {after}.")
}

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
    let (height, content) = picture(story);
    drawing("Timeline of leads", WIDTH, height, content)
}

/// The members that led or were down, in the roster's order.
fn members(story: &Story) -> Vec<&str> {
    let mut members: Vec<&str> = Vec::new();
    for (at, silo) in story.silos.iter().enumerate() {
        let led = story.timeline.iter().any(|view| view.lead == silo.name);
        if led || story.stops.iter().any(|stop| stop.member == at) {
            members.push(&silo.name);
        }
    }
    for view in &story.timeline {
        if !members.contains(&view.lead.as_str()) {
            members.push(&view.lead);
        }
    }
    members
}

/// The height of the drawing, and what is in it.
fn picture(story: &Story) -> (f64, Markup) {
    let members = members(story);
    let rows = members.len().min(ROWS);
    let shared = members.len() > ROWS;
    let high = if shared { 14.0 } else { 24.0 };
    let bottom = TOP + rows as f64 * high;
    let ends = story
        .timeline
        .iter()
        .map(|view| view.to)
        .chain([story.lasted()]);
    let end = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
    let x = &clock(story, end.max(1e-9), (LEFT, WIDTH - 16.0));
    let place = |name: &str| {
        let index = members.iter().position(|member| *member == name);
        TOP + (index.unwrap_or(0) % rows.max(1)) as f64 * high
    };
    let row = |view: &ViewLead| place(&view.lead);
    let stopped = |stop: &StoppedMember| {
        let silo = story.silos.get(stop.member);
        place(silo.map_or("", |silo| silo.name.as_str()))
    };
    let content = html! {
        defs {
            pattern #hatch width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                rect.hatch-ground width="6" height="6" {}
                rect.hatch-line width="3" height="6" {}
            }
        }
        (x.axis((LEFT, WIDTH - 16.0), (TOP, bottom)))
        @if !shared { @for (index, member) in members.iter().enumerate() {
            text.tick x=(LEFT - 8.0) y=(px(TOP + index as f64 * high + high / 2.0 + 4.0)) text-anchor="end" {
                (numbers::short(member, 20))
            }
        } }
        (rounds(story, x, bottom))
        @for stop in &story.stops {
            @let (from, to) = (x.at(stop.at), x.at(stop.back.unwrap_or(end)));
            rect.stopped x=(from) y=(px(stopped(stop) + 1.0)) width=(px((to - from).max(2.5))) height=(high - 2.0) {}
        }
        (path_of_lead(story, x, high, &row))
        @for view in &story.timeline { (bar(story, view, x, (row(view), high))) }
        @for stop in &story.stops {
            @let (at, y) = (x.at(stop.at), stopped(stop) + high / 2.0);
            circle.killed cx=(at) cy=(px(y)) r="8" {}
            path.killed d=(cross(at, y)) {
                title { "down from " (numbers::seconds(stop.at)) " on" }
            }
        }
    };
    (bottom + 38.0, content)
}

/// A cross about this place.
fn cross(x: f64, y: f64) -> String {
    let [left, right, top, bottom] = [x - 5.0, x + 5.0, y - 5.0, y + 5.0].map(px);
    format!("M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}")
}

/// The bar of a view: in it its round, and why it failed, as far as there is room.
fn bar(story: &Story, view: &ViewLead, x: &TimeAxis, (row, high): (f64, f64)) -> Markup {
    let (from, to) = (x.at(view.from), x.at(view.to));
    let round = format!("round {}", view.round);
    let failed = (view.result == "nullified").then(|| story.reason(view.view));
    // The row names the lead.
    let told = failed.flatten().map(|reason| {
        let what = reason.strip_prefix(view.lead.as_str()).unwrap_or(reason);
        format!("{round}: {}", what.trim_start())
    });
    let fits = |text: &String| text.chars().count() as f64 * LETTER < to - from - 8.0;
    let text = told.into_iter().chain([round]).find(fits);
    let text = text.filter(|_| high > 20.0);
    html! {
        rect class={ "view " (class(view)) } x=(from) y=(px(row + 3.0)) rx="2"
            width=(px((to - from).max(2.5))) height=(high - 6.0) {
            title {
                "view " (view.view) ", round " (view.round) ", led by " (view.lead) ": "
                (terminal::ending(story, view))
            }
        }
        @if let Some(text) = text {
            text class={ "within " (class(view)) } x=(px((from + to) / 2.0)) y=(px(row + high / 2.0 + 4.0))
                text-anchor="middle" pointer-events="none" { (text) }
        }
    }
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
    let stops = story.stops.iter();
    let stops: Vec<f64> = stops
        .flat_map(|stop| [Some(stop.at), stop.back])
        .flatten()
        .collect();
    TimeAxis::new(&views, &stops, (end, waiting), ends)
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
            rect class=(class) x="1" y="1" width="12" height="12" rx="2" {}
        } }
    };
    html! {
        ul.legend.inline { @for (class, text) in MEANINGS { li { (box_of(class)) (text) } } }
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
    fn a_file_of_its_own_has_colours_and_marks_who_was_stopped() {
        let mut story = fixture::story(4, 1, 3);
        story.stops = vec![StoppedMember {
            at: 0.1,
            member: 1,
            back: None,
        }];
        let file = leads_svg(&story);
        assert_eq!(file.matches("<path class=\"killed\"").count(), 1);
        assert!(file.contains("the lead was silent"), "{file}");
        assert!(!file.contains("var(") && !file.contains("NaN"), "{file}");
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
