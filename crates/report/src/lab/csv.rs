//! An experiment as one CSV file: a line for every policy and seed.

use lab::rotation::{Laboratory, PolicyResult, RotationRun};

use super::super::download;

const COLUMNS: [&str; 20] = [
    "rotation",
    "seed",
    "rounds",
    "rounds_lost",
    "seconds",
    "views_failed",
    "leads_stopped",
    "never_taken_over",
    "take_over_median",
    "take_over_worst",
    "stalled_worst",
    "bytes",
    "lead_bytes",
    "work_seconds",
    "lead_work_seconds",
    "rounds_led_most",
    "seen_mean",
    "seen_most",
    "metric",
    "trace",
];

/// The CSV. Times are in seconds; one that is empty never came.
pub fn csv(all: &Laboratory) -> String {
    let rows = all.policies.iter().flat_map(|policy| {
        let line = |trial| line(all, policy, trial);
        policy.trials.iter().map(line).collect::<Vec<_>>()
    });
    download::csv(&COLUMNS, rows)
}

fn line(all: &Laboratory, policy: &PolicyResult, trial: &RotationRun) -> [String; 20] {
    let infinite = |span: Option<f64>| span.unwrap_or(f64::INFINITY);
    let mut spans: Vec<f64> = trial
        .take_overs
        .iter()
        .map(|one| infinite(one.seconds))
        .collect();
    spans.sort_by(f64::total_cmp);
    let never = spans.iter().filter(|span| span.is_infinite()).count();
    let stalled = trial.take_overs.iter().map(|one| infinite(one.stalled));
    let stalled = stalled.reduce(f64::max);
    let finite = |span: Option<f64>| download::number(span.filter(|span| span.is_finite()));
    let seen = trial.seen.last();
    let metric = trial.curve.iter().rev().find_map(|point| point.metric);
    [
        policy.policy.clone(),
        trial.seed.to_string(),
        trial.rounds.to_string(),
        (all.rounds - trial.rounds.min(all.rounds)).to_string(),
        trial.seconds.to_string(),
        trial.views_failed.to_string(),
        spans.len().to_string(),
        never.to_string(),
        finite(spans.get(spans.len() / 2).copied()),
        finite(spans.last().copied()),
        finite(stalled),
        trial.bytes.iter().sum::<u64>().to_string(),
        trial.lead_bytes.to_string(),
        trial.work.iter().sum::<f64>().to_string(),
        trial.lead_work.to_string(),
        trial.led.iter().max().copied().unwrap_or(0).to_string(),
        download::number(seen.map(|seen| seen.mean)),
        download::number(seen.map(|seen| seen.most)),
        download::number(metric),
        trial.trace.clone(),
    ]
}
