//! The proof that an epoch is over.

use serde::{Deserialize, Serialize};

use super::block::Block;
use super::change::Change;
use crate::certificate::Certificate;

/// Proof that an epoch is over: the block that changes the agreement, empty blocks after it that
/// only made it final, and the final certificate of the last of them. It is valid whoever sends it.
///
/// An epoch that ends by a [`Recovery`](super::Recovery) has its block alone, and the certificate is that of the last
/// final block before it.
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
        let from = blocks.iter().position(Block::ends_epoch)?;
        Some(Self {
            blocks: blocks[from..].to_vec(),
            proof: proof.clone(),
        })
    }

    /// The block that changes the agreement; it becomes the genesis of the next epoch.
    pub fn change(&self) -> Option<&Change> {
        self.blocks.first()?.change()
    }
}
