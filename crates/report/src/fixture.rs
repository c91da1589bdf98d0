//! A made-up finished federation for tests of the reports.

use lab::summary::*;
use methods::serving::{Candidate, ComparedOn, Tuned, Way};
use silo::Totals;
use simulations::network::Traffic;
use simulations::{Led, Mesh};

use super::Story;

/// The story of [`summary`].
pub(crate) fn story(silos: usize, coalitions: usize, rounds: u64) -> Story {
    let about = "Hospitals whose patients differ in age and sex predict how diabetes continues.";
    Story::of(&summary(silos, coalitions, rounds), about)
}

/// A federation of `silos` in `coalitions`. Round 2, if there is one, needs two views.
pub(crate) fn summary(silos: usize, coalitions: usize, rounds: u64) -> Summary {
    let course = Course::of(silos, coalitions, rounds);
    let traffic: Vec<SiloTraffic> = (0..silos).map(traffic).collect();
    let messages = traffic.iter().map(|silo| silo.sent.messages).sum();
    let blobs = traffic.iter().map(|silo| silo.sent.blobs).sum();
    Summary {
        scenario: "diabetes".into(),
        strategy: "cs-rcfl".into(),
        seed: 7,
        trace: Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into()),
        seconds: 0.82,
        mesh: Mesh::VIRTUAL,
        virtual_seconds: Some(course.at),
        reference_seconds: 0.2,
        bytes: Some(messages + blobs),
        bytes_messages: Some(messages),
        bytes_blobs: Some(blobs),
        metric: metric("mae"),
        second_metric: Some(metric("rmse")),
        settings: settings(),
        usable: true,
        unusable: Vec::new(),
        training_failed: Vec::new(),
        gains: vec![MeanGain {
            model: ModelKind::Coalition,
            over: ModelKind::Local,
            silos,
            per_silo: around(6.0, 2.0),
            per_row: around(5.0, 2.0),
        }],
        means: Vec::new(),
        harmed: None,
        tuning: Some(Tuning {
            silos,
            fitted: 0,
            rates: true,
            trainings: 20.0,
            fits: 0.0,
        }),
        linkage: None,
        noise: None,
        notes: Vec::new(),
        rounds: course.rounds,
        losses: None,
        merges: None,
        timeline: course.views,
        stops: Vec::new(),
        newcomers: Vec::new(),
        curves: (0..silos).flat_map(|index| curve(index, rounds)).collect(),
        traffic,
        silos: (0..silos)
            .map(|index| silo(index, coalitions, rounds))
            .collect(),
        weights_abs_sum: None,
        checks: Some(Totals {
            simulated_signatures: false,
            signatures: 12_345,
            bytes_hashed: 2_300_000,
            checks: 48,
            settles: 48,
            cache: false,
        }),
        refused: vec![refused()],
        faults: vec![fault()],
        left_out: vec![left_out()],
        nullified: vec![nullified()],
        events: Some(54_321),
        invariants: vec!["S1 (one notarised block per view)", "S9 (final parents)"],
    }
}

fn name(index: usize) -> String {
    format!("Hospital {:02}", index + 1)
}

/// A number from 0 to below 1 that differs from silo to silo.
fn wave(a: usize, b: u64) -> f64 {
    ((a * 7 + b as usize * 3) % 11) as f64 / 11.0
}

fn around(by: f64, half: f64) -> Interval {
    Interval {
        by,
        low: by - half,
        high: by + half,
    }
}

fn coalition_of(index: usize, coalitions: usize) -> usize {
    index % coalitions.max(1)
}

/// Rounds and views, one after the other.
#[derive(Default)]
struct Course {
    rounds: Vec<RoundInfo>,
    views: Vec<ViewLead>,
    /// End of the last view, in seconds.
    at: f64,
}

impl Course {
    fn of(silos: usize, coalitions: usize, rounds: u64) -> Self {
        let mut course = Self::default();
        for round in 1..=rounds {
            if round == 2 {
                course.view(silos, round, 2.0, "nullified");
            }
            course.view(silos, round, 0.4 + wave(3, round), "final");
            course.ends(silos, coalitions, round);
        }
        course
    }

    /// Adds a view of so many seconds.
    fn view(&mut self, silos: usize, round: u64, seconds: f64, result: &'static str) {
        self.views.push(ViewLead {
            view: self.views.len() as u64 + 1,
            lead: name(self.views.len() % silos),
            round,
            from: self.at,
            to: self.at + seconds,
            result,
        });
        self.at += seconds;
    }

    /// Adds the round that the last view ended.
    fn ends(&mut self, silos: usize, coalitions: usize, round: u64) {
        let nth = self.views.len() - 1;
        let members = |coalition: usize| {
            (0..silos)
                .filter(|&silo| coalition_of(silo, coalitions) == coalition)
                .map(name)
                .collect()
        };
        self.rounds.push(RoundInfo {
            round,
            led: Some(Led {
                view: nth as u64 + 1,
                lead: name(nth % silos),
                at: self.at,
            }),
            kind: if round == 1 { "summarise" } else { "train" },
            cross_evaluated: round == 2,
            authors: (0..silos).map(name).collect(),
            outcome: String::new(),
            memory: Default::default(),
            coalitions: match round {
                1 => vec![(0..silos).map(name).collect()],
                _ => (0..coalitions).map(members).collect(),
            },
        });
    }
}

fn silo(index: usize, coalitions: usize, rounds: u64) -> SiloInfo {
    SiloInfo {
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
        own: std::collections::BTreeMap::new(),
        name: name(index),
        group: None,
        outside: false,
        samples: 20 + (index * 37) % 80,
        test_samples: 10,
        test_units: Some(10),
        trainings: rounds.saturating_sub(1) as usize,
        local: Some(48.0 + 9.0 * wave(index, 1)),
        global: Some(44.0 + 9.0 * wave(index, 2)),
        coalition: Some(42.0 + 9.0 * wave(index, 5)),
        coalition_index: (coalitions > 0).then(|| coalition_of(index, coalitions) as u32),
        model: None,
        pooled: Some(41.0 + 9.0 * wave(index, 3)),
        local_tuned: Some(tuned()),
        global_equal: None,
        own_intercept: None,
        constant: None,
        served: Some(ServedInfo {
            candidate: Candidate::Coalition,
            on: ComparedOn::Folds,
            metric: Some(42.0 + 9.0 * wave(index, 5)),
            measured: Vec::new(),
            alone: ChosenAlone {
                candidate: Candidate::Coalition,
                metric: Some(42.0 + 9.0 * wave(index, 5)),
            },
        }),
    }
}

/// Returns how a silo's local model was chosen.
fn tuned() -> Tuned {
    Tuned {
        way: Way::Training {
            rate: 0.01,
            weight_decay: 0.0,
            epochs: 8,
        },
        loss: 0.6,
        untuned: None,
        rates: true,
        trainings: 20.0,
        fits: 0,
    }
}

/// A silo's values after every round. At silo 1 nobody measured the metric after round 3.
fn curve(index: usize, rounds: u64) -> impl Iterator<Item = Curve> {
    (1..=rounds).map(move |round| Curve {
        silo: name(index),
        round,
        loss: (round > 1).then(|| 40.0 + 90.0 / round as f64 + 12.0 * wave(index, 0)),
        metric: (round != 3 || index != 1)
            .then(|| 42.0 + 100.0 / round as f64 + 15.0 * wave(index, 4)),
        metrics: std::collections::BTreeMap::new(),
    })
}

fn traffic(index: usize) -> SiloTraffic {
    SiloTraffic {
        silo: name(index),
        sent: Traffic {
            messages: 40_000 + 900 * index as u64,
            blobs: 9_000 + 4_000 * (index as u64 % 5),
        },
    }
}

fn metric(name: &str) -> MetricInfo {
    MetricInfo {
        name: name.into(),
        unit: "points of disease progression".into(),
        higher_is_better: false,
    }
}

fn settings() -> Settings {
    Settings {
        version: "0.1.0",
        task: serde_json::json!({ "table": { "data": "diabetes", "model": "linear" } }),
        strategy: serde_json::json!({
            "name": "cs-rcfl",
            "training": { "epochs": 10, "optimiser": { "name": "sgd", "rate": 0.01 } },
        }),
        classes: Vec::new(),
    }
}

fn refused() -> Refused {
    Refused {
        member: name(0),
        round: 2,
        reason: "refused-reason: the tensor weight holds NaN".into(),
        times: 1,
    }
}

fn fault() -> FaultInfo {
    FaultInfo {
        member: name(0),
        charge: "charge-text: two contributions of one round".into(),
        seen_by: vec![name(1), name(2)],
    }
}

fn left_out() -> LeftOutMembers {
    LeftOutMembers {
        round: 2,
        view: 3,
        lead: name(2),
        members: vec![name(1)],
        reason: "left-out-reason: silent".into(),
    }
}

fn nullified() -> Nullified {
    Nullified {
        view: 2,
        lead: name(1),
        silo: name(0),
        reason: "the lead was silent".into(),
    }
}
