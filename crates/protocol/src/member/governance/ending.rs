//! The end of the epoch: the agreement has changed.

use crate::effects::{Effect, Record};
use crate::member::Member;
use crate::message::Passage;

impl Member {
    /// Somebody proved that the epoch is over.
    pub(in crate::member) fn pass(&mut self, passage: Passage) {
        if !self.recovering().follows(&passage) {
            return;
        }
        self.masking().note_consent(&passage.blocks);
        self.out.push(Effect::Persist(Record::Final {
            blocks: passage.blocks.clone(),
            proof: passage.proof.clone(),
        }));
        self.end_epoch(passage);
    }

    /// The epoch is over. The record of the final blocks is durable with this step.
    pub(in crate::member) fn end_epoch(&mut self, passage: Passage) {
        self.consensus.over = true;
        self.consensus.lead = None;
        self.out.push(Effect::EpochOver(Box::new(passage)));
    }

    /// Returns true if the agreement has changed, so that this member does nothing more.
    pub fn epoch_over(&self) -> bool {
        self.consensus.over
    }
}
