//! S4: no honest key signs two things that conflict, restarts included.
//!
//! Everything that keeps quorums apart rests on it. It holds because a vote, a proposal and a
//! contribution are durable before they are sent, and because a member without its journal neither
//! votes, nor proposes, nor contributes.

use std::collections::BTreeMap;

use protocol::MemberIndex;
use protocol::evidence::Evidence;
use protocol::message::{Kind, Message};

use super::Property;
use super::ledger::{Fact, Ledger};

/// Everything honest members signed that something else could conflict with.
#[derive(Default)]
pub(super) struct NoConflict(BTreeMap<(MemberIndex, u64, u64), Vec<Message>>);

impl Property for NoConflict {
    fn name(&self) -> &'static str {
        "S4 (no honest member contradicts itself)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let &Fact::Signed(message) = fact else {
            return Ok(());
        };
        let binding = matches!(
            message.body.kind(),
            Kind::Contribution | Kind::Proposal | Kind::Notarize | Kind::Finalize | Kind::Nullify
        );
        if !binding || !ledger.honest(message.sender) {
            return Ok(());
        }
        let signed = self
            .0
            .entry((message.sender, message.round, message.view))
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
                ledger.name(message.sender),
                evidence.charge()
            )),
        }
    }
}
