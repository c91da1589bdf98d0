//! Runs a scenario: the federation itself, then what it is compared with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use learn::{DataError, Study};
use methods::strategy::{Method, StrategyConfig, WeightRule};
use protocol::{MemberIndex, Time};
use silo::{Checks, Notice, Totals, block_on};

use crate::audit::audit;
use crate::director::Director;
use crate::federation::{Federation, divide};
use crate::invariants::Violation;
use crate::network::Traffic;
use crate::pool::Threads;
use crate::recorder::Ear;
use crate::scenario::{Fault, Scenario};
use crate::summary::{self, Reference, Summary};
use crate::world::{Mesh, Stage, Virtual, World};

/// Why a run did not come to a good end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The task's data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The scenario does not make a federation.
    #[error("{0}")]
    Setup(String),
    /// A world that was handed in does not give a silo its surroundings.
    #[error("{0}")]
    World(String),
    /// A property did not hold.
    #[error("seed {seed}: {violation}; the same seed shows it again")]
    Violated {
        /// The seed.
        seed: u64,
        /// Which, when and how.
        violation: Violation,
    },
    /// So many silos cannot train that a round has too few contributions for ever.
    #[error(
        "round {round} cannot come about, training failed at {silos} of {members} silos: {reason}"
    )]
    Training {
        /// The round.
        round: u64,
        /// How many cannot.
        silos: usize,
        /// Of how many.
        members: usize,
        /// What the last of them said.
        reason: String,
    },
    /// The federation made no progress any more.
    #[error("seed {seed}: not finished after {} s on the federation's clock: {states}", after.as_secs())]
    Stuck {
        /// The seed.
        seed: u64,
        /// When it was given up.
        after: Duration,
        /// Where every silo is.
        states: String,
    },
    /// The members do not hold one chain, or an outcome on it does not follow from its sheet.
    #[error("seed {seed}: {what}")]
    Audit {
        /// The seed.
        seed: u64,
        /// What is wrong.
        what: String,
    },
    /// A silo stopped because of a defect of this program.
    #[error("{silo} stopped because of a defect: {why}")]
    Defect {
        /// Its name.
        silo: String,
        /// What happened.
        why: String,
    },
}

/// A round that became final, as progress to show.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundDone {
    /// The round, from 1.
    pub round: u64,
    /// Rounds in all.
    pub rounds: u64,
    /// The view of its block.
    pub view: u64,
    /// The lead of that view, by name.
    pub lead: String,
    /// On the federation's clock, virtual or real.
    pub at: f64,
}

/// How long a Receipt may wait, in queues and for the pool that opens envelopes, until its silo has
/// read it.
const READ_VIRTUAL: Duration = Duration::from_secs(1);
/// The same on a real clock, where a busy machine may stand still for a while.
const READ_REAL: Duration = Duration::from_secs(10);

/// Makes a world for a federation, on a clock that is not paused.
pub type SurroundingsFor<'a> = dyn FnMut(&Stage<'_>) -> Result<Box<dyn World>, String> + 'a;

/// How to run a scenario.
pub struct Options<'a> {
    /// Where data lie that are in files.
    pub data: Option<PathBuf>,
    /// Whether checks are remembered process-wide.
    pub memo: bool,
    /// Threads for heavy work; they change how long a run takes and nothing else.
    pub threads: usize,
    /// Whether to run what the federation is compared with.
    pub references: bool,
    /// Whether to compare the chains of all members after the run, and to compute every outcome on
    /// them again. Needs a charter that keeps the models of all rounds (`keep`).
    pub audit: bool,
    /// Called when a round became final.
    pub progress: Box<dyn FnMut(&RoundDone) + 'a>,
    /// What the silos live in; `None`: the simulated world in virtual time.
    pub surroundings: Option<Box<SurroundingsFor<'a>>>,
}

impl Default for Options<'_> {
    /// Every check by every member, all cores, with references, in virtual time.
    fn default() -> Self {
        Self {
            data: None,
            memo: false,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            references: true,
            audit: false,
            progress: Box::new(|_| ()),
            surroundings: None,
        }
    }
}

/// What one federation left behind.
pub(crate) struct Recorded {
    pub(crate) mesh: Mesh,
    pub(crate) notices: Vec<(Time, MemberIndex, Notice)>,
    pub(crate) traffic: Vec<Traffic>,
    pub(crate) totals: Totals,
    pub(crate) trace: String,
    pub(crate) events: u64,
    pub(crate) invariants: Vec<&'static str>,
    pub(crate) seconds: f64,
    pub(crate) ended: Time,
}

/// Runs a scenario on its own data.
///
/// # Errors
/// [`RunError`]: data, setup, a violated property, or a federation that does not finish.
pub fn run(scenario: &Scenario, options: Options<'_>) -> Result<Summary, RunError> {
    let folder = options.data.as_deref();
    let study = scenario.task.study(scenario.silos, folder, scenario.seed);
    let study = study.map_err(|error| match error {
        DataError::Config(what) => RunError::Setup(format!("{}, task: {what}", scenario.file)),
        error => RunError::Data(error),
    })?;
    run_study(scenario, &study, options)
}

/// Runs a scenario with the silos of `study` in place of its own task's.
///
/// # Errors
/// [`RunError`]: setup, a violated property, or a federation that does not finish.
pub fn run_study(
    scenario: &Scenario,
    study: &Study,
    mut options: Options<'_>,
) -> Result<Summary, RunError> {
    let threads = Threads::new(options.threads);
    let (faults, strategy) = (&scenario.faults, &scenario.strategy);
    let division = divide(scenario, study)?;
    let federation = Federation::new(scenario, &division.inside, strategy, faults)?;
    let recorded = federate(scenario, &federation, faults, &mut options, &threads)?;
    let mut reference = Reference {
        wanted: options.references,
        ..Reference::default()
    };
    let began = Instant::now();
    if options.references {
        options.progress = Box::new(|_| ());
        options.surroundings = None;
        options.memo = true;
        // What the silos alone start from: the initial model, on the common scale if there is one,
        // without anything that the strategy attaches to it.
        reference.start = if strategy.is_plain_average() {
            summary::common_start(scenario, &recorded)
        } else {
            let method = Method::FedAvg {
                weight: WeightRule::default(),
            };
            let average = StrategyConfig {
                standardise: strategy.standardise,
                ..StrategyConfig::new(method, strategy.training.clone())
            };
            let federation = Federation::new(scenario, &division.inside, &average, &[])?;
            let recorded = federate(scenario, &federation, &[], &mut options, &threads)?;
            reference.global = summary::final_model(&recorded);
            summary::common_start(scenario, &recorded)
        };
    }
    let mut summary = summary::build(
        scenario,
        study,
        &division,
        &federation,
        &recorded,
        &reference,
        &threads,
    )?;
    summary.reference_seconds = began.elapsed().as_secs_f64();
    Ok(summary)
}

/// Runs one federation to its end.
fn federate(
    scenario: &Scenario,
    federation: &Federation,
    faults: &[Fault],
    options: &mut Options<'_>,
    threads: &Arc<Threads>,
) -> Result<Recorded, RunError> {
    let real = options.surroundings.is_some();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let builder = if real {
        builder.enable_all()
    } else {
        builder.enable_time().start_paused(true)
    };
    let runtime = builder
        .build()
        .map_err(|error| RunError::Setup(error.to_string()))?;
    let checks = Checks::new(options.memo);
    let began = Instant::now();
    let Options {
        surroundings,
        progress,
        audit: audited,
        ..
    } = options;
    block_on(runtime, async {
        let origin = tokio::time::Instant::now();
        let reading = if real { READ_REAL } else { READ_VIRTUAL };
        let (epoch, faulty) = (federation.epoch.clone(), federation.faulty.clone());
        let ear = Ear::new(epoch, faulty, origin, reading);
        let stage = Stage {
            federation,
            ear: &ear,
            checks: &checks,
            faults,
        };
        let world: Box<dyn World> = match surroundings {
            Some(make) => make(&stage).map_err(RunError::World)?,
            None => {
                let (links, costs) = (scenario.network.clone(), scenario.costs);
                Box::new(Virtual::new(&stage, links, costs, threads.clone()))
            }
        };
        let director = Director::new(federation, world, ear.clone(), faults)?;
        let world = director.run(bound(federation), &mut **progress).await?;
        if *audited {
            let seed = federation.seed;
            audit(federation, &world.disks(), &ear)
                .map_err(|what| RunError::Audit { seed, what })?;
        }
        let trace = format!("{:#}", ear.trace());
        let ended = ear.now();
        let traffic = world.traffic();
        let invariants = ear.invariants();
        let mut heard = ear.read();
        Ok(Recorded {
            mesh: world.mesh(),
            notices: std::mem::take(&mut heard.notices),
            traffic,
            totals: checks.totals(),
            trace,
            events: heard.events,
            invariants,
            seconds: began.elapsed().as_secs_f64(),
            ended,
        })
    })
}

/// When a federation is given up: twice what every round could take with the faulty leading first.
fn bound(federation: &Federation) -> Duration {
    let epoch = &federation.epoch;
    let views = 2 * epoch.roster.faulty() as u32 + 4;
    let rounds = u32::try_from(epoch.charter.rounds)
        .unwrap_or(u32::MAX)
        .saturating_add(4);
    let view = epoch.beat() * (epoch.charter.limit + 16 * 4);
    view.saturating_mul(views.saturating_mul(rounds))
        .saturating_mul(2)
}
