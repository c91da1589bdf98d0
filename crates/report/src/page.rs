//! The HTML page: one file that loads nothing. Its one script sorts tables, names lines and saves
//! plots; without it the page is complete.

use super::story::Story;
use maud::{Markup, html};

use super::comparison::ComparisonTable;
use super::{
    agreement, classes, curves, graph, many, numbers, pictures, program_metrics, settings, table,
    timeline, traffic,
};

/// The report of a federation as one HTML document. `command` runs the same again; `date` is that of
/// the run, for people, or empty.
pub fn page(story: &Story, command: &str, date: &str) -> String {
    let comparison = ComparisonTable::of(story);
    let title = format!("{} · federation report", story.scenario);
    document(
        &title,
        html! {
            header {
                p.kicker { "Rota · federation report" }
                h1 { (story.scenario) }
                p.lead { (story.description) }
                p.muted {
                    "Strategy " (story.strategy) ", seed " (story.seed)
                    @if !date.is_empty() { ", " (date) }
                }
            }
            // First who gains, in a sentence and its drawing; then what happened.
            (many::section(story, &comparison))
            (table::section(story, &comparison))
            (cards(story))
            (classes::section(story))
            (program_metrics::section(story))
            (graph::section(story))
            (pictures::sections(story))
            (curves::section(story))
            @if !story.is_direct() { (timeline::section(story)) }
            @if let Some(sent) = story.sent() { (traffic::section(story, sent)) }
            (settings::section(story, date))
            (agreement::sections(story, command))
        },
    )
}

/// An HTML document with this title and content, and all that it needs.
pub(super) fn document(title: &str, content: Markup) -> String {
    formatting::page::document(title, timeline::STYLE, content)
}

fn cards(story: &Story) -> Markup {
    let failed = story.hand_overs().count();
    let lasted = |virtual_seconds| (numbers::seconds(virtual_seconds), "of virtual time");
    let cards = [
        (story.silos.len().to_string(), "silos"),
        (story.rounds.len().to_string(), "rounds"),
        (
            story.last_coalitions().len().to_string(),
            "coalitions at the end",
        ),
    ];
    let views = (failed.to_string(), "views that failed");
    let sent = |(messages, blobs): (u64, u64)| (numbers::bytes(messages + blobs), "sent");
    let cards = cards
        .into_iter()
        .chain((!story.is_direct()).then_some(views))
        .chain(story.sent().map(sent))
        .chain([(numbers::seconds(story.seconds), "on this machine")])
        .chain(story.virtual_seconds.map(lasted));
    html! {
        ul.cards { @for (value, label) in cards { li { b { (value) } span { (label) } } } }
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;
    use formatting::page::{SCRIPT, STYLE, policy};
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::fixture;

    #[test]
    fn a_page_has_a_colour_for_every_variable_it_uses() {
        let style = STYLE.to_owned() + timeline::STYLE;
        let colours = crate::palette::variables();
        for used in style.split("var(--").skip(1) {
            let name = used.split(')').next().unwrap_or_default();
            let known = colours.contains(&format!("--{name}: "));
            // `k` is set by a class for its children, `share` by a cell of a table.
            assert!(known || ["k", "share"].contains(&name), "{name}");
        }
    }

    #[test]
    fn the_page_loads_nothing_and_runs_its_own_script_only() {
        for silos in [1, 8, 100] {
            let page = page(&fixture::story(silos, 2.min(silos), 5), "rota simulate", "");
            for outside in [
                "http://",
                "https://",
                "url(h",
                "url('",
                "url(\"",
                "@import",
                "<script ",
                " src=",
                "javascript:",
                " onclick",
            ] {
                assert!(!page.contains(outside), "{outside}");
            }
            let links = page.matches(" href=").count();
            assert_eq!(links, page.matches(" href=\"data:text/csv;").count());
            assert_eq!(page.matches("<script>").count(), 1);
            let text = page.split("<script>").nth(1).unwrap_or_default();
            let text = text.split("</script>").next().unwrap_or_default();
            let hash = BASE64.encode(&Sha256::digest(SCRIPT));
            assert_eq!(text, SCRIPT);
            assert!(
                page.contains(&format!("script-src 'sha256-{hash}'")),
                "{}",
                policy()
            );
        }
    }

    #[test]
    fn on_paper_the_page_is_upright_and_nothing_is_folded_or_cut() {
        let (_, print) = STYLE.split_once("@page").unwrap_or_default();
        for rule in [
            " portrait;",
            // Headings stay with what they head, rows and drawings are whole.
            "h1, h2, h3, figcaption, summary, .kicker { break-after: avoid; }",
            "tr, p, pre, figure, .cards li, .legend li, .result li { break-inside: avoid; }",
            ".fold::details-content { content-visibility: visible; display: block; }",
            ".scroll { overflow: visible;",
            "svg { min-width: 0 !important; }",
            "pre { white-space: pre-wrap;",
        ] {
            assert!(print.contains(rule), "{rule} in {print}");
        }
        let page = page(&fixture::story(8, 2, 5), "rota simulate", "");
        assert!(page.contains(STYLE) && page.contains("<details class=\"fold\">"));
    }

    #[test]
    fn the_result_and_its_drawing_come_before_all_else() {
        for silos in [3, 300] {
            let story = fixture::story(silos, 2, 5);
            let page = page(&story, "rota simulate", "");
            let said = crate::verdict::statements(&story, &ComparisonTable::of(&story));
            let at = |what: &str| page.find(what).unwrap_or(usize::MAX);
            let (head, result) = (at("</header>"), at(&said[0]));
            assert!(
                head < result && result < at("<svg class=\"dots\""),
                "{silos}"
            );
            assert!(
                at("<svg class=\"dots\"") < at("<ul class=\"cards\">"),
                "{silos}"
            );
            assert!(at("<ul class=\"cards\">") < usize::MAX);
            let before = &page[head..result];
            for other in ["<svg", "<table", "<ul", "<h2"] {
                let times = usize::from(other == "<h2");
                assert_eq!(before.matches(other).count(), times, "{other}: {before}");
            }
        }
    }

    #[test]
    fn every_plot_can_be_saved_as_a_drawing_and_as_data() {
        let page = page(&fixture::story(8, 2, 5), "rota simulate", "");
        for name in ["coalitions", "loss-by-round", "mae-by-round", "views"] {
            for file in [
                format!("data-svg=\"diabetes-{name}.svg\""),
                format!("download=\"diabetes-{name}.csv\""),
            ] {
                assert_eq!(page.matches(&file).count(), 1, "{file}");
            }
        }
    }

    #[test]
    fn only_the_date_differs_between_two_pages_of_one_story() {
        let story = fixture::story(8, 2, 5);
        let first = page(&story, "rota simulate", "2026-01-02 03:04 UTC");
        let second = page(&story, "rota simulate", "2026-05-06 07:08 UTC");
        assert_ne!(first, second);
        assert_eq!(
            first,
            second.replace("2026-05-06 07:08 UTC", "2026-01-02 03:04 UTC")
        );
    }

    #[test]
    fn names_and_reasons_are_escaped_everywhere() {
        let mut story = fixture::story(3, 1, 3);
        let evil = "<script>\"&'";
        story.scenario = evil.into();
        story.description = evil.into();
        story.strategy = evil.into();
        story.metric.name = evil.into();
        story.metric.unit = evil.into();
        story.facts.push(("trace", evil.into()));
        story.refused[0].reason = evil.into();
        story.refused[0].member = evil.into();
        story.faults[0].charge = evil.into();
        story.left_out[0].reason = evil.into();
        story.silos[0].name = evil.into();
        for view in &mut story.timeline {
            view.lead = evil.into();
        }
        for vote in &mut story.nullified {
            vote.reason = evil.into();
        }
        for round in &mut story.rounds {
            round
                .coalitions
                .iter_mut()
                .for_each(|members| members[0] = evil.into());
        }
        let page = page(&story, evil, evil);
        assert_eq!(page.matches("<script").count(), 1);
        assert!(page.matches("&lt;script&gt;").count() > 20);
    }

    #[test]
    fn an_unfinished_federation_has_a_page() {
        let mut story = fixture::story(2, 1, 1);
        story.rounds.clear();
        story.timeline.clear();
        story.silos.clear();
        let page = page(&story, "rota simulate", "");
        assert!(page.contains("No coalition was formed.") && page.ends_with("</html>"));
    }
}
