//! A status for tests: the second of three rounds is adopted, the third is under way, and one of three
//! other members cannot be reached.

use std::collections::BTreeMap;

use super::document::*;

/// An adopted round with this lead, so many coalitions, and this held-out error.
fn round(round: u64, lead: &str, coalitions: u64, mae: f64) -> RoundStatus {
    RoundStatus {
        round,
        time: format!("2026-03-01T10:0{round}:00.000Z"),
        view: Some(round),
        lead: Some(lead.into()),
        models: Some(4),
        authors: ["north", "south", "east", "west <coast>"]
            .map(Into::into)
            .into(),
        coalition: 0,
        coalitions,
        outcome: "ab".repeat(32),
        loss: Some(0.6273),
        held_out: Some(HeldOutMetrics {
            rows: 48,
            metric: "mae".into(),
            unit: "points".into(),
            metrics: BTreeMap::from([("loss".into(), 0.61), ("mae".into(), mae)]),
            not_finite: Vec::new(),
        }),
        spent: Some(SpentSeconds {
            seconds: 40.5,
            waiting: 31.5,
            disk: 0.2,
            work: BTreeMap::from([("train".into(), 8.5), ("settle".into(), 0.4)]),
            leading: BTreeMap::new(),
        }),
    }
}

/// Another member that is connected.
fn peer(member: u16, name: &str) -> PeerStatus {
    PeerStatus {
        name: name.into(),
        member,
        connected: true,
        since: Some("2026-03-01T10:00:02.000Z".into()),
        through: None,
        round_trip_ms: Some(12.5 * f64::from(member)),
        version: None,
        attempts: 0,
        problem: None,
        complete: false,
    }
}

/// The status of the silo `north`.
pub(crate) fn status() -> Status {
    Status {
        format: FORMAT,
        time: "2026-03-01T10:02:30.000Z".into(),
        node: NodeFacts {
            version: "0.1.0".into(),
            pid: 4711,
            started: "2026-03-01T10:00:00.000Z".into(),
            addresses: vec!["/ip4/0.0.0.0/udp/4001/quic-v1".into()],
            http: Some("http://127.0.0.1:9600/".into()),
            free: Some(120_000_000_000),
        },
        silo: "north".into(),
        member: 0,
        federation: FederationFacts {
            name: "stays".into(),
            id: "76ea7cfc".repeat(8),
            members: 4,
            rounds: 3,
            quorum: 3,
            byzantine_members_tolerated: 1,
        },
        round: 3,
        view: 4,
        lead: Some("west <coast>".into()),
        leads: false,
        phase: "training".into(),
        waiting: None,
        void_sums: None,
        ledger: None,
        ledger_problem: None,
        learned: Vec::new(),
        complete: false,
        training: Some(TrainingProgress {
            running: true,
            step: 450,
            steps: 1000,
            loss: Some(0.5912),
        }),
        rounds: vec![round(1, "south", 1, 50.48), round(2, "east", 2, 48.67)],
        serves: None,
        peers: vec![
            peer(1, "south"),
            PeerStatus {
                connected: false,
                since: Some("2026-03-01T10:01:15.000Z".into()),
                round_trip_ms: None,
                attempts: 12,
                problem: Some("at 192.0.2.3:4001 does not answer over UDP".into()),
                ..peer(2, "east")
            },
            PeerStatus {
                through: Some("south".into()),
                ..peer(3, "west <coast>")
            },
        ],
        traffic: TrafficTotals {
            received: 1234,
            sent: 321,
            published: 45,
            fetched: 9,
            fetched_bytes: 120_000,
            served: 7,
            ..TrafficTotals::default()
        },
        warnings: vec![Warning {
            time: "2026-03-01T10:01:20.000Z".into(),
            text: "east at 192.0.2.3:4001 does not answer over UDP".into(),
        }],
    }
}

/// The same after the last round, when the silo serves a model of its own.
pub(crate) fn done() -> Status {
    let metrics = |mae: f64| HeldOutMetrics {
        metrics: BTreeMap::from([("mae".into(), mae)]),
        ..round(3, "south", 2, mae).held_out.expect("it is measured")
    };
    Status {
        complete: true,
        rounds: vec![round(3, "south", 2, 47.11)],
        serves: Some(ServedStatus {
            round: 3,
            what: "the model that it trains alone".into(),
            adopted: false,
            held_out: Some(metrics(41.25)),
        }),
        ..status()
    }
}
