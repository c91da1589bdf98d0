//! The end of the epoch: the agreement has changed.

use super::Member;
use crate::charter::privacy::Circle;
use crate::effects::{Effect, Record};
use crate::message::{Block, Passage};

impl Member {
    /// Somebody proved that the epoch is over.
    pub(super) fn pass(&mut self, passage: Passage) {
        if !self.recovering().follows(&passage) {
            return;
        }
        self.note_consent(&passage.blocks);
        self.out.push(Effect::Persist(Record::Final {
            blocks: passage.blocks.clone(),
            proof: passage.proof.clone(),
        }));
        self.end_epoch(passage);
    }

    /// These blocks are about to be final. If one is a change with which all concerned agree that this
    /// member answers sums of another circle, that is durable before the change is (M3).
    pub(super) fn note_consent(&mut self, blocks: &[Block]) {
        let change = blocks.iter().find_map(Block::change);
        let (epoch, me) = (&self.config.epoch, self.config.me);
        let freed = change
            .zip(self.circle.as_ref())
            .is_some_and(|(change, circle)| change.frees(epoch, epoch.roster.name(me), circle));
        if freed {
            self.circle = None;
            let none = Circle(Vec::new());
            self.out.push(Effect::Persist(Record::Circle(none)));
        }
    }

    /// The epoch is over. The record of the final blocks is durable with this step.
    pub(super) fn end_epoch(&mut self, passage: Passage) {
        self.over = true;
        self.lead = None;
        self.out.push(Effect::EpochOver(Box::new(passage)));
    }

    /// Whether the agreement has changed, so that this member does nothing more.
    pub fn epoch_over(&self) -> bool {
        self.over
    }
}
