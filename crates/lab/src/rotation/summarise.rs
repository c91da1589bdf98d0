//! Makes the document of an experiment from its runs, simulated or real.

use std::time::Duration;

use learn::Study;
use protocol::parameters::Rotation;

use super::plan::words;
use super::result::{Laboratory, PolicyResult, RotationRun, gini};
use crate::compare::Spread;
use crate::summary::MetricInfo;
use simulations::scenario::{Fault, Scenario};

/// The runs of an experiment.
pub struct Findings<'a> {
    /// The federation.
    pub scenario: &'a Scenario,
    /// The rotations. The first is the one that the others are compared with.
    pub policies: &'a [Rotation],
    /// The silos' names, in roster order.
    pub silos: Vec<String>,
    /// The faults.
    pub faults: &'a [Fault],
    /// Time after which a run was given up.
    pub limit: Duration,
    /// The metric of the models.
    pub metric: MetricInfo,
    /// By policy, then by seed: as many for each policy.
    pub trials: Vec<Vec<RotationRun>>,
}

/// Returns what these runs say.
pub fn laboratory(findings: Findings<'_>) -> Laboratory {
    let scenario = findings.scenario;
    let first = findings.trials.first().cloned().unwrap_or_default();
    let seeds = first.len();
    let policies = findings.policies.iter().zip(findings.trials);
    let policies = policies
        .map(|(policy, trials)| summarise(*policy, scenario.rounds, trials, &first))
        .collect();
    Laboratory {
        scenario: scenario.name.clone(),
        description: scenario.description.clone(),
        version: env!("CARGO_PKG_VERSION"),
        strategy: scenario.strategy.name().into(),
        faulty: protocol::roster::faulty(findings.silos.len()),
        silos: findings.silos,
        rounds: scenario.rounds,
        seeds,
        limit_seconds: findings.limit.as_secs_f64(),
        faults: findings.faults.iter().map(words).collect(),
        metric: findings.metric,
        policies,
        deployment: None,
    }
}

/// The metric of a study's models.
pub fn metric_of(study: &Study) -> MetricInfo {
    MetricInfo {
        name: study.metric.name.key().into(),
        unit: study.metric.unit.clone(),
        higher_is_better: study.metric.name.higher_is_better(),
    }
}

/// Returns what the trials of a policy say, beside those of the first policy with the same seeds.
fn summarise(
    policy: Rotation,
    rounds: u64,
    trials: Vec<RotationRun>,
    first: &[RotationRun],
) -> PolicyResult {
    const NONE: Spread = Spread { mean: 0.0, sd: 0.0 };
    let mean = |of: &dyn Fn(&RotationRun) -> f64| Spread::of(trials.iter().map(of)).unwrap_or(NONE);
    let per_round = |amount: f64, trial: &RotationRun| amount / trial.rounds.max(1) as f64;
    let taken: Vec<_> = trials.iter().flat_map(|trial| &trial.take_overs).collect();
    let infinite = |span: Option<f64>| span.unwrap_or(f64::INFINITY);
    let mut spans: Vec<f64> = taken.iter().map(|one| infinite(one.seconds)).collect();
    spans.sort_by(f64::total_cmp);
    let stalled = taken
        .iter()
        .map(|one| infinite(one.stalled))
        .fold(0.0, f64::max);
    let finite = |span: f64| Some(span).filter(|span| span.is_finite());
    let complete = trials.iter().filter(|trial| trial.rounds == rounds);
    let last = |trial: &RotationRun| trial.curve.iter().rev().find_map(|point| point.metric);
    let pairs = || trials.iter().zip(first);
    let both = pairs().filter(|(one, other)| one.rounds == rounds && other.rounds == rounds);
    let metrics = pairs().filter_map(|(one, other)| Some(last(one)? - last(other)?));
    let end = |of: &dyn Fn(&super::result::SeenAuthors) -> f64| {
        mean(&|trial: &RotationRun| trial.seen.last().map_or(0.0, of))
    };
    PolicyResult {
        policy: policy.to_string(),
        rounds_lost: mean(&|trial| (rounds - trial.rounds.min(rounds)) as f64),
        views_failed: mean(&|trial| trial.views_failed as f64),
        seconds: Spread::of(complete.map(|trial| trial.seconds)),
        seconds_more: Spread::of(both.map(|(one, other)| one.seconds - other.seconds)),
        leads_stopped: taken.len(),
        never: spans.iter().filter(|span| span.is_infinite()).count(),
        take_over_median: spans.get(spans.len() / 2).copied().and_then(finite),
        take_over_worst: spans.last().copied().and_then(finite),
        stalled_worst: finite(stalled),
        bytes_per_round: mean(&|trial| per_round(trial.bytes.iter().sum::<u64>() as f64, trial)),
        lead_bytes_per_round: mean(&|trial| per_round(trial.lead_bytes as f64, trial)),
        work_per_round: mean(&|trial| per_round(trial.work.iter().sum(), trial)),
        lead_work_per_round: mean(&|trial| per_round(trial.lead_work, trial)),
        gini_bytes: mean(&|trial| gini(trial.bytes.iter().map(|&bytes| bytes as f64))),
        gini_work: mean(&|trial| gini(trial.work.iter().copied())),
        gini_led: mean(&|trial| gini(trial.led.iter().map(|&led| led as f64))),
        seen_mean: end(&|seen| seen.mean),
        seen_most: end(&|seen| seen.most),
        metric: Spread::of(trials.iter().filter_map(last)),
        metric_more: Spread::of(metrics),
        trials,
    }
}
