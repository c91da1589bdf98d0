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
pub(crate) struct RunRecord {
    pub(crate) mesh: Mesh,
    pub(crate) notices: Vec<(Time, MemberIndex, Notice)>,
    pub(crate) traffic: Vec<Traffic>,
    /// The modelled time that every member worked besides training.
    pub(crate) work: Vec<Duration>,
    /// Whether every honest silo was complete in the end, except those killed without a restart.
    pub(crate) complete: bool,
    pub(crate) stops: Vec<Stop>,
    pub(crate) marks: Vec<Mark>,
    /// Members whose contributions a member got, each once: when, who, whose.
    pub(crate) sightings: Vec<(Time, MemberIndex, MemberIndex)>,
    pub(crate) totals: Totals,
    pub(crate) trace: String,
    pub(crate) events: u64,
    pub(crate) invariants: Vec<&'static str>,
    /// How often the authors of models without names could be recognised.
    pub(crate) linkage: Option<Linkage>,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::scenario::Overrides;
    use crate::summary::{AdoptedModel, adopted_models};

    #[test]
    fn equal_outcomes_of_all_members_take_memory_once_however_often_they_were_computed() {
        let overrides = Overrides {
            rounds: Some(2),
            silos: Some(4),
            ..Overrides::default()
        };
        let scenario = Scenario::load("null").unwrap().with(&overrides).unwrap();
        let study = scenario.study(None).unwrap();
        let federation = Federation::of(&scenario, &study).unwrap();
        for memo in [false, true] {
            let mut options = Options {
                memo,
                ..Options::default()
            };
            let threads = Threads::new(2);
            let recorded = federate(&scenario, &federation, &[], &mut options, &threads).unwrap();
            let adopted = adopted_models(&recorded.notices);
            for round in [1, 2] {
                let of_round: Vec<_> = adopted.iter().filter(|one| one.round == round).collect();
                let [first, others @ ..] = &of_round[..] else {
                    panic!("nobody adopted round {round}")
                };
                assert_eq!(others.len(), 3);
                for other in others {
                    let model = |one: &AdoptedModel| one.state.models[0].document().as_ptr();
                    assert_eq!(model(first), model(other), "round {round}, memo {memo}");
                    // Computed once, the outcome itself is one.
                    assert_eq!(Arc::ptr_eq(&first.state, &other.state), memo);
                }
            }
        }
    }
}
