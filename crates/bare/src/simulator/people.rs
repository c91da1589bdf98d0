//! What people say of changes of the agreement: when institutions approve one, change their minds, and
//! are shown other bytes under the same words.
//!
//! The checks: no member signs an approval or a withdrawal that its institution did not order, with these
//! bytes and this number, and every approval in a change that comes into force was ordered. No member
//! votes for a change that would have too few approvals without the one that its own institution has
//! withdrawn.

use std::time::Duration;

use bytes::Bytes;
use protocol::effects::Input;
use protocol::message::{Amendment, Body, Kind, Message, Passage};
use protocol::{Hash, MemberIndex};

use crate::invariants::{DecodedFrame, kind, read_frame};
use crate::random::Random;

use super::{BareEvent, FailureKind, HEARTBEAT, Simulator};

/// Longest time until an institution has approved a change that it was shown.
const SOON: u32 = 3;
/// Longest time until an approval where people are slow, and between two words of one institution.
const LATE: u32 = 20;
/// After this a withdrawal is known everywhere, where nothing fails.
const KNOWN: u32 = 40;

/// What an institution told its node of an amendment.
#[derive(Debug, Clone)]
pub(super) struct ApprovalOrder {
    /// The epoch that it amends.
    epoch: usize,
    amendment: Amendment,
    /// Counts up with every order of the institution.
    number: u64,
    /// True if the institution approves the amendment.
    stands: bool,
}

impl ApprovalOrder {
    fn input(&self) -> Input {
        if self.stands {
            Input::Approve {
                amendment: Box::new(self.amendment.clone()),
                number: self.number,
            }
        } else {
            Input::Withdraw {
                amendment: self.amendment.hash(),
                number: self.number,
            }
        }
    }
}

impl Simulator<'_> {
    /// The institutions agree on a change; another time if the one before it is not final.
    pub(super) fn amend(&mut self, which: u32) -> Result<(), FailureKind> {
        if self.epochs.len() <= which as usize {
            self.schedule(HEARTBEAT, BareEvent::Amend(which));
            return Ok(());
        }
        if self.options.errors {
            return self.amend_with_errors(which);
        }
        let two = if self.random.chance(0.3) { 2 } else { 1 };
        for _ in 0..two {
            let (amendment, owners) = self.wanted();
            for node in owners {
                let after = self.random.span(Duration::ZERO, SOON * HEARTBEAT);
                self.order(after, node, &amendment, true);
            }
        }
        Ok(())
    }

    /// A change that the institutions want, and those that approve it.
    fn wanted(&mut self) -> (Amendment, Vec<usize>) {
        let change = self.draw_change();
        self.tell(None, || {
            format!("the institutions want to change the agreement: {change:?}")
        });
        let amendment = self.amendment(change);
        let run = self.newest();
        let leaver = amendment.leaver(&run.epoch);
        let leaver = leaver.map(|member| run.nodes[member.at()]);
        let owners = match leaver {
            Some(leaver) => vec![leaver],
            None => run.nodes.clone(),
        };
        (amendment, owners)
    }

    /// Plans the next change of the agreement with people who err. Perhaps they first approve a change
    /// that they take back before enough have approved it, and the others approve it long after that.
    /// Of the change that they want in the end, a proposer may show some of them other bytes, until
    /// they notice.
    fn amend_with_errors(&mut self, which: u32) -> Result<(), FailureKind> {
        let now = self.epochs.len() - 1;
        let mut people = Random::new(self.seed, &format!("people {which} of epoch {now}"));
        let mut from = Duration::ZERO;
        let quorum = self.newest().epoch.roster.quorum();
        if quorum > 1 && people.chance(0.4) {
            let unwanted = self.longer(3);
            let mut owners = self.newest().nodes.clone();
            people.shuffle(&mut owners);
            for (at, node) in owners.into_iter().enumerate() {
                let first = people.span(Duration::ZERO, SOON * HEARTBEAT);
                if at + 1 < quorum {
                    self.order(first, node, &unwanted, true);
                    let back = first + people.span(HEARTBEAT, SOON * HEARTBEAT);
                    self.order(back, node, &unwanted, false);
                } else {
                    self.order(first + 2 * KNOWN * HEARTBEAT, node, &unwanted, true);
                }
            }
            from = 3 * KNOWN * HEARTBEAT;
        }
        let (amendment, owners) = self.wanted();
        let alone = owners.len() == 1;
        // The text is the same.
        let other = (!alone && people.chance(0.5)).then(|| longer(&amendment, 1));
        for node in owners {
            let mut after = from + people.span(Duration::ZERO, SOON * HEARTBEAT);
            if people.chance(0.3) {
                after += people.span(Duration::ZERO, LATE * HEARTBEAT);
            }
            if let Some(other) = other.as_ref().filter(|_| people.chance(0.5)) {
                self.order(after, node, other, true);
                after += people.span(Duration::ZERO, LATE * HEARTBEAT);
                if people.chance(0.5) {
                    self.order(after, node, other, false);
                }
            }
            self.order(after, node, &amendment, true);
            if people.chance(0.3) {
                after += people.span(Duration::ZERO, LATE * HEARTBEAT);
                self.order(after, node, &amendment, true);
            }
            if people.chance(0.3) {
                after += people.span(Duration::ZERO, LATE * HEARTBEAT);
                self.order(after, node, &amendment, false);
                after += people.span(Duration::ZERO, LATE * HEARTBEAT);
                self.order(after, node, &amendment, true);
            }
        }
        Ok(())
    }

    /// The newest agreement with more rounds.
    fn longer(&self, rounds: u64) -> Amendment {
        let epoch = &self.newest().epoch;
        let present = Amendment {
            format: epoch.format,
            silos: epoch.roster.silos().to_vec(),
            protocol: epoch.protocol.clone(),
            text: b"amended".to_vec(),
            stolen: Vec::new(),
        };
        longer(&present, rounds)
    }

    /// An institution will say this of an amendment of the newest epoch.
    fn order(&mut self, after: Duration, node: usize, amendment: &Amendment, stands: bool) {
        self.decided = self.decided.max(self.now + after);
        let epoch = self.epochs.len() - 1;
        let amendment = Box::new(amendment.clone());
        let say = BareEvent::Say {
            node,
            epoch,
            amendment,
            stands,
        };
        self.schedule(after, say);
    }

    /// An institution says something of an amendment, unless the epoch is over by now.
    pub(super) fn say(
        &mut self,
        at: usize,
        epoch: usize,
        amendment: Amendment,
        stands: bool,
    ) -> Result<(), FailureKind> {
        let order = ApprovalOrder {
            epoch,
            amendment,
            number: 1 + self.nodes[at].orders.len() as u64,
            stands,
        };
        let input = order.input();
        self.nodes[at].orders.push(order);
        self.miss_leaver(at);
        if self.nodes[at].epoch == epoch {
            self.feed(at, input)
        } else {
            Ok(())
        }
    }

    /// A node that starts again is told what its institution last said of each amendment.
    pub(super) fn say_again(&mut self, at: usize) -> Result<(), FailureKind> {
        let now = self.nodes[at].epoch;
        let orders = self.nodes[at].orders.clone();
        let of_now = orders.iter().filter(|order| order.epoch == now);
        for order in of_now {
            let later = |other: &ApprovalOrder| {
                other.number > order.number && other.amendment == order.amendment
            };
            // One of them may have ended the epoch, where this member alone decides.
            if !orders.iter().any(later) && self.nodes[at].epoch == now {
                self.feed(at, order.input())?;
            }
        }
        Ok(())
    }

    /// A node is dead for good. If it was to leave, perhaps nobody has heard of it: the institutions
    /// want another change of this epoch.
    pub(super) fn miss_leaver(&mut self, at: usize) {
        let now = self.epochs.len() - 1;
        let run = self.newest();
        let leaves = |order: &ApprovalOrder| {
            let leaver = order.amendment.leaver(&run.epoch);
            order.epoch == now && leaver.is_some_and(|member| run.nodes[member.at()] == at)
        };
        if self.nodes[at].dead.is_some() && self.nodes[at].orders.iter().any(leaves) {
            self.schedule(HEARTBEAT, BareEvent::Amend(now as u32));
        }
    }

    /// An honest member sends a frame: what it says in it of an amendment was ordered.
    pub(super) fn check_signed(&self, at: usize, frame: &Bytes) -> Result<(), FailureKind> {
        if kind(frame) != Some(Kind::Approval) || self.nodes[at].byzantine.is_some() {
            return Ok(());
        }
        let DecodedFrame::Message(message) = read_frame(frame) else {
            return Ok(());
        };
        match message.body {
            Body::Approval {
                amendment,
                number,
                stands,
            } => self.ordered(at, self.nodes[at].epoch, &amendment, (number, stands)),
            _ => Ok(()),
        }
    }

    fn ordered(
        &self,
        at: usize,
        epoch: usize,
        amendment: &Hash,
        (number, stands): (u64, bool),
    ) -> Result<(), FailureKind> {
        let same = |order: &ApprovalOrder| {
            (order.epoch, order.number, order.stands) == (epoch, number, stands)
                && order.amendment.hash() == *amendment
        };
        if self.nodes[at].orders.iter().any(same) {
            Ok(())
        } else {
            Err(FailureKind::Approvals(format!(
                "node {at} signed word {number} about the amendment {amendment} (approves it: {stands}), \
                 which its institution has not said"
            )))
        }
    }

    /// An epoch ends: every approval of an honest member was ordered.
    pub(super) fn check_words(&self, epoch: usize, passage: &Passage) -> Result<(), FailureKind> {
        let Some(change) = passage.change() else {
            return Ok(());
        };
        let hash = change.amendment.hash();
        for approval in change.approvals.iter() {
            let at = self.epochs[epoch].nodes[approval.by.at()];
            if !self.byzantine.contains_key(&MemberIndex(at as u16)) {
                self.ordered(at, epoch, &hash, (approval.number, true))?;
            }
        }
        Ok(())
    }

    /// Takes note of a change that somebody proposes.
    pub(super) fn note_proposed(&mut self, frame: &Bytes) {
        if self.options.changes == 0 || kind(frame) != Some(Kind::Proposal) {
            return;
        }
        if let DecodedFrame::Message(message) = read_frame(frame)
            && let Body::Proposal(proposal) = message.body
            && let Some(change) = proposal.block.change()
        {
            let block = proposal.block.hash();
            self.proposed.insert(block, change.clone());
        }
    }

    /// An honest member votes: if that is for a change of which its own institution has withdrawn its
    /// approval, the others are enough.
    pub(super) fn check_vote(&self, at: usize, message: &Message) -> Result<(), FailureKind> {
        let Body::Notarize { block, .. } = message.body else {
            return Ok(());
        };
        let Some(change) = self.proposed.get(&block) else {
            return Ok(());
        };
        let (epoch, hash) = (self.nodes[at].epoch, change.amendment.hash());
        let of_it = |order: &&ApprovalOrder| order.epoch == epoch && order.amendment.hash() == hash;
        let last = self.nodes[at].orders.iter().rfind(of_it);
        let Some(withdrawn) = last.filter(|last| !last.stands) else {
            return Ok(());
        };
        let me = self.me(at);
        let counts = |by: MemberIndex, number| by != me || number > withdrawn.number;
        let approvals = change.approvals.iter();
        let stand = approvals.filter(|one| counts(one.by, one.number)).count();
        let needed = change.amendment.needed(self.epoch_of(at));
        if stand >= needed || self.nodes[at].byzantine.is_some() {
            Ok(())
        } else {
            Err(FailureKind::Approvals(format!(
                "node {at} voted for the amendment {hash}, which has {stand} of {needed} approvals without \
                 the one that its institution has withdrawn"
            )))
        }
    }
}

/// An amendment with more rounds.
fn longer(amendment: &Amendment, rounds: u64) -> Amendment {
    let mut longer = amendment.clone();
    longer.protocol.rounds += rounds;
    longer
}
