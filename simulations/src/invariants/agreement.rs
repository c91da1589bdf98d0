//! S4: no honest key signs two things that conflict, restarts included.
//!
//! Everything that keeps quorums apart rests on it. It holds because a vote, a proposal and a
//! contribution are durable before they are sent, and because a member without its journal neither
//! votes, nor proposes, nor contributes. Such a member cannot know what it signed, so it must not
//! even say again what it said before: it signs nothing in a view up to the last it signed in.

use std::collections::BTreeMap;

use protocol::MemberIndex;
use protocol::evidence::Evidence;
use protocol::message::{Kind, Message};

use super::Property;
use super::ledger::{Fact, Ledger};

/// Everything honest members signed that something else could conflict with.
#[derive(Default)]
pub(super) struct NoConflict {
    signed: BTreeMap<(MemberIndex, u64, u64), Vec<Message>>,
    /// The last view that each member signed in.
    last: BTreeMap<MemberIndex, u64>,
    /// The same of those that lost their journals, when they did.
    forgotten: BTreeMap<MemberIndex, u64>,
}

impl Property for NoConflict {
    fn name(&self) -> &'static str {
        "S4 (no honest member contradicts itself)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let message = match *fact {
            Fact::Signed(message) => message,
            Fact::Emptied { member } => {
                let last = self.last.get(&member).copied().unwrap_or(0);
                self.forgotten.insert(member, last);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let binding = matches!(
            message.body.kind(),
            Kind::Contribution | Kind::Proposal | Kind::Notarize | Kind::Finalize | Kind::Nullify
        );
        if !binding || !ledger.honest(message.sender) {
            return Ok(());
        }
        let sender = message.sender;
        if message.view > 0 {
            let forgotten = self.forgotten.get(&sender).copied().unwrap_or(0);
            if message.view <= forgotten {
                return Err(format!(
                    "{} lost its journal after it had signed in view {forgotten}, and signed {:?} \
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
                "{}, honest, signed {}",
                ledger.name(sender),
                evidence.charge()
            )),
        }
    }
}
