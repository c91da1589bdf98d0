//! A made-up finished federation for tests of the reports.

use lab::summary::*;
use methods::serving::{Candidate, ComparedOn};
use silo::Totals;
use simulations::network::Traffic;
use simulations::{Led, Mesh};

use super::Story;

/// The story of [`summary`].
pub(crate) fn story(silos: usize, coalitions: usize, rounds: u64) -> Story {
    let about = "Hospitals whose patients differ in age and sex predict how diabetes goes on.";
    Story::of(&summary(silos, coalitions, rounds), about)
}

/// A federation of `silos` in `coalitions`. Round 2, if there is one, needs two views.
pub(crate) fn summary(silos: usize, coalitions: usize, rounds: u64) -> Summary {
    let name = |index: usize| format!("Hospital {:02}", index + 1);
    let wave = |a: usize, b: u64| ((a * 7 + b as usize * 3) % 11) as f64 / 11.0;
    let coalition_of = |index: usize| index % coalitions.max(1);
    let mut views = Vec::new();
    let mut finals = Vec::new();
    let mut at = 0.0;
    for round in 1..=rounds {
        if round == 2 {
            views.push(Lead {
                view: views.len() as u64 + 1,
                lead: name(views.len() % silos),
                round,
                from: at,
                to: at + 2.0,
                result: "nullified",
            });
            at += 2.0;
        }
        let view = views.len() as u64 + 1;
        let lead = name(views.len() % silos);
        let length = 0.4 + wave(3, round);
        views.push(Lead {
            view,
            lead: lead.clone(),
            round,
            from: at,
            to: at + length,
            result: "final",
        });
        at += length;
        finals.push(RoundInfo {
            round,
            led: Some(Led { view, lead, at }),
            kind: if round == 1 { "summarise" } else { "train" },
            cross_evaluated: round == 2,
            authors: (0..silos).map(name).collect(),
            outcome: String::new(),
            memory: Default::default(),
            coalitions: match round {
                1 => vec![(0..silos).map(name).collect()],
                _ => (0..coalitions)
                    .map(|c| {
                        (0..silos)
                            .filter(|&s| coalition_of(s) == c)
                            .map(name)
                            .collect()
                    })
                    .collect(),
            },
        });
    }
    let around = |by: f64, half: f64| Interval {
        by,
        low: by - half,
        high: by + half,
    };
    let silos_count = silos;
    let silos: Vec<SiloInfo> = (0..silos)
        .map(|index| SiloInfo {
            second: SecondMetric {
                local: Some(58.0 + 9.0 * wave(index, 1)),
                global: Some(54.0 + 9.0 * wave(index, 2)),
                coalition: Some(52.0 + 9.0 * wave(index, 5)),
            },
            gains: vec![
                Gain {
                    model: ModelKind::Coalition,
                    over: ModelKind::Local,
                    interval: around(6.0 + 9.0 * (wave(index, 1) - wave(index, 5)), 4.0),
                },
                Gain {
                    model: ModelKind::Coalition,
                    over: ModelKind::Global,
                    interval: around(2.0 + 9.0 * (wave(index, 2) - wave(index, 5)), 1.0),
                },
            ],
            classes: None,
            name: name(index),
            outside: false,
            samples: 20 + (index * 37) % 80,
            test_samples: 10,
            trainings: rounds.saturating_sub(1) as usize,
            local: Some(48.0 + 9.0 * wave(index, 1)),
            global: Some(44.0 + 9.0 * wave(index, 2)),
            coalition: Some(42.0 + 9.0 * wave(index, 5)),
            coalition_index: (coalitions > 0).then(|| coalition_of(index) as u32),
            model: None,
            pooled: Some(41.0 + 9.0 * wave(index, 3)),
            local_tuned: None,
            global_equal: None,
            own_intercept: None,
            constant: None,
            served: Some(ServedInfo {
                candidate: Candidate::Coalition,
                on: ComparedOn::Folds,
                metric: Some(42.0 + 9.0 * wave(index, 5)),
                measured: Vec::new(),
            }),
        })
        .collect();
    let curves = (0..silos.len()).flat_map(|index| {
        (1..=rounds).map(move |round| Curve {
            silo: name(index),
            round,
            loss: (round > 1).then(|| 40.0 + 90.0 / round as f64 + 12.0 * wave(index, 0)),
            metric: (round != 3 || index != 1)
                .then(|| 42.0 + 100.0 / round as f64 + 15.0 * wave(index, 4)),
        })
    });
    let traffic: Vec<SiloTraffic> = (0..silos.len())
        .map(|index| SiloTraffic {
            silo: name(index),
            sent: Traffic {
                messages: 40_000 + 900 * index as u64,
                blobs: 9_000 + 4_000 * (index as u64 % 5),
            },
        })
        .collect();
    let messages = traffic.iter().map(|silo| silo.sent.messages).sum();
    let blobs = traffic.iter().map(|silo| silo.sent.blobs).sum();
    Summary {
        scenario: "diabetes".into(),
        strategy: "cs-rcfl".into(),
        seed: 7,
        trace: Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into()),
        seconds: 0.82,
        mesh: Mesh::VIRTUAL,
        virtual_seconds: Some(at),
        reference_seconds: 0.2,
        bytes: Some(messages + blobs),
        bytes_messages: Some(messages),
        bytes_blobs: Some(blobs),
        metric: MetricInfo {
            name: "mae".into(),
            unit: "points of disease progression".into(),
            higher_is_better: false,
        },
        second_metric: Some(MetricInfo {
            name: "rmse".into(),
            unit: "points of disease progression".into(),
            higher_is_better: false,
        }),
        settings: Settings {
            version: "0.1.0",
            task: serde_json::json!({ "table": { "data": "diabetes", "model": "linear" } }),
            strategy: serde_json::json!({
                "name": "cs-rcfl",
                "training": { "epochs": 10, "optimiser": { "name": "sgd", "rate": 0.01 } },
            }),
            classes: Vec::new(),
        },
        usable: true,
        unusable: Vec::new(),
        training_failed: Vec::new(),
        gains: vec![MeanGain {
            model: ModelKind::Coalition,
            over: ModelKind::Local,
            silos: silos_count,
            per_silo: around(6.0, 2.0),
            per_row: around(5.0, 2.0),
        }],
        means: Vec::new(),
        harmed: None,
        tuning: None,
        linkage: None,
        notes: Vec::new(),
        rounds: finals,
        timeline: views,
        newcomers: Vec::new(),
        curves: curves.collect(),
        traffic,
        silos,
        weights_abs_sum: None,
        checks: Some(Totals {
            signatures: 12_345,
            bytes_hashed: 2_300_000,
            checks: 48,
            settles: 48,
            memo: false,
        }),
        refused: vec![Refused {
            member: name(0),
            round: 2,
            reason: "refused-reason: the tensor weight holds NaN".into(),
            times: 1,
        }],
        faults: vec![FaultInfo {
            member: name(0),
            charge: "charge-text: two contributions of one round".into(),
            seen_by: vec![name(1), name(2)],
        }],
        left_out: vec![LeftOut {
            round: 2,
            view: 3,
            lead: name(2),
            members: vec![name(1)],
            reason: "left-out-reason: silent".into(),
        }],
        nullified: vec![Nullified {
            view: 2,
            lead: name(1),
            silo: name(0),
            reason: "the lead was silent".into(),
        }],
        events: Some(54_321),
        invariants: vec!["S1 (one notarised block per view)", "S9 (final parents)"],
    }
}
