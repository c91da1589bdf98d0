//! Nodes that stopped, and the times of their stops.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::rotation::StoppedMember;

use super::lines::{EventLine, NodeLog};
use node::events::NodeEvent;

/// Seconds without a line, at the end of the logs, after which a node counts as stopped.
const SILENT: f64 = 30.0;
/// Seconds until the others notice that a node is gone: QUIC gives a connection up then.
const NOTICED: f64 = 10.0;

/// A node that stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedNode {
    /// Institution of the node.
    pub silo: String,
    /// Time of the stop.
    pub at: SystemTime,
    /// Time of the restart; `None`: never.
    pub back: Option<SystemTime>,
}

/// A stop that is known, with times since 1970.
pub(super) fn given(
    stop: &StoppedNode,
    place: &impl Fn(&str) -> Option<usize>,
) -> Option<StoppedMember> {
    let seconds = |time: SystemTime| {
        let since = time.duration_since(UNIX_EPOCH);
        since.map_or(0.0, |since| since.as_secs_f64())
    };
    Some(StoppedMember {
        at: seconds(stop.at),
        member: place(&stop.silo)?,
        back: stop.back.map(seconds),
    })
}

/// Returns whether the node said that it leaves, in the lines of one of its runs.
fn orderly(run: Option<&[EventLine]>) -> bool {
    let leaves = |line: &EventLine| matches!(line.event, NodeEvent::Leaving { .. });
    run.is_some_and(|run| run.iter().any(leaves))
}

/// Nodes that stopped, with times since 1970.
///
/// A node stopped before every start but its first. It stopped at the end if it did not say that it
/// leaves, and another node lost its connection to it after its last line, or another one left later in
/// order, or the logs go on for a while. It stopped with its last line, or later: [`NOTICED`] before
/// another node first lost its connection to it.
pub(super) fn stops(
    nodes: &[NodeLog],
    ended: f64,
    place: &impl Fn(&str) -> Option<usize>,
) -> Vec<StoppedMember> {
    let mut stops = Vec::new();
    let left = |node: &NodeLog| {
        let last = orderly(node.lines.split(EventLine::is_start).next_back());
        last.then(|| node.lines.last().map(|last| last.at))
            .flatten()
    };
    for node in nodes {
        let Some(member) = place(&node.log.silo) else {
            continue;
        };
        let starts = node.lines.iter().enumerate().skip(1);
        let starts = starts.filter(|(_, line)| line.is_start());
        // One that left in order did not stop.
        let before = |nth: usize| {
            let mut runs = node.lines[..nth].split(EventLine::is_start);
            orderly(runs.next_back())
        };
        let starts = starts.filter(|(nth, _)| !before(*nth));
        let mut ends: Vec<(f64, Option<f64>)> = starts
            .map(|(nth, line)| (node.lines[nth - 1].at, Some(line.at)))
            .collect();
        let last = node.lines.last().map(|last| last.at);
        let last = last.filter(|_| left(node).is_none());
        ends.extend(last.map(|last| (last, None)));
        for (last, back) in ends {
            let others = || nodes.iter().filter(|other| other.log.silo != node.log.silo);
            let lines = others().flat_map(|other| &other.lines);
            let lost = lines.filter(|line| {
                matches!(&line.event, NodeEvent::PeerDown { member } if *member == node.log.silo)
                    && line.at >= last
                    && back.is_none_or(|back| line.at <= back)
            });
            let noticed = lost.map(|line| line.at).reduce(f64::min);
            let later = others().filter_map(left).any(|left| left > last);
            if back.is_some() || noticed.is_some() || later || ended - last > SILENT {
                let noticed = noticed.map_or(last, |noticed| noticed - NOTICED);
                let at = noticed.max(last);
                stops.push(StoppedMember { at, member, back });
            }
        }
    }
    stops
}
