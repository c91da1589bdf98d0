//! Measurements of the rotation from one run with processes: the lines of the nodes, and the counts of the
//! director.

use std::collections::{BTreeMap, BTreeSet};

use crate::rotation::{MetricPoint, RotationRun, SeenAuthors};
use simulations::Scenario;

use super::DeployError;
use super::director::{Logs, Ran};
use crate::history::{self, History, StopsAndClocks};

/// The trial of a run.
pub(super) fn trial(
    scenario: &Scenario,
    ran: &Ran,
    logs: &Logs,
) -> Result<RotationRun, DeployError> {
    let known = StopsAndClocks {
        stops: Some(ran.stops.clone()),
        ahead: logs.ahead.clone(),
    };
    let history = history::read_known(&logs.files, &known)?;
    // Histories name silos in the order of the alphabet, trials in that of the roster.
    let place = |silo: usize| {
        let name = history.name(silo);
        let found = logs.names.iter().position(|known| known == name);
        found.unwrap_or_default()
    };
    let n = logs.names.len();
    let metrics = metrics(&history);
    let curve = history.rounds.iter().map(|round| MetricPoint {
        round: round.round,
        seconds: round.at,
        metric: metrics.get(&round.round).copied(),
    });
    let mut led = vec![0; n];
    history
        .rounds
        .iter()
        .for_each(|round| led[place(round.lead)] += 1);
    let (mut lead_bytes, mut lead_work) = (0, 0.0);
    let mut before = (vec![0; n], vec![0.0; n]);
    for mark in &ran.marks {
        let lead = mark.lead;
        if let Some(sent) = &mark.sent {
            lead_bytes += sent[lead].saturating_sub(before.0[lead]);
            before.0.clone_from(sent);
        }
        lead_work += (mark.cpu[lead] - before.1[lead]).max(0.0);
        before.1.clone_from(&mark.cpu);
    }
    let views = history.views.iter().cloned();
    let views = views.map(|mut view| {
        view.lead = place(view.lead);
        view
    });
    let mut take_overs = history.take_overs.clone();
    for one in &mut take_overs {
        (one.lead, one.next) = (place(one.lead), one.next.map(place));
    }
    let mut stops = history.stops.clone();
    stops
        .iter_mut()
        .for_each(|stop| stop.member = place(stop.member));
    Ok(RotationRun {
        seed: scenario.seed,
        trace: String::new(),
        rounds: history.rounds.len() as u64,
        complete: ran.complete,
        seconds: history.rounds.last().map_or(0.0, |round| round.at),
        views_failed: history.failed() as u64,
        take_overs,
        stops,
        bytes: ran.sent.clone().unwrap_or_default(),
        work: ran.cpu.clone(),
        lead_bytes,
        lead_work,
        led,
        seen: seen(&history, n),
        curve: curve.collect(),
        views: views.collect(),
    })
}

/// Returns what curious leads have seen after every final round: its lead has the contributions in it.
fn seen(history: &History, n: usize) -> Vec<SeenAuthors> {
    let mut authors = vec![BTreeSet::<usize>::new(); history.silos.len()];
    let others = n.saturating_sub(1).max(1) as f64;
    let after = |round: &history::HistoryRound| {
        let own = &mut authors[round.lead];
        own.extend(round.contributors.iter().filter(|by| **by != round.lead));
        let shares = authors.iter().map(|seen| seen.len() as f64 / others);
        SeenAuthors {
            round: round.round,
            mean: shares.clone().sum::<f64>() / n as f64,
            most: shares.fold(0.0, f64::max),
        }
    };
    history.rounds.iter().map(after).collect()
}

/// The mean held-out metric over silos, by round.
fn metrics(history: &History) -> BTreeMap<u64, f64> {
    let mut sums = BTreeMap::<u64, (f64, f64)>::new();
    for metric in &history.metrics {
        let sum = sums.entry(metric.round).or_default();
        *sum = (sum.0 + metric.value, sum.1 + 1.0);
    }
    let means = sums.into_iter();
    means
        .map(|(round, (sum, count))| (round, sum / count))
        .collect()
}
