//! The HTML page: one file that loads nothing and runs no script.

use super::story::Story;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::comparison::Comparison;
use super::{agreement, curves, graph, numbers, palette, table, timeline, traffic};

const STYLE: &str = include_str!("style.css");

/// The report of a federation as one HTML document; `command` runs the same again.
pub fn page(story: &Story, command: &str) -> String {
    let comparison = Comparison::of(story);
    let title = format!("{} · federation report", story.scenario);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Even if a name in the data holds HTML, the browser loads nothing and runs no script.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (title) }
                style { (PreEscaped(palette::variables())) (PreEscaped(STYLE)) }
            }
            body { main {
                header {
                    p.kicker { "Rota · federation report" }
                    h1 { (story.scenario) }
                    p.lead { (story.description) }
                    p.muted { "Strategy " (story.strategy) ", seed " (story.seed) }
                }
                (cards(story))
                (table::section(story, &comparison))
                (graph::section(story))
                (curves::section(story))
                (timeline::section(story))
                (traffic::section(story))
                (agreement::sections(story, command))
            } }
        }
    }
    .into_string()
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
        (failed.to_string(), "views that failed"),
        (numbers::bytes(story.sent.0 + story.sent.1), "sent"),
        (numbers::seconds(story.seconds), "on this machine"),
    ];
    let cards = cards.into_iter().chain(story.virtual_seconds.map(lasted));
    html! {
        ul.cards { @for (value, label) in cards { li { b { (value) } span { (label) } } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn the_page_loads_nothing_and_runs_no_script() {
        for silos in [1, 8, 100] {
            let page = page(&fixture::story(silos, 2.min(silos), 5), "rota simulate");
            for outside in [
                "http://", "https://", "url(h", "url('", "url(\"", "@import", "<script", " src=",
                " href=",
            ] {
                assert!(!page.contains(outside), "{outside}");
            }
        }
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
        for view in &mut story.views {
            view.lead = evil.into();
            view.reason = Some(evil.into());
        }
        for round in &mut story.rounds {
            round
                .coalitions
                .iter_mut()
                .for_each(|members| members[0] = evil.into());
        }
        let page = page(&story, evil);
        assert!(!page.contains("<script"));
        assert!(page.matches("&lt;script&gt;").count() > 20);
    }

    #[test]
    fn an_unfinished_federation_has_a_page() {
        let mut story = fixture::story(2, 1, 1);
        story.rounds.clear();
        story.views.clear();
        story.silos.clear();
        let page = page(&story, "rota simulate");
        assert!(page.contains("No coalition was formed.") && page.ends_with("</html>"));
    }
}
