//! A made-up comparison, and advice that rests on it, for tests of their reports.

use std::collections::BTreeMap;

use lab::compare::{
    Advice, AdviceVerdict, Against, Comparison, ComparisonRow, MeanDifference, MetricResult,
    MetricScope, Spread, Tune, VariantTable,
};
use lab::summary::Interval;
use task::metrics::MetricName;

/// An interval with its middle.
pub(crate) fn between(low: f64, high: f64) -> Interval {
    let by = f64::midpoint(low, high);
    Interval { by, low, high }
}

/// A strategy with a result of `.5` at every silo, and no gain.
pub(crate) fn row(label: &str) -> ComparisonRow {
    let scope = MetricScope {
        silos: Some(Spread { mean: 0.5, sd: 0.1 }),
        rows: None,
        worst: None,
        apart: None,
        best: None,
        subgroups: Vec::new(),
        gap: None,
    };
    ComparisonRow {
        label: label.into(),
        strategy: label.into(),
        seeds: 6,
        metrics: vec![MetricResult {
            metric: MetricName::LogLoss,
            inside: Some(scope),
            outside: None,
        }],
        against: Vec::new(),
        served: None,
        chosen: Vec::new(),
        tried: Vec::new(),
        tuning: 0.0,
        to_best: None,
        to_near: None,
        to_end: None,
        best_round: None,
        parameters: 3,
        seconds: (0.0, 0.0),
        coalitions: None,
        changes: None,
        stability: None,
        agreement: None,
        memory: BTreeMap::new(),
        together: None,
        graph: None,
        noise: None,
        unfinished: Vec::new(),
        curve: Vec::new(),
        failed: Vec::new(),
    }
}

/// A strategy with this gain over a reference.
pub(crate) fn gains(label: &str, over: &str, gain: Interval) -> ComparisonRow {
    let difference = MeanDifference {
        per_silo: Some(gain),
        per_row: None,
        seeds: 6,
        no_interval: None,
        wins: 1,
        ties: 3,
        losses: 0,
        losers: Vec::new(),
    };
    let against = Against {
        over: over.into(),
        inside: Some(difference),
        outside: None,
    };
    ComparisonRow {
        against: vec![against],
        ..row(label)
    }
}

/// A comparison of these strategies at four silos.
pub(crate) fn comparison(strategies: Vec<ComparisonRow>) -> Comparison {
    let members = ["north", "east", "south", "west"].map(str::to_owned);
    Comparison {
        experiment: "made-up".into(),
        description: String::new(),
        version: "0.1.0",
        quick: false,
        seeds: 6,
        tune: Tune::default(),
        scenario: serde_json::Value::Null,
        metrics: vec![MetricName::LogLoss],
        meshes: ["direct"].into(),
        variants: vec![VariantTable {
            name: String::new(),
            members: members.into(),
            outside: Vec::new(),
            rows: (80.0, 0.0),
            grouped: false,
            notes: Vec::new(),
            alone: strategies.first().map(|row| row.label.clone()),
            strategies,
            best: None,
            papers: Vec::new(),
        }],
        missing: Vec::new(),
        seconds: 1.0,
    }
}

/// Advice by six seeds, of which `fedavg` looked best, with this gain.
pub(crate) fn advice(verdict: AdviceVerdict, gain: Option<Interval>) -> Advice {
    Advice {
        verdict,
        alone: "own-fit".into(),
        unlearned: false,
        gain,
        best: Some("fedavg".into()),
        apart: Vec::new(),
        members: (2, 4, 0),
        stay_alone: Vec::new(),
        by_chance: 0.1,
        bytes: 2_000.0,
        exposure: Vec::new(),
        cautions: Vec::new(),
        seeds: 6,
        points: 1,
        cut_short: false,
        comparison: comparison(vec![row("own-fit"), row("fedavg")]),
    }
}
