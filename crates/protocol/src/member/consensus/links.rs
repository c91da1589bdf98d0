//! Members that can be reached, and how fast they answer.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::parameters::Epoch;
use crate::roster::MemberIndex;

/// What this member knows of the presence of others.
pub(in crate::member) struct Presence {
    /// Members that cannot be reached.
    unreachable: BTreeSet<MemberIndex>,
    round_trips: Vec<Option<Duration>>,
    /// The same, ascending, with 0 for this member itself.
    sorted: Vec<Duration>,
    /// The shortest D, as it follows from the round trips.
    shortest_phase: Duration,
}

impl Presence {
    pub(in crate::member) fn new(epoch: &Epoch) -> Self {
        Self {
            unreachable: BTreeSet::new(),
            round_trips: vec![None; epoch.roster.len()],
            sorted: vec![Duration::ZERO],
            shortest_phase: epoch.heartbeat() / 2,
        }
    }

    /// A member cannot be reached. This alone does not excuse it, because it may be back within
    /// patience.
    pub(in crate::member) fn down(&mut self, peer: MemberIndex) {
        self.unreachable.insert(peer);
    }

    /// A member can be reached, and answers after `round_trip`.
    pub(in crate::member) fn up(&mut self, epoch: &Epoch, peer: MemberIndex, round_trip: Duration) {
        self.unreachable.remove(&peer);
        if let Some(known) = self.round_trips.get_mut(peer.at()) {
            if let Some(before) = known.replace(round_trip) {
                let at = self.sorted.partition_point(|one| *one < before);
                self.sorted.remove(at);
            }
            let at = self.sorted.partition_point(|one| *one < round_trip);
            self.sorted.insert(at, round_trip);
        }
        let heartbeat = epoch.heartbeat();
        let last = self.sorted.len() - 1;
        let trip = self.sorted[last.min(epoch.roster.quorum() - 1)];
        self.shortest_phase = (heartbeat / 2).max((4 * trip).min(16 * heartbeat));
    }

    /// D, the time that one phase of a view may take: D0 · 2^k with k = min(4, views that failed
    /// since the last final learning block). D0 is half a heartbeat, or four times the q-th smallest
    /// round trip (at most 16 heartbeats) if that is longer.
    pub(in crate::member) fn phase_time(&self, failed: u64) -> Duration {
        self.shortest_phase * (1 << failed.min(4) as u32)
    }

    /// Whether a member can be reached, as far as this one knows.
    pub(in crate::member) fn reaches(&self, member: MemberIndex) -> bool {
        !self.unreachable.contains(&member)
    }
}
