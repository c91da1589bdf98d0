//! Decides when a node that runs with `--until-done` may end.
//!
//! A member that comes back late catches up from the others, so a node must not end too early. It
//! ends [`LINGER`] heartbeats after every other member has reported that it holds the last round. It
//! waits for a member that has not reported so as long as that member can be reached, and for a
//! grace period after it was last reachable.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use protocol::{Epoch, MemberIndex, Report};
use silo::Notice;

/// Beats between the last report and the end: the node's own last messages still have to arrive.
const LINGER: u32 = 2;
/// The grace period: this number of heartbeats, and at least [`SHORTEST`].
const HEARTBEATS: u32 = 20;
const SHORTEST: Duration = Duration::from_secs(30);
/// Number of grace periods after which a node ends in any case.
const GRACES: u32 = 20;

/// Tracks which other members have finished, and which can be reached.
#[derive(Debug)]
pub(super) struct Leaving {
    others: usize,
    linger: Duration,
    grace: Duration,
    /// When the last round was adopted here.
    complete: Option<Instant>,
    /// Members that have reported that they adopted the last round.
    done: BTreeSet<MemberIndex>,
    /// When the last of them reported it.
    all: Option<Instant>,
    reachable: BTreeSet<MemberIndex>,
    /// When a member that is not done was last reachable.
    needed: Instant,
}

impl Leaving {
    /// For a federation, with another grace period than the usual one if given.
    pub(super) fn new(epoch: &Epoch, grace: Option<Duration>, now: Instant) -> Self {
        let others = epoch.roster.len() - 1;
        Self {
            others,
            linger: epoch.heartbeat() * LINGER,
            grace: grace.unwrap_or(SHORTEST.max(epoch.heartbeat() * HEARTBEATS)),
            complete: None,
            done: BTreeSet::new(),
            all: (others == 0).then_some(now),
            reachable: BTreeSet::new(),
            needed: now,
        }
    }

    /// Takes note of what the silo reports.
    pub(super) fn observe(&mut self, notice: &Notice, now: Instant) {
        match notice {
            Notice::Protocol(Report::Complete { .. }) => {
                self.complete.get_or_insert(now);
            }
            Notice::Protocol(Report::MemberComplete { member }) => {
                self.done.insert(*member);
                if self.done.len() == self.others {
                    self.all.get_or_insert(now);
                }
            }
            _ => {}
        }
    }

    /// Takes note that a member can be reached (`up`), or no longer.
    pub(super) fn reach(&mut self, member: MemberIndex, up: bool, now: Instant) {
        if !self.done.contains(&member) {
            self.needed = now;
        }
        if up {
            self.reachable.insert(member)
        } else {
            self.reachable.remove(&member)
        };
    }

    /// Number of members that can be reached.
    pub(super) fn reachable(&self) -> usize {
        self.reachable.len()
    }

    /// The reason to end now, if there is one.
    pub(super) fn reason(&mut self, now: Instant) -> Option<&'static str> {
        let complete = self.complete?;
        if let Some(all) = self.all {
            let since = now - all.max(complete);
            return (since >= self.linger).then_some("every member holds the last round");
        }
        if self
            .reachable
            .iter()
            .any(|member| !self.done.contains(member))
        {
            self.needed = now;
        }
        let alone = now - self.needed.max(complete) >= self.grace;
        let enough = now - complete >= self.grace * GRACES;
        (alone || enough).then_some(
            "this node holds the last round, and the members without it did not come back in time",
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::parameters::ProtocolParameters;

    use super::*;
    use crate::fixture;

    fn epoch(n: u8) -> Epoch {
        let protocol = ProtocolParameters {
            min_contributions: n.into(),
            ..fixture::protocol()
        };
        fixture::epoch(fixture::silos(n, 0), protocol)
    }

    fn complete() -> Notice {
        Notice::Protocol(Report::Complete { last: 1 })
    }

    fn done(member: u16) -> Notice {
        let member = MemberIndex(member);
        Notice::Protocol(Report::MemberComplete { member })
    }

    #[test]
    fn a_node_ends_after_every_member_has_reported_the_last_round() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut leaving = Leaving::new(&epoch(3), None, start);
        leaving.observe(&done(1), at(1));
        leaving.observe(&done(2), at(2));
        assert_eq!(leaving.reason(at(900)), None, "not done itself");
        leaving.observe(&complete(), at(900));
        assert_eq!(
            leaving.reason(at(901)),
            None,
            "its last messages may still be in transit"
        );
        assert!(leaving.reason(at(902)).is_some());
    }

    #[test]
    fn a_reachable_member_is_waited_for_and_an_unreachable_one_only_for_a_grace_period() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut leaving = Leaving::new(&epoch(3), None, start);
        leaving.observe(&complete(), at(10));
        leaving.observe(&done(1), at(10));
        leaving.reach(MemberIndex(2), true, at(11));
        assert_eq!(
            leaving.reason(at(100)),
            None,
            "member 2 can be reached and is not done"
        );
        leaving.reach(MemberIndex(2), false, at(110));
        assert_eq!(
            leaving.reason(at(139)),
            None,
            "the grace period of member 2 has not ended"
        );
        assert!(leaving.reason(at(140)).is_some());
        leaving.reach(MemberIndex(2), true, at(141));
        assert_eq!(
            leaving.reason(at(141)),
            None,
            "member 2 can be reached again"
        );
        assert!(leaving.reason(at(610)).is_some(), "waiting is bounded");
    }

    #[test]
    fn a_federation_of_one_member_ends_at_once() {
        let start = Instant::now();
        let mut leaving = Leaving::new(&epoch(1), None, start);
        assert_eq!(leaving.reason(start), None);
        leaving.observe(&complete(), start);
        assert!(leaving.reason(start + Duration::from_secs(2)).is_some());
    }
}
