//! Receiving proposals: the first one of a view is kept to be judged.

use crate::evidence::Evidence;
use crate::hash::Hash;
use crate::member::Member;
use crate::member::consensus::judge::Judged;
use crate::message::{Block, Body, Message};
use crate::refusal::Refusal;

impl Member {
    /// A proposal by the lead of its view.
    pub(in crate::member) fn proposal(&mut self, message: Message) {
        let Body::Proposal(proposal) = &message.body else {
            return;
        };
        let block = proposal.block.hash();
        if let Some(judged) = &self.consensus.view.judged {
            if judged.block == block {
                return;
            }
            if let Some(evidence) = Evidence::of(&judged.message, &message) {
                let reason = Refusal::Contradiction(evidence.charge());
                self.accuse(evidence);
                self.out.refuse(message.sender, 0, reason.clone());
                self.voting().nullify(reason);
            }
            return;
        }
        let structure = structure(&proposal.block, message.view, self.config.epoch.id);
        if structure.is_ok() {
            self.consensus.chain.keep(block, proposal.block.clone());
        }
        if let Some(waiting) = self.consensus.chain.unresolved.take() {
            self.make_final(waiting);
        }
        if message.view != self.consensus.view.number {
            return;
        }
        let voted = self.consensus.ballots.has_notarized(message.view);
        let sender = message.sender;
        self.consensus.view.judged = Some(Judged::new(message, block, voted || structure.is_err()));
        if let Err(reason) = structure {
            self.out.refuse(sender, 0, reason.clone());
            self.voting().nullify(reason);
        }
    }
}

/// Checks that a block names the view and the epoch of its proposal.
fn structure(block: &Block, view: u64, epoch: Hash) -> Result<(), Refusal> {
    if block.view != view || block.epoch != epoch {
        return Err(Refusal::BlockMisplaced);
    }
    Ok(())
}
