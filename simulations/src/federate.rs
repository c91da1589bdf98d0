//! Runs one federation to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::parameters::RoundMode;
use protocol::roster::MOST_MEMBERS;
use protocol::{MemberIndex, Report, Time};
use silo::{Checks, Notice, block_on};

use crate::audit::audit;
use crate::contributions::GroupingBasis;
use crate::direct;
use crate::director::{Directed, Director};
use crate::environment::{EnvironmentConfig, EnvironmentFactory, VirtualEnvironment};
use crate::error::RunError;
use crate::federation::Federation;
use crate::network::Traffic;
use crate::options::{Options, Surrounding};
use crate::pool::Threads;
use crate::record::{Led, ProtocolRecord, RoundRecord, RunRecord};
use crate::recorder::Recorder;
use crate::scenario::{Fault, Scenario};

/// How long a Receipt may wait in queues, and for the pool that opens envelopes, before its silo
/// has read it.
const READ_VIRTUAL: Duration = Duration::from_secs(1);
/// How long a Receipt may wait in this way on a real clock, where a busy machine may stand still for a while.
const READ_REAL: Duration = Duration::from_secs(10);

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
    can_carry(scenario, federation, faults, options)?;
    if matches!(options.surrounding, Surrounding::Direct) {
        return direct::federate(federation, options, threads);
    }
    let real = matches!(options.surrounding, Surrounding::Made(_));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let builder = if real {
        builder.enable_all()
    } else {
        builder.enable_time().start_paused(true)
    };
    let runtime = builder
        .build()
        .map_err(|error| RunError::Setup(error.to_string()))?;
    let signed;
    let (federation, checks) = if options.simulates_signatures() {
        signed = federation.with_simulated_signatures();
        let keys = signed.members.iter().map(|silo| silo.member.key.clone());
        (&signed, Checks::simulated(keys.collect()))
    } else {
        (federation, Checks::new(options.cache))
    };
    let began = Instant::now();
    let (keeps, basis) = (options.keep_contributions, options.keep_basis);
    let Options {
        surrounding,
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
        recorder.read().contributions = keeps.then(BTreeMap::new);
        recorder.read().basis = basis.then(GroupingBasis::default);
        let config = EnvironmentConfig {
            federation,
            recorder: &recorder,
            checks: &checks,
            faults,
        };
        let environment: Box<dyn EnvironmentFactory> = match surrounding {
            Surrounding::Made(make) => make(&config).map_err(RunError::Environment)?,
            Surrounding::Virtual | Surrounding::Direct => {
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
        let directed = director
            .run(bound(federation), *limit, &mut **progress)
            .await?;
        recorder.ended();
        if let Some(violation) = recorder.read().violation.clone() {
            let seed = federation.seed;
            return Err(RunError::Violated { seed, violation });
        }
        if *audited {
            let seed = federation.seed;
            audit(federation, &directed.environment.disks(), &recorder)
                .map_err(|what| RunError::Audit { seed, what })?;
        }
        Ok(record(federation, &recorder, &checks, directed, began))
    })
}

/// Returns whether the environment can carry this federation with these faults.
///
/// # Errors
/// [`RunError::Setup`]: a direct federation with what needs messages, or too many members for a network.
fn can_carry(
    scenario: &Scenario,
    federation: &Federation,
    faults: &[Fault],
    options: &Options<'_>,
) -> Result<(), RunError> {
    if matches!(options.surrounding, Surrounding::Direct) {
        // Masks are of messages; noise alone is not.
        let masked = match federation.epoch.protocol.privacy.mode() {
            RoundMode::Masked(_) => true,
            RoundMode::Clear | RoundMode::Named | RoundMode::Noised(..) => false,
        };
        let needs = [
            (faults.iter().any(Fault::needs_network), "a [[fault]]"),
            (masked, "a secure-aggregation round without noise"),
            (options.audit, "an audit"),
        ];
        if let Some((_, what)) = needs.into_iter().find(|(needed, _)| *needed) {
            return Err(RunError::Setup(format!(
                "{}: {what} needs messages, and a direct federation has none: choose another mesh",
                scenario.file
            )));
        }
        return Ok(());
    }
    if options.ends.is_some() {
        return Err(RunError::Setup(format!(
            "{}: a federation over a network cannot be ended from outside: choose the direct mesh, or leave out what \
             looks at every round",
            scenario.file
        )));
    }
    let n = federation.members.len();
    if n > MOST_MEMBERS {
        return Err(RunError::Setup(format!(
            "{}: {n} silos are more than {MOST_MEMBERS}, the largest federation over a network: choose the direct \
             mesh",
            scenario.file
        )));
    }
    Ok(())
}

/// The record of a run over a network that has ended.
fn record(
    federation: &Federation,
    recorder: &Recorder,
    checks: &Checks,
    directed: Directed,
    began: Instant,
) -> RunRecord {
    let Directed {
        environment,
        complete,
        stops,
        marks,
    } = directed;
    let trace = format!("{:#}", recorder.trace());
    let ended = recorder.now();
    let (traffic, work) = (environment.traffic(), environment.work());
    let invariants = recorder.invariants();
    let mut log = recorder.read();
    let notices = std::mem::take(&mut log.notices);
    let kept = log.contributions.take().unwrap_or_default();
    let basis = log.basis.take().unwrap_or_default();
    let blobs = traffic.iter().map(|sent: &Traffic| sent.blobs).sum();
    RunRecord {
        mesh: environment.mesh(),
        rounds: rounds(federation, &notices),
        notices,
        blobs: Some(blobs),
        contributions: kept.into_values().collect(),
        basis,
        seconds: began.elapsed().as_secs_f64(),
        protocol: Some(ProtocolRecord {
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
            ended,
        }),
    }
}

/// The final rounds, as the silos reported them.
fn rounds(federation: &Federation, notices: &[(Time, MemberIndex, Notice)]) -> Vec<RoundRecord> {
    let mut rounds = BTreeMap::new();
    for (at, _, notice) in notices {
        if let Notice::Protocol(Report::Final {
            round,
            view,
            lead,
            authors,
            ..
        }) = notice
        {
            rounds.entry(*round).or_insert_with(|| RoundRecord {
                round: *round,
                authors: authors.clone(),
                led: Some(Led {
                    view: *view,
                    lead: federation.epoch.roster.name(*lead).into(),
                    at: at.elapsed().as_secs_f64(),
                }),
            });
        }
    }
    rounds.into_values().collect()
}

/// The time after which a federation counts as stuck: twice as long as all rounds take if every
/// faulty member leads before an honest one.
fn bound(federation: &Federation) -> Duration {
    let epoch = &federation.epoch;
    let views = 2 * epoch.roster.faulty() as u32 + 4;
    let rounds = u32::try_from(epoch.protocol.rounds)
        .unwrap_or(u32::MAX)
        .saturating_add(4);
    let view = epoch.heartbeat() * (epoch.protocol.view_timeout + 16 * 4);
    view.saturating_mul(views.saturating_mul(rounds))
        .saturating_mul(2)
}
