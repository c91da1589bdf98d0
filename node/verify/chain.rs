//! Checks the final blocks of a journal: that each follows the one before it, that the authors of a
//! round signed for its sheet, and that a quorum made each final.

use protocol::certificate::Certificate;
use protocol::identity::Strict;
use protocol::message::Block;
use protocol::verify::inclusions_hold;
use protocol::{Epoch, Hash};

/// A round or a view, for people.
pub(super) fn place(block: &Block) -> String {
    match block.learning() {
        Some(learning) => format!("round {} (view {})", learning.round, block.view),
        None => format!("the empty block of view {}", block.view),
    }
}

/// The chain so far.
pub(super) struct Chain<'a> {
    epoch: &'a Epoch,
    tip: Hash,
    view: u64,
    /// All blocks with their hashes, oldest first.
    pub(super) blocks: Vec<(Hash, Block)>,
    /// Certificates that were verified.
    pub(super) certificates: usize,
}

impl<'a> Chain<'a> {
    pub(super) fn new(epoch: &'a Epoch) -> Self {
        Self {
            epoch,
            tip: epoch.id,
            view: 0,
            blocks: Vec::new(),
            certificates: 0,
        }
    }

    /// The last learning round.
    pub(super) fn round(&self) -> u64 {
        let learned = self.blocks.iter().rev();
        let mut learned = learned.filter_map(|(_, block)| block.learning());
        learned.next().map_or(0, |learning| learning.round)
    }

    /// Adds blocks that one certificate makes final.
    ///
    /// # Errors
    /// The first thing that is wrong, as a sentence.
    pub(super) fn add(&mut self, blocks: Vec<Block>, proof: &Certificate) -> Result<(), String> {
        let last = blocks.last().map(place).unwrap_or_default();
        for block in blocks {
            self.link(block)?;
        }
        if proof.verdict.block() != Some(self.tip) || proof.view != self.view {
            return Err(format!(
                "{last}: the block is not the one that its certificate makes final: the block or the \
                 certificate was changed"
            ));
        }
        proof
            .verify(self.epoch, &Strict)
            .map_err(|why| format!("{last}: the certificate is not valid: {why}"))?;
        self.certificates += 1;
        Ok(())
    }

    fn link(&mut self, block: Block) -> Result<(), String> {
        let wrong = |what: String| Err(format!("{}: {what}", place(&block)));
        if block.parent != self.tip {
            return wrong("the block does not follow the block before it".into());
        }
        if block.view <= self.view {
            return wrong(format!("expected a view after {}", self.view));
        }
        if block.epoch != self.epoch.id {
            return wrong("the block belongs to another epoch".into());
        }
        if let Some(learning) = block.learning() {
            let expected = self.round() + 1;
            if learning.round != expected {
                return wrong(format!("expected round {expected}"));
            }
            if !inclusions_hold(self.epoch, &Strict, learning) {
                return wrong(
                    "the signatures for the sheet are not those of distinct members".into(),
                );
            }
        }
        let hash = block.hash();
        (self.tip, self.view) = (hash, block.view);
        self.blocks.push((hash, block));
        Ok(())
    }
}
