//! When a node that was told to end by itself may do so.
//!
//! A member that comes back late catches up from the others, so nobody may leave it behind lightly.
//! A node leaves [`LINGER`] beats after every other member has said that it holds the last round.
//! A member that does not say so is waited for as long as it can be reached; one that cannot be
//! reached is given a grace, counted from the moment that it was last there.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use protocol::{Epoch, MemberIndex, Report};
use silo::Notice;

/// Beats between knowing that nobody needs this node and leaving: what it said last still has to
/// arrive.
const LINGER: u32 = 2;
/// The grace: that many beats, and at least [`SHORTEST`].
const BEATS: u32 = 20;
const SHORTEST: Duration = Duration::from_secs(30);
/// Graces in all after which a node leaves whatever the others do.
const GRACES: u32 = 20;

/// What a node knows of where the others are.
#[derive(Debug)]
pub(super) struct Leaving {
    others: usize,
    linger: Duration,
    grace: Duration,
    /// When the last round was adopted here.
    complete: Option<Instant>,
    /// Who said that it has adopted the last round.
    done: BTreeSet<MemberIndex>,
    /// When the last of them said so.
    all: Option<Instant>,
    reachable: BTreeSet<MemberIndex>,
    /// When somebody who is not done was last reachable.
    needed: Instant,
}

impl Leaving {
    /// In that epoch, with another grace than the usual one if given.
    pub(super) fn new(epoch: &Epoch, grace: Option<Duration>, now: Instant) -> Self {
        let others = epoch.roster.len() - 1;
        Self {
            others,
            linger: epoch.beat() * LINGER,
            grace: grace.unwrap_or(SHORTEST.max(epoch.beat() * BEATS)),
            complete: None,
            done: BTreeSet::new(),
            all: (others == 0).then_some(now),
            reachable: BTreeSet::new(),
            needed: now,
        }
    }

    /// What the silo says.
    pub(super) fn hear(&mut self, notice: &Notice, now: Instant) {
        match notice {
            Notice::Protocol(Report::Complete) => {
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

    /// A member can be reached, or not any more.
    pub(super) fn reach(&mut self, member: MemberIndex, up: bool, now: Instant) {
        if !self.done.contains(&member) {
            self.needed = now;
        }
        match up {
            true => self.reachable.insert(member),
            false => self.reachable.remove(&member),
        };
    }

    /// How many members can be reached.
    pub(super) fn reachable(&self) -> usize {
        self.reachable.len()
    }

    /// Why it is time to go, if it is.
    pub(super) fn why(&mut self, now: Instant) -> Option<&'static str> {
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
            "the last round is held here, and the members that do not have it did not come for it",
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::SecretKey;
    use protocol::charter::{Charter, Genesis, Rotation, Verification};
    use protocol::roster::Silo;

    use super::*;

    fn epoch(n: u8) -> Epoch {
        let silo = |at: u8| Silo {
            name: format!("{at}"),
            key: SecretKey::from_bytes(&[at; 32]).public(),
        };
        let charter = Charter {
            name: "test".into(),
            work: Vec::new(),
            start: protocol::Hash([0; 32]),
            rounds: 1,
            beat_ms: 1000,
            patience: 4,
            limit: 20,
            minimum: n.into(),
            rotation: Rotation::EveryRound,
            verification: Verification::Full,
            names_shown: false,
            blob_limit: 1,
            keep: 1,
            discovery: false,
        };
        let silos = (0..n).map(silo).collect();
        Epoch::first(&Genesis { silos, charter }).unwrap()
    }

    fn complete() -> Notice {
        Notice::Protocol(Report::Complete)
    }

    fn done(member: u16) -> Notice {
        let member = MemberIndex(member);
        Notice::Protocol(Report::MemberComplete { member })
    }

    #[test]
    fn a_node_goes_when_everybody_is_done_and_not_before() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut leaving = Leaving::new(&epoch(3), None, start);
        leaving.hear(&done(1), at(1));
        leaving.hear(&done(2), at(2));
        assert_eq!(leaving.why(at(900)), None, "not done itself");
        leaving.hear(&complete(), at(900));
        assert_eq!(leaving.why(at(901)), None, "what it said still travels");
        assert!(leaving.why(at(902)).is_some());
    }

    #[test]
    fn who_can_be_reached_is_waited_for_and_who_cannot_is_given_a_grace() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut leaving = Leaving::new(&epoch(3), None, start);
        leaving.hear(&complete(), at(10));
        leaving.hear(&done(1), at(10));
        leaving.reach(MemberIndex(2), true, at(11));
        assert_eq!(leaving.why(at(100)), None, "2 is there and not done");
        leaving.reach(MemberIndex(2), false, at(110));
        assert_eq!(leaving.why(at(139)), None, "2 may be on its way back");
        assert!(leaving.why(at(140)).is_some());
        leaving.reach(MemberIndex(2), true, at(141));
        assert_eq!(leaving.why(at(141)), None, "2 came back");
        assert!(leaving.why(at(610)).is_some(), "nobody waits for ever");
    }

    #[test]
    fn a_member_alone_needs_nobody() {
        let start = Instant::now();
        let mut leaving = Leaving::new(&epoch(1), None, start);
        assert_eq!(leaving.why(start), None);
        leaving.hear(&complete(), start);
        assert!(leaving.why(start + Duration::from_secs(2)).is_some());
    }
}
