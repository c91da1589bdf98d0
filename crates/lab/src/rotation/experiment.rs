//! Runs a federation under several rotations and seeds.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use protocol::parameters::Rotation;
use task::data::DataError;

use super::measure::trial;
use super::plan::usual_faults;
use super::result::{Laboratory, RotationRun};
use super::summarise::{Findings, laboratory, metric_of};
use crate::participation::{ParticipatingSilos, participation};
use crate::summary::MetricInfo;
use simulations::Federation;
use simulations::Options;
use simulations::RunError;
use simulations::federate;
use simulations::pool::Threads;
use simulations::scenario::{Fault, Scenario};

/// What to run.
#[derive(Debug, Clone)]
pub struct RotationExperiment {
    /// The federation. Its own rotation is not used.
    pub scenario: Scenario,
    /// The rotations, at least one. The first is the one that the others are compared with.
    pub policies: Vec<Rotation>,
    /// Number of seeds, from the scenario's on.
    pub seeds: usize,
    /// The faults; `None`: those of the scenario, or [`usual_faults`] where it has none.
    pub faults: Option<Vec<Fault>>,
    /// Virtual time after which a run is given up; `None`: twice the time that the first policy
    /// takes without faults, and for every kill its pause, patience and forty heartbeats.
    pub limit: Option<Duration>,
}

impl RotationExperiment {
    /// The faults of a federation of `n` silos: those that were asked for, or the scenario's, or
    /// [`usual_faults`].
    pub fn faults(&self, n: usize) -> Vec<Fault> {
        match (&self.faults, &self.scenario.faults[..]) {
            (Some(faults), _) => faults.clone(),
            (None, []) => usual_faults(n, self.scenario.rounds),
            (None, own) => own.to_vec(),
        }
    }
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
    /// Seed of the last run.
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
    experiment: &RotationExperiment,
    mut options: LabOptions<'_>,
) -> Result<Laboratory, RunError> {
    let threads = Threads::new(options.threads);
    let runs = experiment.policies.len() * experiment.seeds;
    let mut running = None;
    let mut done = 0;
    for seed in 0..experiment.seeds as u64 {
        let mut scenario = experiment.scenario.clone();
        scenario.seed += seed;
        let study = scenario.study(options.data.as_deref());
        let study = study.map_err(|error| match error {
            DataError::Config(what) => RunError::Setup(format!("{}, task: {what}", scenario.file)),
            error => RunError::Data(error),
        })?;
        let participation = participation(&scenario, &study)?;
        let all = match &mut running {
            Some(all) => all,
            None => running.insert(begin(experiment, &scenario, &participation, &threads)?),
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
    let all = running.ok_or_else(|| RunError::Setup("expected at least one seed".into()))?;
    Ok(laboratory(Findings {
        scenario: &experiment.scenario,
        policies: &experiment.policies,
        silos: all.silos,
        faults: &all.faults,
        limit: all.limit,
        metric: all.metric,
        trials: all.trials,
    }))
}

/// An experiment under way.
struct RunningExperiment {
    faults: Vec<Fault>,
    limit: Duration,
    silos: Vec<String>,
    metric: MetricInfo,
    /// By policy, then by seed.
    trials: Vec<Vec<RotationRun>>,
}

/// Chooses faults and limit.
fn begin(
    experiment: &RotationExperiment,
    scenario: &Scenario,
    participation: &ParticipatingSilos,
    threads: &Arc<Threads>,
) -> Result<RunningExperiment, RunError> {
    let study = &participation.study;
    let n = study.silos.len();
    let faults = experiment.faults(n);
    let limit = match experiment.limit {
        Some(limit) => limit,
        None => {
            let first = experiment.policies.first().copied();
            let policy = first.unwrap_or(Rotation::EveryRound);
            let calm = run(scenario, participation, policy, &[], None, threads)?;
            let heartbeat = scenario.protocol.heartbeat.0;
            let pause = |fault: &Fault| match fault {
                Fault::Kill { restart_after, .. } => restart_after.unwrap_or_default(),
                Fault::Split { at, lasts, .. } => *at + *lasts,
                Fault::Byzantine { .. } => Duration::ZERO,
            };
            let each = heartbeat * (scenario.protocol.usual_patience() + 40);
            let pauses = faults.iter().map(|fault| pause(fault) + each);
            Duration::from_secs_f64(2.0 * calm.seconds) + pauses.sum::<Duration>()
        }
    };
    Ok(RunningExperiment {
        faults,
        limit,
        silos: study.silos.iter().map(|silo| silo.name.clone()).collect(),
        metric: metric_of(study),
        trials: vec![Vec::new(); experiment.policies.len()],
    })
}

/// One run.
fn run(
    scenario: &Scenario,
    participation: &ParticipatingSilos,
    policy: Rotation,
    faults: &[Fault],
    limit: Option<Duration>,
    threads: &Arc<Threads>,
) -> Result<RotationRun, RunError> {
    let mut scenario = scenario.clone();
    scenario.protocol.rotation.0 = policy;
    let study = &participation.study;
    let federation = Federation::new(&scenario, study, &scenario.strategy, faults)?;
    let mut options = Options {
        // Every signature and hash is verified once for all silos; its cost is modelled for each.
        cache: true,
        limit,
        ..Options::default()
    };
    let recorded = federate(&scenario, &federation, faults, &mut options, threads)?;
    trial(&federation, study, &recorded, threads)
}
