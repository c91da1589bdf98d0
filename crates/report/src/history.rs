//! The history of a real federation, put together from the logs of its nodes, as text and as one HTML
//! page.

use std::io::{self, Write};

use maud::{Markup, html};

use super::lab::chart::{ChartLine, chart};
use super::lab::timelines::{Strip, key, strips_drawn};
use super::page::document;
use super::{download, numbers};
use lab::history::{History, PrivacySaid};

/// Of a report with noise.
const OWN: &str = "This report and the lines it is made of have exact results on this institution's own rows, which \
                   epsilon does not cover: they are for this institution alone.";

/// Writes the history as text.
///
/// # Errors
/// The error of the writer, for instance a closed pipe.
pub fn write(out: &mut impl Write, history: &History) -> io::Result<()> {
    let federation = history.federation.get(..16).unwrap_or(&history.federation);
    writeln!(
        out,
        "{}federation {federation}, from {} on: {} in {}, {} failed",
        match &history.federation_name[..] {
            "" => String::new(),
            name => format!("{}: ", numbers::plain(name)),
        },
        numbers::plain(&history.began),
        numbers::plural(history.rounds.len(), "final round"),
        numbers::seconds(history.seconds),
        numbers::plural(history.failed(), "view"),
    )?;
    for log in &history.logs {
        let skipped = match log.skipped {
            0 => String::new(),
            skipped => format!(", {} skipped", numbers::plural(skipped, "other line")),
        };
        writeln!(
            out,
            "  {}: {} of {}, {}{skipped}",
            numbers::plain(&log.file),
            numbers::plural(log.lines, "line"),
            numbers::plain(&log.silo),
            numbers::plural(log.starts, "start"),
        )?;
    }
    writeln!(out, "\nrounds led")?;
    for (silo, led) in history.led().into_iter().enumerate() {
        writeln!(out, "  {:<24} {led:>5}", numbers::plain(history.name(silo)))?;
    }
    if !history.take_overs.is_empty() {
        writeln!(out, "\nleads that stopped")?;
    }
    for one in &history.take_overs {
        let (at, lead) = (
            numbers::seconds(one.at),
            numbers::plain(history.name(one.lead)),
        );
        let after = match (one.next, one.seconds) {
            (Some(next), Some(seconds)) => {
                let next = numbers::plain(history.name(next));
                format!("{next} took over after {}", numbers::seconds(seconds))
            }
            _ => "nobody took over before the logs end".into(),
        };
        writeln!(out, "  after {at}: {lead}, in round {}; {after}", one.round)?;
    }
    let Some(privacy) = &history.privacy else {
        return Ok(());
    };
    if privacy.noised {
        writeln!(out, "\nfor this institution alone")?;
        writeln!(out, "{}", wrapped(OWN))?;
    }
    let disclosed = format!("disclosed to others, by {}", numbers::plain(&privacy.by));
    for (title, said) in [
        (&*disclosed, &privacy.learned),
        ("for the data protection officer", &privacy.officer),
    ] {
        if !said.is_empty() {
            writeln!(out, "\n{title}")?;
        }
        for sentence in said {
            writeln!(out, "{}", wrapped(&numbers::plain(sentence)))?;
        }
    }
    Ok(())
}

/// A sentence over as many lines as it needs.
fn wrapped(sentence: &str) -> String {
    let options = textwrap::Options::new(100)
        .initial_indent("  ")
        .subsequent_indent("    ")
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(sentence, options)
}

/// The history as one HTML document.
pub fn page(history: &History, date: &str) -> String {
    let called = numbers::plain(&history.title());
    let title = format!("{called} · history");
    document(
        &title,
        html! {
            header {
                p.kicker { "Rota · history of a federation" }
                h1 { (called) }
                p.muted {
                    "Federation " code { (history.federation) } ". From the logs of " (numbers::plural(history.logs.len(), "node")) ", from "
                    (history.began) " on"
                    @if !date.is_empty() { "; made " (date) }
                }
            }
            (cards(history))
            (timeline(history))
            (take_overs(history))
            (metrics(history))
            (rounds(history))
            (privacy(history))
            (logs(history))
        },
    )
}

/// Returns what others learn of an institution, and what its officer may want to file.
fn privacy(history: &History) -> Markup {
    let Some(PrivacySaid {
        by,
        learned,
        officer,
        noised,
    }) = &history.privacy
    else {
        return html! {};
    };
    html! {
        section {
            h2 { "Privacy" }
            @if *noised { p { strong { (OWN) } } }
            @if !learned.is_empty() {
                h3 { "Disclosed to others, by " (numbers::plain(by)) }
                ul { @for said in learned { li { (numbers::plain(said)) } } }
            }
            h3 { "For the data protection officer" }
            p { (numbers::plain(&officer.join(" "))) }
        }
    }
}

fn cards(history: &History) -> Markup {
    let cards = [
        (history.silos.len().to_string(), "silos"),
        (history.rounds.len().to_string(), "final rounds"),
        (history.failed().to_string(), "views that failed"),
        (history.stops.len().to_string(), "stops of nodes"),
        (
            numbers::seconds(history.seconds),
            "from the first to the last line",
        ),
    ];
    html! { ul.cards { @for (value, label) in cards { li { b { (value) } span { (label) } } } } }
}

fn timeline(history: &History) -> Markup {
    let strip = Strip {
        labels: [
            "views".into(),
            numbers::plural(history.rounds.len(), "final round"),
        ],
        views: &history.views,
        stops: &history.stops,
    };
    let rows = history.views.iter().map(|view| {
        [
            view.view.to_string(),
            view.round.to_string(),
            history.name(view.lead).to_owned(),
            view.from.to_string(),
            view.to.to_string(),
            view.result.to_owned(),
        ]
    });
    let csv = download::csv(&["view", "round", "lead", "from", "to", "result"], rows);
    html! {
        section {
            h2 { "Who led when" }
            p.note {
                "Each silo has a lane, in the order of names. A bar is a view in the lane of its lead, from \
                 the first node that entered it to the first that entered the next; grey is the time in \
                 which a node was down. Times are those of the nodes' own clocks."
            }
            figure {
                (strips_drawn(&history.silos, &[strip]))
                (key())
                (download::plot("views", &csv))
            }
            h3 { "Rounds led" }
            table.stuck {
                thead { tr { th scope="col" { "silo" } th.number scope="col" { "rounds" } } }
                tbody { @for (silo, led) in history.led().into_iter().enumerate() { tr {
                    th scope="row" { (history.name(silo)) } td.number { (led) }
                } } }
            }
        }
    }
}

fn take_overs(history: &History) -> Markup {
    html! {
        section {
            h2 { "Leads that stopped" }
            @if history.take_overs.is_empty() { p { "None." } } @else {
                p.note {
                    "A node stopped with its last line, or ten seconds before another one lost its connection \
                     to it, whichever is later: a connection counts as lost after ten seconds without an \
                     answer. Taken over: when nodes entered the view of the next lead that finished a \
                     round."
                }
                div.scroll tabindex="0" role="region" aria-label="Leads that stopped" {
                    table.tight {
                        thead { tr {
                            th.number scope="col" { "at" } th scope="col" { "lead" }
                            th.number scope="col" { "round" } th scope="col" { "taken over by" }
                            th.number scope="col" { "after" } th.number scope="col" { "next final round after" }
                        } }
                        tbody { @for one in &history.take_overs { tr {
                            td.number { (numbers::seconds(one.at)) }
                            th scope="row" { (history.name(one.lead)) }
                            td.number { (one.round) }
                            td { (one.next.map_or("nobody", |next| history.name(next))) }
                            td.number { (span(one.seconds)) }
                            td.number { (span(one.stalled)) }
                        } } }
                    }
                }
            }
        }
    }
}

fn span(span: Option<f64>) -> String {
    span.map_or_else(|| "never".into(), numbers::seconds)
}

/// Held-out metrics by round, if nodes printed any.
fn metrics(history: &History) -> Markup {
    let Some(name) = history.metrics.first().map(|metric| metric.name.clone()) else {
        return html! {};
    };
    let line = |silo: usize| {
        let of = history.metrics.iter();
        let of = of.filter(|metric| metric.silo == silo && metric.name == name);
        ChartLine {
            name: history.name(silo).to_owned(),
            points: of
                .map(|metric| (metric.round as f64, metric.value))
                .collect(),
        }
    };
    let lines = (0..history.silos.len()).map(line);
    let lines: Vec<ChartLine> = lines.filter(|line| !line.points.is_empty()).collect();
    html! {
        section {
            h2 { "Held-out results" }
            p.note { "The model of each round on the silo's own held-out rows, as its node printed it." }
            div.half {
                (chart(&format!("Held-out {name} by round"), "held-out", ("round", &name), &lines))
            }
        }
    }
}

fn rounds(history: &History) -> Markup {
    html! {
        section {
            h2 { "Final rounds" }
            div.scroll.tall tabindex="0" role="region" aria-label="Final rounds" {
                table.tight {
                    thead { tr {
                        th.number scope="col" { "round" } th.number scope="col" { "view" }
                        th scope="col" { "lead" } th.number scope="col" { "final at" }
                        th.number scope="col" { "contributions" }
                    } }
                    tbody { @for round in &history.rounds { tr {
                        td.number { (round.round) }
                        td.number { (round.view) }
                        th scope="row" { (history.name(round.lead)) }
                        td.number { (numbers::seconds(round.at)) }
                        td.number { (round.authors) }
                    } } }
                }
            }
        }
    }
}

fn logs(history: &History) -> Markup {
    html! {
        section {
            h2 { "Logs" }
            div.scroll tabindex="0" role="region" aria-label="Logs" {
                table.tight {
                    thead { tr {
                        th scope="col" { "file" } th scope="col" { "silo" } th.number scope="col" { "lines" }
                        th.number scope="col" { "other lines" } th.number scope="col" { "starts" }
                        th.number scope="col" { "CPU time" }
                    } }
                    tbody { @for log in &history.logs { tr {
                        th scope="row" { (log.file) } td { (log.silo) } td.number { (log.lines) }
                        td.number { (log.skipped) } td.number { (log.starts) }
                        td.number { (log.cpu_seconds.map_or_else(String::new, numbers::seconds)) }
                    } } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(name: &str) -> History {
        History {
            federation: "76ea7cfc".repeat(8),
            federation_name: name.into(),
            began: "2026-03-01T10:00:00.000Z".into(),
            seconds: 1.0,
            silos: vec!["north".into()],
            logs: Vec::new(),
            rounds: Vec::new(),
            views: Vec::new(),
            stops: Vec::new(),
            take_overs: Vec::new(),
            metrics: Vec::new(),
            privacy: None,
        }
    }

    #[test]
    fn a_history_has_its_name_or_its_id_where_logs_have_no_name() {
        let named = page(&history("stays <b>"), "");
        assert!(
            named.contains("<title>stays &lt;b&gt; · history</title>"),
            "{named}"
        );
        assert!(named.contains("<h1>stays &lt;b&gt;</h1>"), "{named}");
        assert!(named.contains(&"76ea7cfc".repeat(8)), "{named}");
        let earlier = page(&history(""), "");
        assert!(
            earlier.contains("<h1>Federation 76ea7cfc76ea7cfc</h1>"),
            "{earlier}"
        );
        let mut text = Vec::new();
        assert!(write(&mut text, &history("stays")).is_ok());
        assert!(text.starts_with(b"stays: federation 76ea7cfc"));
    }
}
