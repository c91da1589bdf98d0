//! Runs one federation to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::{MemberIndex, Time};
use silo::{Checks, Notice, Totals, block_on};

use crate::audit::audit;
use crate::director::{Directed, Director, Mark, Stop};
use crate::environment::{Environment, EnvironmentConfig, Mesh, VirtualEnvironment};
use crate::error::RunError;
use crate::federation::Federation;
use crate::linkage::Linkage;
use crate::network::Traffic;
use crate::options::Options;
use crate::pool::Threads;
use crate::recorder::Recorder;
use crate::scenario::{Fault, Scenario};

/// How long a Receipt may wait in queues, and for the pool that opens envelopes, before its silo
/// has read it.
const READ_VIRTUAL: Duration = Duration::from_secs(1);
/// The same on a real clock, where a busy machine may stand still for a while.
const READ_REAL: Duration = Duration::from_secs(10);

/// The record of one federation's run.
pub struct RunRecord {
    /// The kind of network that carried the messages.
    pub mesh: Mesh,
    /// What every silo told, and when.
    pub notices: Vec<(Time, MemberIndex, Notice)>,
    /// The bytes that every member sent, in roster order.
    pub traffic: Vec<Traffic>,
    /// The modelled time that every member worked besides training.
    pub work: Vec<Duration>,
    /// Whether every honest silo was complete in the end, except those killed without a restart.
    pub complete: bool,
    /// The stops of silos, in order.
    pub stops: Vec<Stop>,
    /// The final rounds, in order.
    pub marks: Vec<Mark>,
    /// Members whose contributions a member got, each once: when, who, whose.
    pub sightings: Vec<(Time, MemberIndex, MemberIndex)>,
    /// Checks done and found in the shared cache.
    pub totals: Totals,
    /// Hash over all events.
    pub trace: String,
    /// Number of events.
    pub events: u64,
    /// Names of the safety properties that were checked after every event.
    pub invariants: Vec<&'static str>,
    /// How often the authors of models without names could be recognised.
    pub linkage: Option<Linkage>,
    /// Seconds that the run took here.
    pub seconds: f64,
    /// When it ended, on the federation's clock.
    pub ended: Time,
}

/// Runs one federation to its end.
///
/// # Errors
/// [`RunError`]: setup, a violated property, or a federation that does not finish.
pub fn federate(
    scenario: &Scenario,
    federation: &Federation,
    faults: &[Fault],
    options: &mut Options<'_>,
    threads: &Arc<Threads>,
) -> Result<RunRecord, RunError> {
    let real = options.environment.is_some();
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
        environment: make,
        progress,
        audit: audited,
        limit,
        ..
    } = options;
    block_on(runtime, async {
        let origin = tokio::time::Instant::now();
        let reading = if real { READ_REAL } else { READ_VIRTUAL };
        let (epoch, faulty) = (federation.epoch.clone(), federation.faulty.clone());
        let recorder = Recorder::new(epoch, faulty, origin, reading);
        let config = EnvironmentConfig {
            federation,
            recorder: &recorder,
            checks: &checks,
            faults,
        };
        let environment: Box<dyn Environment> = match make {
            Some(make) => make(&config).map_err(RunError::Environment)?,
            None => {
                let (links, costs) = (scenario.network.clone(), scenario.costs);
                Box::new(VirtualEnvironment::new(
                    &config,
                    links,
                    costs,
                    threads.clone(),
                ))
            }
        };
        let director = Director::new(federation, environment, recorder.clone(), faults)?;
        let Directed {
            environment,
            complete,
            stops,
            marks,
        } = director
            .run(bound(federation), *limit, &mut **progress)
            .await?;
        recorder.ended();
        if let Some(violation) = recorder.read().violation.clone() {
            let seed = federation.seed;
            return Err(RunError::Violated { seed, violation });
        }
        if *audited {
            let seed = federation.seed;
            audit(federation, &environment.disks(), &recorder)
                .map_err(|what| RunError::Audit { seed, what })?;
        }
        let trace = format!("{:#}", recorder.trace());
        let ended = recorder.now();
        let (traffic, work) = (environment.traffic(), environment.work());
        let invariants = recorder.invariants();
        let mut log = recorder.read();
        Ok(RunRecord {
            mesh: environment.mesh(),
            notices: std::mem::take(&mut log.notices),
            traffic,
            work,
            complete,
            stops,
            marks,
            sightings: std::mem::take(&mut log.sightings),
            totals: checks.totals(),
            trace,
            events: log.events,
            linkage: log.linkage.result(),
            invariants,
            seconds: began.elapsed().as_secs_f64(),
            ended,
        })
    })
}

/// The time after which a federation counts as stuck: twice as long as all rounds take if every
/// faulty member leads before an honest one.
fn bound(federation: &Federation) -> Duration {
    let epoch = &federation.epoch;
    let views = 2 * epoch.roster.faulty() as u32 + 4;
    let rounds = u32::try_from(epoch.charter.rounds)
        .unwrap_or(u32::MAX)
        .saturating_add(4);
    let view = epoch.beat() * (epoch.charter.view_timeout + 16 * 4);
    view.saturating_mul(views.saturating_mul(rounds))
        .saturating_mul(2)
}
