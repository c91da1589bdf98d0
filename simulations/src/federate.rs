//! Runs one federation to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::{MemberIndex, Time};
use silo::{Checks, Notice, Totals, block_on};

use crate::audit::audit;
use crate::director::Director;
use crate::error::RunError;
use crate::federation::Federation;
use crate::network::Traffic;
use crate::options::Options;
use crate::pool::Threads;
use crate::recorder::Ear;
use crate::scenario::{Fault, Scenario};
use crate::world::{Mesh, Stage, Virtual, World};

/// How long a Receipt may wait, in queues and for the pool that opens envelopes, until its silo has
/// read it.
const READ_VIRTUAL: Duration = Duration::from_secs(1);
/// The same on a real clock, where a busy machine may stand still for a while.
const READ_REAL: Duration = Duration::from_secs(10);

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

/// Runs one federation to its end.
pub(crate) fn federate(
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
