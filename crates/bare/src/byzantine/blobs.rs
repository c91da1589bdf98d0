//! Models that are withheld.

use std::collections::BTreeSet;
use std::time::Duration;

use protocol::message::Body;
use protocol::{Hash, MemberIndex, Time};

use super::{Actions, Attacker, Deviation, OutgoingFrame};

/// Withholds blobs: its local models, or every model and outcome that it holds.
pub(super) struct Withhold {
    /// The models of its own contributions; `None`: all blobs.
    own: Option<BTreeSet<Hash>>,
    /// For each member, whether blobs are withheld from it.
    from: Vec<bool>,
    /// Time at which it stops; `None`: never.
    until: Option<Time>,
}

impl Withhold {
    pub(super) fn new(attacker: &mut Attacker, own: bool) -> Self {
        let all = attacker.random.chance(0.5);
        let from = attacker
            .random_members()
            .into_iter()
            .map(|one| one || all)
            .collect();
        let span = attacker
            .random
            .span(Duration::from_secs(3), Duration::from_secs(60));
        let until = attacker.random.chance(0.4).then_some(Time::ZERO + span);
        Self {
            own: own.then(BTreeSet::new),
            from,
            until,
        }
    }
}

impl Deviation for Withhold {
    fn send(
        &mut self,
        _: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        if let (Some(message), Some(own)) = (outgoing.message, &mut self.own)
            && let Body::Contribution(contribution) = &message.body
        {
            actions.misdeeds += u64::from(own.insert(contribution.fields.blob));
        }
        false
    }

    fn serves(&self, attacker: &Attacker, to: MemberIndex, blob: &Hash) -> bool {
        let meant = self.own.as_ref().is_none_or(|own| own.contains(blob));
        let over = self.until.is_some_and(|until| attacker.now >= until);
        !meant || over || !self.from[to.at()]
    }
}
