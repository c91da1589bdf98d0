//! The status as lines of text, for `rota status`.

use std::time::Duration;

use super::Status;
use super::document::{PeerStatus, RoundStatus};
use formatting::numbers::{bytes, count, plain};

/// All lines, with a line break at the end.
pub fn text(status: &Status) -> String {
    let mut lines = vec![
        format!(
            "{} in the federation {} ({}), {} members",
            status.silo,
            status.federation.name,
            short(&status.federation.id),
            status.federation.members
        ),
        String::new(),
    ];
    learning(status, &mut lines);
    node(status, &mut lines);
    lines.push(String::new());
    members(status, &mut lines);
    if !status.learned.is_empty() {
        lines.push(String::new());
        lines.push("Disclosed to others:".to_owned());
        lines.extend(status.learned.iter().map(|said| format!("  {said}")));
    }
    if !status.warnings.is_empty() {
        lines.push(String::new());
        lines.push("Warnings:".to_owned());
        let warning = status.warnings.iter();
        lines.extend(warning.map(|warning| format!("  {}  {}", warning.time, warning.text)));
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(plain(&line).trim_end());
        text.push('\n');
    }
    text
}

/// Adds the lines about the round under way and the last one that was adopted.
fn learning(status: &Status, lines: &mut Vec<String>) {
    lines.push(row("round", &position(status)));
    if !status.complete {
        lines.push(row("phase", &phase(status)));
    }
    if let Some(waiting) = &status.waiting {
        lines.push(row("takes part", &format!("no: {waiting}")));
    }
    if let Some(said) = &status.void_sums {
        lines.push(row("void sums", said));
    }
    if let Some(ledger) = &status.ledger {
        lines.push(row("ledger", &ledger.text()));
    }
    if let Some(why) = &status.ledger_problem {
        lines.push(row("ledger", &format!("unknown: {why}")));
    }
    let adopted = status
        .adopted()
        .map_or_else(|| "no round yet".to_owned(), |round| adopted(status, round));
    lines.push(row("adopted", &adopted));
    if let Some(there) = status.adopted().and_then(there) {
        lines.push(row("models of", &there));
    }
    if let Some(spent) = status.adopted().and_then(|round| round.spent.as_ref()) {
        lines.push(row("it took", &spent.text()));
    }
    let serves = status.serves.as_ref();
    if let Some((round, held_out)) = status.measured() {
        let which = match serves.is_some_and(|serves| !serves.adopted) {
            true => "the adopted model, not the served one, of ",
            false => "",
        };
        lines.push(row(
            "own rows",
            &format!("{} ({which}round {})", held_out.text(), round.round),
        ));
    }
    lines.extend(serves.map(|serves| row("serves", &serves.text())));
}

/// Adds the lines about the process, its disk and its traffic.
fn node(status: &Status, lines: &mut Vec<String>) {
    let since = ago(status, &status.node.started);
    lines.push(row(
        "node",
        &format!(
            "rota {}, process {}, started {since} ago",
            status.node.version, status.node.pid
        ),
    ));
    lines.push(row("listens at", &status.node.addresses.join(", ")));
    if let Some(http) = &status.node.http {
        lines.push(row("page", http));
    }
    if let Some(free) = status.node.free {
        lines.push(row("disk", &format!("{} free", bytes(free))));
    }
    let traffic = &status.traffic;
    lines.push(row(
        "traffic",
        &format!(
            "{} messages received, {} sent; {} of models fetched",
            count(traffic.received),
            count(traffic.sent + traffic.published),
            bytes(traffic.fetched_bytes)
        ),
    ));
}

/// Adds the lines about the connections to the other members.
fn members(status: &Status, lines: &mut Vec<String>) {
    lines.push(format!(
        "Members: {} of {} others are connected, and a round needs {}",
        status.connected(),
        status.peers.len(),
        status.federation.quorum.saturating_sub(1)
    ));
    let width = status.peers.iter().map(|peer| peer.name.chars().count());
    let width = width.max().unwrap_or(0);
    for peer in &status.peers {
        let name = &peer.name;
        lines.push(format!("  {name:width$}  {}", state(status, peer)));
    }
}

fn row(name: &str, value: &str) -> String {
    format!("{name:<11} {value}")
}

/// `3 of 7, view 4, lead west`.
pub(super) fn position(status: &Status) -> String {
    let rounds = status.federation.rounds;
    if status.complete {
        return format!("all {rounds} rounds are done");
    }
    let lead = match &status.lead {
        _ if status.leads => ", this silo leads".to_owned(),
        Some(lead) => format!(", lead {lead}"),
        None => String::new(),
    };
    format!(
        "{} of {rounds}, view {}{lead}",
        status.round.min(rounds),
        status.view
    )
}

/// `training, step 450 of 1,000, loss 0.5912`.
pub(super) fn phase(status: &Status) -> String {
    match &status.training {
        Some(training) if training.running => {
            if training.steps == 0 {
                return format!("{}, no step yet", status.phase);
            }
            let loss = training.loss.map(|loss| format!(", loss {loss:.4}"));
            format!(
                "{}, step {} of {}{}",
                status.phase,
                count(training.step),
                count(training.steps),
                loss.unwrap_or_default()
            )
        }
        _ => status.phase.clone(),
    }
}

/// `round 2, coalition 1 of 2, 1m 30s ago`.
pub(super) fn adopted(status: &Status, round: &RoundStatus) -> String {
    format!(
        "round {}, coalition {} of {}, {} ago",
        round.round,
        round.coalition + 1,
        round.coalitions,
        ago(status, &round.time)
    )
}

/// `south, east and 3 more`: whose models are in a round; `None` where that is not known.
fn there(round: &RoundStatus) -> Option<String> {
    const NAMED: usize = 8;
    let authors = &round.authors;
    let named = authors[..authors.len().min(NAMED)].join(", ");
    let more = match authors.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!authors.is_empty()).then(|| format!("{named}{more}"))
}

/// `connected for 2m 28s, round trip 12.5 ms`.
pub(super) fn state(status: &Status, peer: &PeerStatus) -> String {
    let since = peer.since.as_deref().map(|since| ago(status, since));
    let done = if peer.complete {
        ", holds the last round"
    } else {
        ""
    };
    if peer.connected {
        let lasting = since.map_or(String::new(), |since| format!(" for {since}"));
        let trip = round_trip(peer).map_or(String::new(), |trip| format!(", round trip {trip}"));
        return format!("connected{}{lasting}{trip}{done}", through(peer));
    }
    let lasting = since.map_or(String::new(), |since| format!(" for {since}"));
    match &peer.problem {
        Some(problem) => format!("not connected{lasting}: {} {problem}{done}", peer.name),
        None => format!("not connected yet{done}"),
    }
}

/// ` through west`, of a connection that another member relays.
pub(super) fn through(peer: &PeerStatus) -> String {
    let relay = peer.through.as_ref();
    relay.map_or_else(String::new, |relay| format!(" through {relay}"))
}

/// `12.5 ms`.
pub(super) fn round_trip(peer: &PeerStatus) -> Option<String> {
    peer.round_trip_ms.map(|trip| {
        if trip < 10.0 {
            format!("{trip:.2} ms")
        } else {
            format!("{trip:.1} ms")
        }
    })
}

/// The time since one of the document's times: `1m 30s`.
pub(super) fn ago(status: &Status, time: &str) -> String {
    status
        .since(time)
        .map_or_else(|| "an unknown time".to_owned(), span)
}

/// A span of time in whole seconds: `2h 3m 12s`.
pub(crate) fn span(span: Duration) -> String {
    let whole = Duration::from_secs(span.as_secs());
    humantime::format_duration(whole).to_string()
}

/// The first eight digits of an id.
pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::fixture;

    #[test]
    fn a_ledger_that_cannot_be_read_is_shown_with_the_reason() {
        let mut status = fixture::status();
        status.ledger_problem = Some("the ledger rows.ledger is locked by another process".into());
        let text = text(&status);
        assert!(
            text.contains(
                "ledger      unknown: the ledger rows.ledger is locked by another process"
            ),
            "{text}"
        );
    }

    #[test]
    fn the_text_distinguishes_the_served_model_from_the_adopted_one() {
        let said = text(&fixture::done());
        for line in [
            "own rows    mae 47.11 points on 48 held-out rows (the adopted model, not the served one, of round 3)",
            "serves      the model that it trains alone, mae 41.25 points on 48 held-out rows",
        ] {
            assert!(said.lines().any(|own| own == line), "{line}\n{said}");
        }
        assert!(!text(&fixture::status()).contains("serves"));
    }

    #[test]
    fn the_text_names_round_phase_metrics_and_members() {
        let expected = "\
north in the federation stays (76ea7cfc), 4 members

round       3 of 3, view 4, lead west <coast>
phase       training, step 450 of 1,000, loss 0.5912
adopted     round 2, coalition 1 of 2, 30s ago
models of   north, south, east, west <coast>
it took     40.5 s: waiting for others 31.5 s, training 8.5 s
own rows    mae 48.67 points on 48 held-out rows (round 2)
node        rota 0.1.0, process 4711, started 2m 30s ago
listens at  /ip4/0.0.0.0/udp/4001/quic-v1
page        http://127.0.0.1:9600/
disk        120.0 GB free
traffic     1,234 messages received, 366 sent; 120.0 kB of models fetched

Members: 2 of 3 others are connected, and a round needs 2
  south         connected for 2m 28s, round trip 12.5 ms
  east          not connected for 1m 15s: east at 192.0.2.3:4001 does not answer over UDP
  west <coast>  connected through south for 2m 28s, round trip 37.5 ms

Warnings:
  2026-03-01T10:01:20.000Z  east at 192.0.2.3:4001 does not answer over UDP
";
        assert_eq!(text(&fixture::status()), expected);
    }

    #[test]
    fn a_node_that_takes_no_part_or_is_done_states_so() {
        let mut status = fixture::status();
        status.waiting = Some("only listening: the journal was lost\u{1b}".into());
        let said = text(&status);
        assert!(
            said.contains("takes part  no: only listening: the journal was lost\u{fffd}\n"),
            "{said}"
        );
        status.complete = true;
        status.void_sums = Some("Sums were void in 1 round".into());
        let said = text(&status);
        assert!(
            said.contains("round       all 3 rounds are done\n"),
            "{said}"
        );
        assert!(
            said.contains("void sums   Sums were void in 1 round\n"),
            "{said}"
        );
    }
}
