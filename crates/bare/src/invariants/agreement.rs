//! S4: no honest key signs two things that conflict, restarts included.
//!
//! Quorum intersection depends on it. It holds because votes, proposals and contributions are
//! durable before they are sent (R5), and because a member without its journal neither votes, nor
//! proposes, nor contributes. Such a member cannot know what it signed, so it must not even send
//! the same again: it signs nothing in any view up to the last one in which it had signed.

use std::collections::BTreeMap;

use protocol::MemberIndex;
use protocol::evidence::Evidence;
use protocol::message::Message;

use super::Property;
use super::ledger::{Fact, Ledger};

/// Everything that honest members signed and that another message could conflict with.
#[derive(Default)]
pub(super) struct NoConflict {
    signed: BTreeMap<(MemberIndex, u64, u64), Vec<Message>>,
    /// The last view that each member signed in.
    last: BTreeMap<MemberIndex, u64>,
    /// For members that lost their journals: the last view in which they had signed before.
    signed_before: BTreeMap<MemberIndex, u64>,
}

impl Property for NoConflict {
    fn name(&self) -> &'static str {
        "S4 (no honest member contradicts itself)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let message = match *fact {
            Fact::Signed(message) => message,
            Fact::JournalLost { member } => {
                let last = self.last.get(&member).copied().unwrap_or(0);
                self.signed_before.insert(member, last);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let binding = message.body.kind().binds();
        if !binding || !ledger.honest(message.sender) {
            return Ok(());
        }
        let sender = message.sender;
        if message.view > 0 {
            let signed_before = self.signed_before.get(&sender).copied().unwrap_or(0);
            if message.view <= signed_before {
                return Err(format!(
                    "{} lost its journal after it had signed in view {signed_before}, and signed {:?} \
                     in view {}",
                    ledger.name(sender),
                    message.body.kind(),
                    message.view
                ));
            }
            let last = self.last.entry(sender).or_default();
            *last = message.view.max(*last);
        }
        let signed = self
            .signed
            .entry((sender, message.round, message.view))
            .or_default();
        if signed.iter().any(|earlier| earlier.body == message.body) {
            return Ok(());
        }
        let fault = signed
            .iter()
            .find_map(|earlier| Evidence::of(earlier, message));
        signed.push(message.clone());
        match fault {
            None => Ok(()),
            Some(evidence) => Err(format!(
                "the honest member {} signed {}",
                ledger.name(sender),
                evidence.charge()
            )),
        }
    }
}
