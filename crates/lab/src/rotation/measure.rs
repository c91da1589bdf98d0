//! Measurements of a policy from one run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use learn::Study;
use methods::learner::Split;
use protocol::{MemberIndex, Report};
use silo::Notice;

use super::result::{MetricPoint, RotationRun, SeenAuthors};
use super::takeover::{MemberEvent, take_overs};
use super::timeline::timeline;
use crate::summary::{AdoptedModel, adopted_models, stops};
use simulations::Federation;
use simulations::ProtocolRecord;
use simulations::RunError;
use simulations::RunRecord;
use simulations::pool::Threads;

/// Most silos whose models are measured after every round; of more, these many are measured, spread
/// evenly over the roster.
const MEASURED: usize = 24;

/// The trial that this record is of.
pub(super) fn trial(
    federation: &Federation,
    study: &Study,
    recorded: &RunRecord,
    threads: &Arc<Threads>,
) -> Result<RotationRun, RunError> {
    let n = study.silos.len();
    let protocol = protocol(recorded);
    let end = protocol.ended.elapsed().as_secs_f64();
    let reports = || {
        recorded
            .notices
            .iter()
            .filter_map(|(at, by, notice)| match notice {
                Notice::Protocol(report) => Some((*at, *by, report)),
                _ => None,
            })
    };
    let views = timeline(reports(), end);
    let stops = stops(protocol);
    let mut events: Vec<MemberEvent> = reports()
        .filter_map(|(at, _, report)| event(at.elapsed().as_secs_f64(), report))
        .collect();
    events.extend(stops.iter().map(|stop| MemberEvent::Stopped {
        at: stop.at,
        member: stop.member,
    }));
    let total = |of: &simulations::network::Traffic| of.messages + of.blobs;
    let mut led = vec![0; n];
    let (mut lead_bytes, mut lead_work) = (0, 0.0);
    let mut before = (vec![0; n], vec![0.0; n]);
    for mark in &protocol.marks {
        let lead = mark.lead.at();
        led[lead] += 1;
        let bytes: Vec<u64> = mark.traffic.iter().map(total).collect();
        let work: Vec<f64> = mark.work.iter().map(|work| work.as_secs_f64()).collect();
        lead_bytes += bytes[lead] - before.0[lead];
        lead_work += work.get(lead).unwrap_or(&0.0) - before.1.get(lead).unwrap_or(&0.0);
        before = (bytes, work);
    }
    let metrics = metrics(federation, study, &recorded.notices, threads)?;
    let curve = protocol.marks.iter().map(|mark| MetricPoint {
        round: mark.round,
        seconds: mark.at.as_secs_f64(),
        metric: metrics.get(&mark.round).copied(),
    });
    Ok(RotationRun {
        seed: federation.seed,
        trace: protocol.trace.clone(),
        rounds: protocol.marks.len() as u64,
        complete: protocol.complete,
        seconds: protocol
            .marks
            .last()
            .map_or(0.0, |mark| mark.at.as_secs_f64()),
        views_failed: views
            .iter()
            .filter(|view| view.result == "nullified")
            .count() as u64,
        take_overs: take_overs(&events),
        stops,
        bytes: protocol.traffic.iter().map(total).collect(),
        work: protocol
            .work
            .iter()
            .map(|work| work.as_secs_f64())
            .collect(),
        lead_bytes,
        lead_work,
        led,
        seen: seen(protocol, n),
        curve: curve.collect(),
        views,
    })
}

fn event(at: f64, report: &Report) -> Option<MemberEvent> {
    match report {
        Report::Entered { view, lead, round } => Some(MemberEvent::Entered {
            at,
            view: *view,
            lead: lead.at(),
            round: *round,
        }),
        Report::Final {
            round, view, lead, ..
        } => Some(MemberEvent::Final {
            at,
            round: *round,
            view: *view,
            lead: lead.at(),
        }),
        _ => None,
    }
}

/// Returns what there was of messages: experiments with leads run over a network.
fn protocol(recorded: &RunRecord) -> &ProtocolRecord {
    let protocol = recorded.protocol.as_ref();
    protocol.expect("a run over a network records its messages")
}

/// Returns what curious members have seen after every final round.
fn seen(protocol: &ProtocolRecord, n: usize) -> Vec<SeenAuthors> {
    let mut authors = vec![BTreeSet::<MemberIndex>::new(); n];
    let mut sightings = protocol.sightings.iter().peekable();
    let others = n.saturating_sub(1).max(1) as f64;
    let mut all = Vec::new();
    for mark in &protocol.marks {
        while let Some((_, by, author)) = sightings.next_if(|(at, ..)| at.elapsed() <= mark.at) {
            if by != author {
                authors[by.at()].insert(*author);
            }
        }
        let shares = authors.iter().map(|seen| seen.len() as f64 / others);
        all.push(SeenAuthors {
            round: mark.round,
            mean: shares.clone().sum::<f64>() / n as f64,
            most: shares.fold(0.0, f64::max),
        });
    }
    all
}

/// The mean held-out metric of the models adopted with each round, over the silos that are measured.
fn metrics(
    federation: &Federation,
    study: &Study,
    notices: &[(protocol::Time, MemberIndex, Notice)],
    threads: &Arc<Threads>,
) -> Result<BTreeMap<u64, f64>, RunError> {
    let n = study.silos.len();
    let every = n.div_ceil(MEASURED);
    let chosen = |adopted: &AdoptedModel| adopted.silo.is_multiple_of(every);
    let adopted: Vec<AdoptedModel> = adopted_models(notices).into_iter().filter(chosen).collect();
    let key = study.metric.name.key();
    let jobs = adopted.iter().map(|adopted| {
        let learner = federation.members[adopted.silo].learner.clone();
        let (model, personal) = adopted.model.clone();
        move || {
            let metrics = learner.evaluate(&model, &personal, Split::Test).ok()?;
            metrics.values.get(key).copied()
        }
    });
    let values: Vec<Option<f64>> = threads.all(jobs).map_err(RunError::Setup)?;
    let mut sums = BTreeMap::<u64, (f64, f64)>::new();
    for (adopted, value) in adopted.iter().zip(values) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            let sum = sums.entry(adopted.round).or_default();
            *sum = (sum.0 + value, sum.1 + 1.0);
        }
    }
    Ok(sums
        .into_iter()
        .map(|(round, (sum, count))| (round, sum / count))
        .collect())
}
