//! Institutions that give a secure-aggregation round up of which no quorum certifies an outcome. Nobody is lost.

use std::time::Duration;

use protocol::effects::Input;
use protocol::{Member, Time};

use crate::random::Random;

use super::{BareEvent, FailureKind, Simulator};

/// Longest time until an institution first looks at its node, and between two such looks.
const LONGEST: Duration = Duration::from_secs(20);

impl Simulator<'_> {
    /// Draws when each institution first looks whether its node has a round without an outcome.
    pub(super) fn plan_give_up(&mut self) {
        let mut random = Random::new(self.seed, "give up");
        for node in 0..self.nodes.len() {
            let after = random.span(Duration::ZERO, LONGEST);
            self.schedule(after, BareEvent::GiveUp(node));
        }
        // Until then all have looked again.
        self.decided = self.decided.max(Time::ZERO + 3 * LONGEST);
    }

    /// An institution gives up the round that is open at its node, if one is, and looks again later for as
    /// long as the first agreement is in force.
    pub(super) fn told_to_give_up(&mut self, node: usize) -> Result<(), FailureKind> {
        if self.nodes[node].epoch > 0 {
            return Ok(());
        }
        let draw = format!("look {node} at {:?}", self.now);
        let after = Random::new(self.seed, &draw).span(LONGEST / 10, LONGEST);
        self.schedule(after, BareEvent::GiveUp(node));
        let Some(round) = self.nodes[node].member.as_ref().map(Member::round) else {
            return Ok(());
        };
        self.tell(Some(node), || format!("is told to give round {round} up"));
        self.feed(node, Input::GiveUp { round })
    }
}
