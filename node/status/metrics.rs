//! The status as metrics in the OpenMetrics text format, which Prometheus scrapes.
//!
//! A registry is made from the document for every scrape, so metrics and document cannot differ.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::Status;

/// The content type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A gauge for each value of one label.
type ByName = Family<[(&'static str, String); 1], Gauge<f64, std::sync::atomic::AtomicU64>>;

/// The metrics as text.
pub fn text(status: &Status) -> String {
    let mut registry = Registry::with_prefix("rota");
    node(status, &mut registry);
    learning(status, &mut registry);
    peers(status, &mut registry);
    traffic(status, &mut registry);
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => text,
        // Writing to a string does not fail.
        Err(error) => format!("# {error}\n# EOF\n"),
    }
}

fn node(status: &Status, registry: &mut Registry) {
    let facts = Info::new([
        ("version", status.node.version.clone()),
        ("silo", status.silo.clone()),
        ("federation", status.federation.name.clone()),
        ("federation_id", status.federation.id.clone()),
    ]);
    registry.register("node", "The program, the silo and its federation", facts);
    if let Ok(started) = humantime::parse_rfc3339(&status.node.started) {
        let since = started.duration_since(std::time::UNIX_EPOCH);
        let since = since.map_or(0.0, |since| since.as_secs_f64());
        let help = "Start of the node, in seconds since 1970";
        let seconds = Unit::Seconds;
        registry.register_with_unit("start_time", help, seconds, ConstGauge::new(since));
    }
    if let Some(free) = status.node.free {
        let help = "Free bytes on the disk of the state folder";
        let gauge = ConstGauge::new(free as f64);
        registry.register_with_unit("disk_free", help, Unit::Bytes, gauge);
    }
    let takes_part = f64::from(u8::from(status.waiting.is_none()));
    for (name, help, value) in [
        (
            "members",
            "Members of the federation",
            status.federation.members as f64,
        ),
        (
            "rounds",
            "Agreed number of rounds",
            status.federation.rounds as f64,
        ),
        ("round", "Round under way", status.round as f64),
        ("view", "View under way", status.view as f64),
        (
            "is_lead",
            "1 while this silo leads",
            f64::from(u8::from(status.leads)),
        ),
        ("participating", "1 while this silo takes part", takes_part),
        (
            "complete",
            "1 when all agreed rounds are done",
            f64::from(u8::from(status.complete)),
        ),
    ] {
        registry.register(name, help, ConstGauge::new(value));
    }
}

fn learning(status: &Status, registry: &mut Registry) {
    if let Some(round) = status.adopted() {
        for (name, help, value) in [
            ("adopted_round", "Last adopted round", round.round as f64),
            (
                "coalition",
                "The silo's own coalition in the last adopted round, from 0",
                f64::from(round.coalition),
            ),
            (
                "coalitions",
                "Coalitions in the last adopted round",
                round.coalitions as f64,
            ),
        ] {
            registry.register(name, help, ConstGauge::new(value));
        }
    }
    if let Some((round, held_out)) = status.measured() {
        let family = ByName::default();
        for (name, value) in &held_out.metrics {
            family
                .get_or_create(&[("metric", name.clone())])
                .set(*value);
        }
        // A value that is not finite is a value, too: an alarm can see it.
        for name in &held_out.not_finite {
            family
                .get_or_create(&[("metric", name.clone())])
                .set(f64::NAN);
        }
        let help = "The last measured model on the silo's own held-out rows";
        registry.register("held_out", help, family);
        for (name, help, value) in [
            ("held_out_rows", "Own held-out rows", held_out.rows as f64),
            (
                "held_out_round",
                "Round of the last measured model",
                round.round as f64,
            ),
        ] {
            registry.register(name, help, ConstGauge::new(value));
        }
    }
    if let Some(training) = &status.training {
        let done = match training.steps {
            0 => 0.0,
            steps => training.step as f64 / steps as f64,
        };
        let help = "Progress of the training under way, or of the last one, from 0 to 1";
        registry.register("training_progress_ratio", help, ConstGauge::new(done));
        if let Some(loss) = training.loss {
            let help = "Mean training loss of the last finished epoch";
            registry.register("training_loss", help, ConstGauge::new(loss));
        }
    }
}

fn peers(status: &Status, registry: &mut Registry) {
    let (up, attempts, trips) = (ByName::default(), ByName::default(), ByName::default());
    for peer in &status.peers {
        let label = [("peer", peer.name.clone())];
        up.get_or_create(&label)
            .set(f64::from(u8::from(peer.connected)));
        attempts.get_or_create(&label).set(peer.attempts as f64);
        if let Some(trip) = peer.round_trip_ms {
            trips.get_or_create(&label).set(trip / 1e3);
        }
    }
    registry.register("peer_up", "1 while the member is connected", up);
    let help = "Attempts to connect that failed since the member was last connected";
    registry.register("peer_failed_attempts", help, attempts);
    let help = "Measured round trip to the member";
    registry.register_with_unit("peer_round_trip", help, Unit::Seconds, trips);
}

fn traffic(status: &Status, registry: &mut Registry) {
    let traffic = &status.traffic;
    for (name, help, value) in [
        ("frames_received", "Frames received", traffic.received),
        ("frames_sent", "Frames sent to one member", traffic.sent),
        (
            "frames_published",
            "Frames published to all members",
            traffic.published,
        ),
        (
            "frames_lost",
            "Frames and requests that did not fit into the queue to the network",
            traffic.lost,
        ),
        (
            "frames_unopened",
            "Frames that could not be opened",
            traffic.unopened,
        ),
        ("frames_dropped", "Frames dropped unread", traffic.dropped),
        ("mutes", "Times that a member was muted", traffic.mutes),
        (
            "blobs_fetched",
            "Models and outcomes fetched",
            traffic.fetched,
        ),
        ("blobs_served", "Models and outcomes served", traffic.served),
    ] {
        registry.register(name, help, ConstCounter::new(value));
    }
    let help = "Bytes of models and outcomes fetched";
    let bytes = ConstCounter::new(traffic.fetched_bytes);
    registry.register_with_unit("blobs_fetched", help, Unit::Bytes, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::fixture;

    #[test]
    fn the_metrics_are_those_of_the_document() {
        let mut status = fixture::status();
        let said = text(&status);
        for line in [
            "rota_node_info{version=\"0.1.0\",silo=\"north\",federation=\"stays\",",
            "rota_start_time_seconds 1772359200",
            "rota_round 3",
            "rota_view 4",
            "rota_participating 1",
            "rota_adopted_round 2",
            "rota_held_out{metric=\"mae\"} 48.67",
            "rota_held_out_rows 48",
            "rota_training_progress_ratio 0.45",
            "rota_peer_up{peer=\"south\"} 1",
            "rota_peer_up{peer=\"east\"} 0",
            "rota_peer_round_trip_seconds{peer=\"west <coast>\"} 0.0375",
            "rota_frames_received_total 1234",
            "rota_blobs_fetched_bytes_total 120000",
            "# TYPE rota_peer_up gauge",
        ] {
            let found = said.lines().any(|found| found.starts_with(line));
            assert!(found, "{line}\n{said}");
        }
        assert!(said.ends_with("# EOF\n"));
        assert!(!said.contains("rota_peer_round_trip_seconds{peer=\"east\"}"));
        // A model that diverged shows as NaN.
        let held_out = status.rounds[1].held_out.as_mut().expect("it is measured");
        held_out.metrics.clear();
        held_out.not_finite.push("mae".into());
        assert!(text(&status).contains("rota_held_out{metric=\"mae\"} NaN"));
    }
}
