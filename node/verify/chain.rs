//! Checks the final blocks of a journal: that each follows the one before it, that the authors of a
//! round signed for its sheet, and that a quorum made each final.

use std::sync::Arc;

use protocol::certificate::Certificate;
use protocol::identity::Strict;
use protocol::message::{Block, Content, Passage};
use protocol::verify::inclusions_hold;
use protocol::{Epoch, Hash};

use crate::chain::{MissingBlocks, Who, before};

/// A round or a view, for people.
pub(super) fn place(block: &Block) -> String {
    match &block.content {
        Content::Learning(learning) => format!("round {} (view {})", learning.round, block.view),
        Content::Masked(of) => format!("round {} (view {})", of.round, block.view),
        Content::Empty => format!("the empty block of view {}", block.view),
        Content::Change(_) => format!("the change of the agreement in view {}", block.view),
        Content::Recovery(_) => format!("the recovery after view {}", block.view - 1),
    }
}

/// The chain so far.
pub(super) struct VerifiedChain {
    /// The epochs so far, oldest first.
    pub(super) epochs: Vec<Arc<Epoch>>,
    tip: Hash,
    view: u64,
    /// All blocks with their hashes, oldest first. Empty ones that only made a change final are left
    /// out.
    pub(super) blocks: Vec<(Hash, Block)>,
    /// Blocks that are missing before the end of an epoch, oldest first.
    pub(super) missing: Vec<MissingBlocks>,
    /// The last round.
    last: u64,
    /// Number of blocks where the present epoch began, and the round before it.
    began: (usize, u64),
    /// True if the journal was lost since.
    lost: bool,
    /// Certificates that were verified.
    pub(super) certificates: usize,
}

impl VerifiedChain {
    pub(super) fn new(epoch: Arc<Epoch>) -> Self {
        Self {
            tip: epoch.id,
            epochs: vec![epoch],
            last: 0,
            began: (0, 0),
            lost: false,
            view: 0,
            blocks: Vec::new(),
            missing: Vec::new(),
            certificates: 0,
        }
    }

    /// The last learning round.
    pub(super) fn round(&self) -> u64 {
        self.last
    }

    /// Returns the number of learning rounds that are in it.
    pub(super) fn rounds(&self) -> usize {
        let blocks = self.blocks.iter();
        blocks.filter(|(_, block)| block.round().is_some()).count()
    }

    /// The epoch that the chain has reached.
    pub(super) fn epoch(&self) -> Arc<Epoch> {
        self.epochs[self.epochs.len() - 1].clone()
    }

    /// The journal was lost here: the blocks of the present epoch may follow again, from its first.
    pub(super) fn lose(&mut self) {
        self.lost = true;
    }

    /// Adds blocks that one certificate makes final.
    ///
    /// # Errors
    /// The first thing that is wrong, as a sentence.
    pub(super) fn add(&mut self, blocks: Vec<Block>, proof: &Certificate) -> Result<(), String> {
        let begins = blocks.first().map(|block| block.parent) == Some(self.epoch().id);
        if self.lost && begins {
            let (blocks, last) = self.began;
            self.blocks.truncate(blocks);
            (self.tip, self.view, self.last) = (self.epoch().id, 0, last);
        }
        let last = blocks.last().map(place).unwrap_or_default();
        if let Some(passage) = Passage::among(&blocks, proof) {
            let before = blocks.len() - passage.blocks.len();
            for block in blocks.into_iter().take(before) {
                self.link(block)?;
            }
            return self.pass(passage);
        }
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
            .verify(&self.epoch(), &Strict)
            .map_err(|why| format!("{last}: the certificate is not valid: {why}"))?;
        self.certificates += 1;
        Ok(())
    }

    /// Adds the end of an epoch. A member that was away when it ended has no blocks since its last one.
    fn pass(&mut self, passage: Passage) -> Result<(), String> {
        let Some(block) = passage.blocks.first().cloned() else {
            return Ok(());
        };
        let wrong = |why: String| format!("{}: {why}", place(&block));
        let next = passage.verify(&self.epoch(), &Strict);
        let next = next.map_err(|why| wrong(why.to_string()))?;
        // A recovery may go on from an earlier round than the last final one, and says so.
        let here = block.parent == self.tip && passage.recovery().is_none();
        if here && next.began.round != self.last {
            return Err(wrong(format!(
                "it names round {} as the last, and the chain has {}",
                next.began.round, self.last
            )));
        }
        let epoch = self.epoch();
        let who = |by| Who::Name(epoch.roster.name(by).to_owned());
        let missing = before(&passage, Some(self.tip), self.last, who);
        self.missing.extend(missing);
        (self.tip, self.view, self.last) = (next.id, 0, next.began.round);
        self.blocks.push((next.id, block));
        self.began = (self.blocks.len(), self.last);
        self.lost = false;
        self.epochs.push(Arc::new(next));
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
        if block.epoch != self.epoch().id {
            return wrong("the block belongs to another epoch".into());
        }
        if let Some(of) = block.round() {
            let expected = self.round() + 1;
            if of.round != expected {
                return wrong(format!("expected round {expected}"));
            }
            if !inclusions_hold(&self.epoch(), &Strict, of) {
                return wrong(
                    "the signatures for the manifest are not those of distinct members".into(),
                );
            }
        }
        if let Some(of) = block.round() {
            self.last = of.round;
        }
        let hash = block.hash();
        (self.tip, self.view) = (hash, block.view);
        self.blocks.push((hash, block));
        Ok(())
    }
}
