//! The proof that an epoch is over.

use serde::{Deserialize, Serialize};

use super::block::{Block, Content};
use super::change::Change;
use crate::certificate::Certificate;

/// Proof that an epoch is over: the block that changes the agreement, empty blocks after it that
/// only made it final, and the final certificate of the last of them. It is valid whoever sends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Passage {
    /// The change, and the empty blocks after it.
    pub blocks: Vec<Block>,
    /// The final certificate of the last block.
    pub proof: Certificate,
}

impl Passage {
    /// The end of an epoch among blocks that became final together.
    pub fn among(blocks: &[Block], proof: &Certificate) -> Option<Self> {
        let change = |block: &Block| matches!(block.content, Content::Change(_));
        let from = blocks.iter().position(change)?;
        Some(Self {
            blocks: blocks[from..].to_vec(),
            proof: proof.clone(),
        })
    }

    /// The block that changes the agreement; it becomes the genesis of the next epoch.
    pub fn change(&self) -> Option<&Change> {
        match &self.blocks.first()?.content {
            Content::Change(change) => Some(change),
            Content::Learning(_) | Content::Empty => None,
        }
    }
}
