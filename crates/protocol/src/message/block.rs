//! Blocks of the agreed chain, and the proposals that carry them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::change::Change;
use crate::certificate::Certificate;
use crate::codec;
use crate::hash::Hash;
use crate::identity::Signature;
use crate::roster::MemberIndex;

/// A block to vote on, with the certificates that allow its place in the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The block.
    pub block: Block,
    /// The final certificate of the parent; for an empty block its notarisation. None where the
    /// parent is the epoch.
    pub parent: Option<Certificate>,
    /// Nullifications of the last views between the parent's and this one.
    pub skipped: Vec<Certificate>,
}

/// One block of the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Id of the epoch.
    pub epoch: Hash,
    /// The view in which it was proposed.
    pub view: u64,
    /// Hash of the block before it; the epoch's id for the first block.
    pub parent: Hash,
    /// A round of learning, a change of the agreement, or nothing.
    pub content: Content,
}

impl Block {
    /// The hash that members vote for.
    pub fn hash(&self) -> Hash {
        Hash::labelled("block", &[&codec::encode(self)])
    }

    /// The round of learning, if it holds one.
    pub fn learning(&self) -> Option<&Learning> {
        match &self.content {
            Content::Learning(learning) => Some(learning),
            Content::Change(_) | Content::Empty => None,
        }
    }
}

/// The content of a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// One round of learning.
    Learning(Learning),
    /// Nothing. Such a block serves to make its ancestors final.
    Empty,
    /// Another roster or charter. It ends the epoch.
    Change(Box<Change>),
}

/// One round of learning, as every member adopts it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Learning {
    /// The round, from 1.
    pub round: u64,
    /// Hash of the plan.
    pub plan: Hash,
    /// Root of the sheet.
    pub sheet: Hash,
    /// Signatures over the sheet by the authors of its entries, ascending by member.
    #[serde(with = "crate::codec::shared")]
    pub inclusions: Arc<[(MemberIndex, Signature)]>,
    /// What the lead decided; its encoding belongs to the strategy.
    pub decision: Vec<u8>,
    /// Hash of the outcome.
    pub outcome: Hash,
}
