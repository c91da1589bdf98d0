//! False lists of leads in secure-aggregation rounds, and false vectors, shares and outcome votes of members.

use std::collections::BTreeSet;

use protocol::envelope::Opened;
use protocol::message::{Body, KeyList, Ready};
use protocol::{Hash, MemberIndex};

use super::{Actions, Attacker, Deviation, OutgoingFrame};

/// A lead whose lists are not the one that its member made.
pub(super) enum FalseLists {
    /// Besides that one, lists without each of its members, none of which follows another.
    Many,
    /// To each member another list: without a drawn member that is not the receiver.
    ToEach,
    /// The list with keys of its own in place of another member's.
    ForeignKeys,
}

impl FalseLists {
    /// The lists in place of this one for a receiver.
    fn lists(&self, attacker: &mut Attacker, list: &KeyList, to: MemberIndex) -> Vec<KeyList> {
        let without = |left: MemberIndex| {
            let rest = list.ready.iter().filter(|ready| ready.member != left);
            let ready = rest.cloned().collect();
            KeyList { ready }
        };
        let all = list.members();
        let others: Vec<_> = all.iter().copied().filter(|by| *by != to).collect();
        match self {
            Self::Many => [list.clone()]
                .into_iter()
                .chain(all.into_iter().map(without))
                .collect(),
            Self::ToEach if others.is_empty() => Vec::new(),
            Self::ToEach => vec![without(others[attacker.random.below(others.len())])],
            Self::ForeignKeys => {
                let (me, mut foreign) = (attacker.me, list.clone());
                let mut ready = foreign.ready.iter_mut();
                if let Some(Ready { keys, .. }) = ready.find(|ready| ready.member != me) {
                    keys.public.exchange = attacker.random.bytes();
                    keys.public.share = attacker.random.bytes();
                }
                vec![foreign]
            }
        }
    }
}

impl Deviation for FalseLists {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(message) = outgoing.message else {
            return false;
        };
        let Body::KeyList(list) = &message.body else {
            return false;
        };
        let readers: Vec<_> = match outgoing.to {
            Some(to) => vec![to],
            None => attacker.others().collect(),
        };
        for to in readers {
            for list in self.lists(attacker, list, to) {
                let frame = attacker.sign(message.round, message.view, Body::KeyList(list));
                actions.send(Some(to), frame);
            }
        }
        actions.misdeeds += 1;
        true
    }
}

/// A lead that acts as if it had not received the masked vector of a member.
pub(super) struct HiddenVector;

impl Deviation for HiddenVector {
    fn receive(&mut self, attacker: &mut Attacker, opened: &Opened, actions: &mut Actions) -> bool {
        let Opened::Message(message) = opened else {
            return false;
        };
        let vector = matches!(message.body, Body::MaskedVector(_));
        let victim = message.sender == attacker.victim(message.round);
        let hidden = vector && victim && attacker.leads();
        actions.misdeeds += u64::from(hidden);
        hidden
    }
}

/// An author that sends something else than the vector that it masked. It claims to have what it names.
pub(super) struct FalseVector {
    /// True if it sends the right one, too, and the same transcript with both.
    two: bool,
    invented: BTreeSet<Hash>,
}

impl FalseVector {
    /// One that sends a transcript that does not fit.
    pub(super) fn transcript() -> Self {
        let (two, invented) = (false, BTreeSet::new());
        Self { two, invented }
    }

    /// One that sends two vectors for a list.
    pub(super) fn second() -> Self {
        let (two, invented) = (true, BTreeSet::new());
        Self { two, invented }
    }
}

impl Deviation for FalseVector {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(message) = outgoing.message else {
            return false;
        };
        let Body::MaskedVector(vector) = message.body else {
            return false;
        };
        let (mut other, invented) = (vector, attacker.random_hash());
        if self.two {
            other.vector.hash = invented;
        } else {
            other.transcript.hash = invented;
        }
        self.invented.insert(invented);
        let frame = attacker.sign(message.round, message.view, Body::MaskedVector(other));
        actions.send(outgoing.to, frame);
        actions.misdeeds += 1;
        !self.two
    }

    fn claims_blob(&self, blob: &Hash) -> bool {
        self.invented.contains(blob)
    }
}

/// An author that adds other streams to its vector than it should. Nobody can see that before the sum is
/// opened.
pub(super) struct WrongStreams {
    /// The rounds between two such vectors, at least 1.
    pub(super) every: u64,
}

impl Deviation for WrongStreams {
    fn corrupts_masks(&self, round: u64) -> bool {
        round.is_multiple_of(self.every)
    }
}

/// A member that corrupts what follows the finality of a secure-aggregation round.
pub(super) enum FalseOpening {
    /// Gives no shares away.
    NoShares,
    /// Gives false shares away.
    FalseShares,
    /// Votes for an outcome that it synthetic.
    FalseOutcome,
    /// Votes for that one and for the right one.
    TwoOutcomes,
}

impl Deviation for FalseOpening {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(message) = outgoing.message else {
            return false;
        };
        let other = match (&*self, &message.body) {
            (Self::NoShares, Body::Unmasking(_)) => None,
            (Self::FalseShares, Body::Unmasking(unmasking)) => {
                let mut other = (**unmasking).clone();
                other.opening.iter_mut().for_each(|byte| *byte ^= 1);
                Some(Body::Unmasking(Box::new(other)))
            }
            (Self::FalseOutcome | Self::TwoOutcomes, &Body::Outcome { block, .. }) => {
                let outcome = attacker.random_hash();
                Some(Body::Outcome { block, outcome })
            }
            _ => return false,
        };
        if let Some(body) = other {
            let frame = attacker.sign(message.round, message.view, body);
            actions.send(outgoing.to, frame);
        }
        actions.misdeeds += 1;
        !matches!(self, Self::TwoOutcomes)
    }
}
