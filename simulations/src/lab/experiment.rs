//! Runs a federation under several rotations and seeds.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use learn::DataError;
use protocol::charter::Rotation;

use super::measure::trial;
use super::plan::{usual_faults, words};
use super::result::{Laboratory, PolicyResult, Trial, gini};
use crate::compare::Spread;
use crate::error::RunError;
use crate::federate::federate;
use crate::federation::Federation;
use crate::options::Options;
use crate::participation::{Participation, participation};
use crate::pool::Threads;
use crate::scenario::{Fault, Scenario};
use crate::summary::MetricInfo;

/// What to run.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The federation. Its own rotation is not used.
    pub scenario: Scenario,
    /// The rotations, at least one. The first is the one that the others are compared with.
    pub policies: Vec<Rotation>,
    /// Number of seeds, from the scenario's on.
    pub seeds: usize,
    /// The faults; `None`: those of the scenario, or [`usual_faults`] where it has none.
    pub faults: Option<Vec<Fault>>,
    /// Virtual time after which a run is given up; `None`: twice the time that the first policy
    /// takes without faults, and for every kill its pause, patience and forty beats.
    pub limit: Option<Duration>,
}

/// A run that ended, for progress displays.
#[derive(Debug, Clone, PartialEq)]
pub struct LabProgress {
    /// Runs that have ended.
    pub done: usize,
    /// Runs in all.
    pub runs: usize,
    /// The policy of the last one.
    pub policy: String,
    /// Its seed.
    pub seed: u64,
}

/// Options that do not change the result.
pub struct LabOptions<'a> {
    /// The folder of data sets that are files.
    pub data: Option<PathBuf>,
    /// Threads for heavy work.
    pub threads: usize,
    /// Called when a run has ended.
    pub progress: Box<dyn FnMut(&LabProgress) + 'a>,
}

impl Default for LabOptions<'_> {
    /// A thread for every core.
    fn default() -> Self {
        Self {
            data: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            progress: Box::new(|_| ()),
        }
    }
}

/// Runs every policy with every seed.
///
/// # Errors
/// [`RunError`]: data, setup, or a violated property. A federation that does not finish is no error
/// here: that is what the experiment measures.
pub fn rotation(
    experiment: &Experiment,
    mut options: LabOptions<'_>,
) -> Result<Laboratory, RunError> {
    let threads = Threads::new(options.threads);
    let runs = experiment.policies.len() * experiment.seeds;
    let mut laboratory = None;
    let mut done = 0;
    for seed in 0..experiment.seeds as u64 {
        let mut scenario = experiment.scenario.clone();
        scenario.seed += seed;
        let study = scenario
            .task
            .study(scenario.silos, options.data.as_deref(), scenario.seed);
        let study = study.map_err(|error| match error {
            DataError::Config(what) => RunError::Setup(format!("{}, task: {what}", scenario.file)),
            error => RunError::Data(error),
        })?;
        let participation = participation(&scenario, &study)?;
        let all = match &mut laboratory {
            Some(all) => all,
            None => laboratory.insert(begin(experiment, &scenario, &participation, &threads)?),
        };
        for (nth, &policy) in experiment.policies.iter().enumerate() {
            let run = run(
                &scenario,
                &participation,
                policy,
                &all.faults,
                Some(all.limit),
                &threads,
            )?;
            all.trials[nth].push(run);
            done += 1;
            (options.progress)(&LabProgress {
                done,
                runs,
                policy: policy.to_string(),
                seed: scenario.seed,
            });
        }
    }
    let all = laboratory.ok_or_else(|| RunError::Setup("expected at least one seed".into()))?;
    Ok(all.finish(experiment))
}

/// An experiment under way.
struct Running {
    faults: Vec<Fault>,
    limit: Duration,
    silos: Vec<String>,
    faulty: usize,
    metric: MetricInfo,
    /// By policy, then by seed.
    trials: Vec<Vec<Trial>>,
}

/// Chooses faults and limit.
fn begin(
    experiment: &Experiment,
    scenario: &Scenario,
    participation: &Participation,
    threads: &Arc<Threads>,
) -> Result<Running, RunError> {
    let study = &participation.study;
    let n = study.silos.len();
    let faults = match (&experiment.faults, &scenario.faults[..]) {
        (Some(faults), _) => faults.clone(),
        (None, []) => usual_faults(n, scenario.rounds),
        (None, own) => own.to_vec(),
    };
    let limit = match experiment.limit {
        Some(limit) => limit,
        None => {
            let first = experiment.policies.first().copied();
            let policy = first.unwrap_or(Rotation::EveryRound);
            let calm = run(scenario, participation, policy, &[], None, threads)?;
            let beat = scenario.charter.beat.0;
            let pause = |fault: &Fault| match fault {
                Fault::Kill { restart_after, .. } => restart_after.unwrap_or_default(),
                Fault::Split { at, lasts, .. } => *at + *lasts,
                Fault::Byzantine { .. } => Duration::ZERO,
            };
            let each = beat * (scenario.charter.patience + 40);
            let pauses = faults.iter().map(|fault| pause(fault) + each);
            Duration::from_secs_f64(2.0 * calm.seconds) + pauses.sum::<Duration>()
        }
    };
    Ok(Running {
        faults,
        limit,
        silos: study.silos.iter().map(|silo| silo.name.clone()).collect(),
        faulty: n.saturating_sub(1) / 3,
        metric: MetricInfo {
            name: study.metric.name.key().into(),
            unit: study.metric.unit.clone(),
            higher_is_better: study.metric.name.higher_is_better(),
        },
        trials: vec![Vec::new(); experiment.policies.len()],
    })
}

/// One run.
fn run(
    scenario: &Scenario,
    participation: &Participation,
    policy: Rotation,
    faults: &[Fault],
    limit: Option<Duration>,
    threads: &Arc<Threads>,
) -> Result<Trial, RunError> {
    let mut scenario = scenario.clone();
    scenario.charter.rotation.0 = policy;
    let study = &participation.study;
    let federation = Federation::new(&scenario, study, &scenario.strategy, faults)?;
    let mut options = Options {
        // Every signature and hash is verified once for all silos; its cost is modelled for each.
        memo: true,
        limit,
        ..Options::default()
    };
    let recorded = federate(&scenario, &federation, faults, &mut options, threads)?;
    trial(&federation, study, &recorded, threads)
}

impl Running {
    fn finish(self, experiment: &Experiment) -> Laboratory {
        let scenario = &experiment.scenario;
        let first = self.trials.first().cloned().unwrap_or_default();
        let policies = experiment.policies.iter().zip(self.trials);
        let policies = policies
            .map(|(policy, trials)| summarise(*policy, scenario.rounds, trials, &first))
            .collect();
        Laboratory {
            scenario: scenario.name.clone(),
            description: scenario.description.clone(),
            version: env!("CARGO_PKG_VERSION"),
            strategy: scenario.strategy.name().into(),
            silos: self.silos,
            faulty: self.faulty,
            rounds: scenario.rounds,
            seeds: experiment.seeds,
            limit_seconds: self.limit.as_secs_f64(),
            faults: self.faults.iter().map(words).collect(),
            metric: self.metric,
            policies,
        }
    }
}

/// What the trials of a policy say, beside those of the first policy with the same seeds.
fn summarise(policy: Rotation, rounds: u64, trials: Vec<Trial>, first: &[Trial]) -> PolicyResult {
    const NONE: Spread = Spread { mean: 0.0, sd: 0.0 };
    let mean = |of: &dyn Fn(&Trial) -> f64| Spread::of(trials.iter().map(of)).unwrap_or(NONE);
    let per_round = |amount: f64, trial: &Trial| amount / trial.rounds.max(1) as f64;
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
    let last = |trial: &Trial| trial.curve.iter().rev().find_map(|point| point.metric);
    let pairs = || trials.iter().zip(first);
    let both = pairs().filter(|(one, other)| one.rounds == rounds && other.rounds == rounds);
    let metrics = pairs().filter_map(|(one, other)| Some(last(one)? - last(other)?));
    let end = |of: &dyn Fn(&super::result::Seen) -> f64| {
        mean(&|trial: &Trial| trial.seen.last().map_or(0.0, of))
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
