//! The status as an HTML page that loads itself again every few seconds, without scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Status;
use super::curve::curve;
use super::document::{PeerStatus, RoundStatus};
use super::text::{adopted, ago, phase, round_trip, short, through};
use formatting::numbers::{bytes, count, decimals, plain, value};
use formatting::palette;

/// Seconds after which the page loads itself again.
const AGAIN: u32 = 3;
const STYLE: &str = include_str!("page.css");

/// The page.
pub fn page(status: &Status) -> String {
    let title = format!(
        "{} · {}",
        plain(&status.silo),
        plain(&status.federation.name)
    );
    let body = html! {
        header {
            p.kicker { "Node of " (plain(&status.federation.name)) " (" (short(&status.federation.id)) ")" }
            h1 { (plain(&status.silo)) }
            (sentence(status))
        }
        (cards(status))
        @if let Some(training) = &status.training {
            section aria-label="Training" {
                h2 { "Training" }
                progress max=(training.steps.max(1)) value=(training.step) {}
                p.note {
                    @if training.steps == 0 { "No step yet" } @else {
                        "Step " (count(training.step)) " of " (count(training.steps))
                    }
                    @if let Some(loss) = training.loss { ", loss " (format!("{loss:.4}")) }
                    @if !training.running { " (last training)" }
                }
            }
        }
        section { h2 { "Members" } (members(status)) }
        section { h2 { "Rounds" } (rounds(status)) }
        @if !status.learned.is_empty() {
            section {
                h2 { "Disclosed to others" }
                ul { @for said in &status.learned { li { (plain(said)) } } }
            }
        }
        @if !status.warnings.is_empty() {
            section {
                h2 { "Warnings" }
                ul.warnings {
                    @for warning in status.warnings.iter().rev() {
                        li { time { (moment(&warning.time)) } " " (plain(&warning.text)) }
                    }
                }
            }
        }
        footer { (footer(status)) }
    };
    whole(&title, AGAIN, body)
}

/// A page of the node with its style, which loads itself again after so many seconds.
pub(super) fn whole(title: &str, again: u32, body: Markup) -> String {
    let style = format!("{}{STYLE}", palette::variables());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="refresh" content=(again);
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { main { (body) } }
        }
    };
    page.into_string()
}

fn sentence(status: &Status) -> Markup {
    html! {
        @if let Some(waiting) = &status.waiting {
            p.lead.bad { "Not participating: " (plain(waiting)) }
        } @else {
            p.lead { (capital(&plain(&phase(status)))) }
        }
        @if let Some(said) = &status.void_sums {
            p.bad { (plain(said)) "." }
        }
    }
}

fn cards(status: &Status) -> Markup {
    let card = |name: &str, value: &str| {
        html! { li { span { (name) } b { (plain(value)) } } }
    };
    let rounds = status.federation.rounds;
    let members = format!("{} of {}", status.connected(), status.peers.len());
    // The served model may be another one than the adopted one.
    let serves = status.serves.as_ref();
    let measured = match serves {
        Some(serves) => serves
            .held_out
            .as_ref()
            .map(|held_out| ("Served model, ", held_out)),
        None => status.measured().map(|(_, held_out)| ("", held_out)),
    };
    let lead = if status.leads {
        "this silo"
    } else {
        status.lead.as_deref().unwrap_or("none yet")
    };
    html! {
        ul.cards {
            @if status.complete {
                (card("Rounds", &format!("{rounds} of {rounds}, done")))
            } @else {
                (card("Round", &format!("{} of {rounds}", status.round.min(rounds))))
                (card("View", &status.view.to_string()))
                (card("Lead", lead))
            }
            (card("Others connected", &members))
            @if let Some(round) = status.adopted() {
                (card("Coalition", &format!("{} of {}", round.coalition + 1, round.coalitions)))
            }
            @if let Some((which, held_out)) = measured {
                @let found = held_out.metrics.get(&held_out.metric);
                @let shown = found.map_or("not finite".to_owned(), |&found| value(found, decimals(found)));
                (card(&format!("{which}{} on {} own held-out rows", held_out.metric, held_out.rows), &shown))
            }
        }
    }
}

fn members(status: &Status) -> Markup {
    let needed = status.federation.quorum.saturating_sub(1);
    html! {
        p.note {
            (status.connected()) " of " (status.peers.len()) " other members are connected; a round needs "
            (needed) "."
        }
        div.scroll { table {
            thead { tr { th { "Member" } th { "State" } th.number { "Round trip" } th.number.wide { "For" } } }
            tbody {
                @for peer in &status.peers {
                    tr {
                        th scope="row" { (plain(&peer.name)) }
                        td { (state(peer)) }
                        td.number { (round_trip(peer).unwrap_or_default()) }
                        td.number.wide {
                            @if let Some(since) = &peer.since { (ago(status, since)) }
                        }
                    }
                }
            }
        } }
    }
}

fn state(peer: &PeerStatus) -> Markup {
    html! {
        @if peer.connected { span.good { "connected" (plain(&through(peer))) } }
        @else if let Some(problem) = &peer.problem {
            span.bad { "not connected" } ": " (plain(&peer.name)) " " (plain(problem))
        }
        @else { span.muted { "not connected yet" } }
        @if peer.complete { span.muted { ", holds the last round" } }
    }
}

fn rounds(status: &Status) -> Markup {
    let metric = status.measured().map(|(_, held_out)| held_out);
    let measured = |round: &RoundStatus| {
        let held_out = round.held_out.as_ref()?;
        let found = held_out.metrics.get(&held_out.metric);
        Some(found.map_or("not finite".to_owned(), |&found| {
            value(found, decimals(found))
        }))
    };
    html! {
        @if status.rounds.is_empty() {
            p.note { "No round is adopted yet." }
        } @else {
            @let last = &status.rounds[status.rounds.len() - 1];
            p.note {
                "The last: " (adopted(status, last)) "."
                @if let Some(spent) = &last.spent { " It took " (plain(&spent.text())) "." }
                @if let Some(serves) = &status.serves {
                    " It serves " (plain(&serves.text())) "; the table has the adopted models."
                }
            }
            (curve(status))
            div.scroll { table {
                thead { tr {
                    th.number { "Round" } th.wide { "Lead" } th.number.wide { "Models" } th { "Coalition" }
                    th.number { "Training loss" }
                    @if let Some(held_out) = metric {
                        th.number { (held_out.metric) " on " (held_out.rows) " own held-out rows" }
                    }
                    th.wide { "Adopted" }
                } }
                tbody {
                    @for round in status.rounds.iter().rev() {
                        tr {
                            td.number { (round.round) }
                            td.wide { (plain(round.lead.as_deref().unwrap_or_default())) }
                            td.number.wide { @if let Some(models) = round.models { (models) } }
                            td { (round.coalition + 1) " of " (round.coalitions) }
                            td.number { @if let Some(loss) = round.loss { (format!("{loss:.4}")) } }
                            @if metric.is_some() { td.number { (measured(round).unwrap_or_default()) } }
                            td.wide { (moment(&round.time)) }
                        }
                    }
                }
            } }
        }
    }
}

fn footer(status: &Status) -> Markup {
    let traffic = &status.traffic;
    html! {
        p.note {
            "As of " (moment(&status.time)) ". This page reloads every " (AGAIN) " seconds. rota "
            (status.node.version) ", process " (status.node.pid) ", started " (ago(status, &status.node.started))
            " ago, listens at " (plain(&status.node.addresses.join(", "))) ". "
            (count(traffic.received)) " messages received, " (count(traffic.sent + traffic.published))
            " sent, " (bytes(traffic.fetched_bytes)) " of models fetched. "
            @if let Some(free) = status.node.free { (bytes(free)) " of disk free. " }
            a href="/federation" { "All nodes" } " · " a href="/metrics" { "Metrics for Prometheus" }
        }
    }
}

/// A time of the document for people: `2026-03-01 10:02:30 UTC`.
pub(super) fn moment(time: &str) -> String {
    match time.split_once('T') {
        Some((day, clock)) => format!("{day} {} UTC", clock.get(..8).unwrap_or(clock)),
        None => plain(time),
    }
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::fixture;

    #[test]
    fn the_page_shows_the_document_and_escapes_names() {
        let said = page(&fixture::status());
        for text in [
            "<meta http-equiv=\"refresh\" content=\"3\">",
            "Training, step 450 of 1,000, loss 0.5912",
            "<progress max=\"1000\" value=\"450\">",
            "west &lt;coast&gt;",
            "east at 192.0.2.3:4001 does not answer over UDP",
            "mae on 48 own held-out rows",
            "48.67",
            "<svg class=\"curve\" role=\"img\"",
            "2026-03-01 10:01:20 UTC",
        ] {
            assert!(said.contains(text), "{text}\n{said}");
        }
        assert!(!said.contains("<coast>") && !said.contains("<script"));
        assert!(!said.contains("void"));
        let void_sums = Some("Sums of A & B were void".into());
        let said = page(&Status {
            void_sums,
            ..fixture::status()
        });
        assert!(
            said.contains("<p class=\"bad\">Sums of A &amp; B were void.</p>"),
            "{said}"
        );
    }

    #[test]
    fn the_page_counts_the_others_and_shows_the_served_model() {
        let said = page(&fixture::status());
        assert!(
            said.contains("<span>Others connected</span><b>2 of 3</b>"),
            "{said}"
        );
        assert!(
            said.contains("2 of 3 other members are connected"),
            "{said}"
        );
        let said = page(&fixture::done());
        for text in [
            "<span>Served model, mae on 48 own held-out rows</span><b>41.25</b>",
            "It serves the model that it trains alone, mae 41.25 points on 48 held-out rows; the table has",
        ] {
            assert!(said.contains(text), "{text}\n{said}");
        }
    }

    #[test]
    fn every_colour_of_the_page_is_defined() {
        let variables = palette::variables();
        for part in STYLE.split("var(").skip(1) {
            let name = part.split(')').next().unwrap_or_default();
            assert!(variables.contains(&format!("{name}: ")), "{name}");
        }
    }
}
