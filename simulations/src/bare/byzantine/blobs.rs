//! Models that are not given to those who need them.

use std::collections::BTreeSet;
use std::time::Duration;

use protocol::message::Body;
use protocol::{Hash, MemberIndex, Time};

use super::{Act, Lie, Said, Who};

/// Keeps blobs to itself: its own models, or every model and outcome that it has.
pub(super) struct Withhold {
    /// Its own contributions; `None`: everything.
    own: Option<BTreeSet<Hash>>,
    /// Who gets nothing.
    from: Vec<bool>,
    /// Until when.
    until: Option<Time>,
}

impl Withhold {
    pub(super) fn new(who: &mut Who, own: bool) -> Self {
        let all = who.random.chance(0.5);
        let from = who.some().into_iter().map(|one| one || all).collect();
        let span = who
            .random
            .span(Duration::from_secs(3), Duration::from_secs(60));
        let until = who.random.chance(0.4).then_some(Time::ZERO + span);
        Self {
            own: own.then(BTreeSet::new),
            from,
            until,
        }
    }
}

impl Lie for Withhold {
    fn say(&mut self, _: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        if let (Some(message), Some(own)) = (said.message, &mut self.own)
            && let Body::Contribution(contribution) = &message.body
        {
            act.bad += u64::from(own.insert(contribution.fields.blob));
        }
        false
    }

    fn gives(&self, who: &Who, to: MemberIndex, blob: &Hash) -> bool {
        let meant = self.own.as_ref().is_none_or(|own| own.contains(blob));
        let over = self.until.is_some_and(|until| who.now >= until);
        !meant || over || !self.from[to.at()]
    }
}
