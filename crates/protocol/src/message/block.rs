//! Blocks of the agreed chain, and the proposals that carry them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::change::Change;
use super::masked::MaskedRound;
use super::standing::Standing;
use crate::certificate::Certificate;
use crate::codec;
use crate::hash::Hash;
use crate::identity::Signature;
use crate::parameters::Checkpoint;
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

    /// The round of learning with models in clear, if it holds one.
    pub fn learning(&self) -> Option<&Learning> {
        match &self.content {
            Content::Learning(learning) => Some(learning),
            _ => None,
        }
    }

    /// The masked round, if it holds one.
    pub fn masked(&self) -> Option<&MaskedRound> {
        match &self.content {
            Content::Masked(masked) => Some(masked),
            _ => None,
        }
    }

    /// The round of learning, masked or not, if it holds one.
    pub fn round(&self) -> Option<RoundBlock<'_>> {
        match &self.content {
            Content::Learning(learning) => Some(RoundBlock {
                round: learning.round,
                manifest: learning.manifest,
                inclusions: &learning.inclusions,
                ready: None,
                outcome: Some(learning.outcome),
            }),
            Content::Masked(masked) => Some(RoundBlock {
                round: masked.round,
                manifest: masked.manifest,
                inclusions: &masked.inclusions,
                ready: Some(&masked.ready),
                outcome: None,
            }),
            Content::Empty | Content::Change(_) | Content::Recovery(_) => None,
        }
    }

    /// The change of the agreement, if it holds one.
    pub fn change(&self) -> Option<&Change> {
        match &self.content {
            Content::Change(change) => Some(change),
            _ => None,
        }
    }

    /// The recovery, if it holds one.
    pub fn recovery(&self) -> Option<&Recovery> {
        match &self.content {
            Content::Recovery(recovery) => Some(recovery),
            _ => None,
        }
    }

    /// Whether this block ends the epoch when it is final.
    pub fn ends_epoch(&self) -> bool {
        matches!(self.content, Content::Change(_) | Content::Recovery(_))
    }
}

/// The content of a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// One round of learning.
    Learning(Learning),
    /// Nothing. Such a block serves to make its ancestors final.
    Empty,
    /// Another roster or parameter set. It ends the epoch.
    Change(Box<Change>),
    /// The members that remain go on without others. It ends the epoch without a certificate.
    Recovery(Box<Recovery>),
    /// One masked round of learning.
    Masked(MaskedRound),
}

/// What every block of a round says, whether models are in clear or masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundBlock<'a> {
    /// The round, from 1.
    pub round: u64,
    /// Root of the manifest.
    pub manifest: Hash,
    /// Signatures over the manifest by the authors of its entries, ascending by member.
    pub inclusions: &'a Arc<[(MemberIndex, Signature)]>,
    /// The members that are ready in a masked round, ascending.
    ready: Option<&'a [MemberIndex]>,
    /// Hash of the outcome; none of a masked round, whose outcome is agreed on afterwards.
    pub outcome: Option<Hash>,
}

impl RoundBlock<'_> {
    /// The members that took part, ascending: the authors, or in a masked round all who are ready.
    pub fn members(&self) -> Vec<MemberIndex> {
        let authors = || self.inclusions.iter().map(|(member, _)| *member).collect();
        self.ready.map_or_else(authors, <[_]>::to_vec)
    }
}

/// One round of learning, as every member adopts it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Learning {
    /// The round, from 1.
    pub round: u64,
    /// Hash of the plan.
    pub plan: Hash,
    /// Root of the manifest.
    pub manifest: Hash,
    /// Signatures over the manifest by the authors of its entries, ascending by member.
    #[serde(with = "crate::codec::shared")]
    pub inclusions: Arc<[(MemberIndex, Signature)]>,
    /// What the lead decided; its encoding belongs to the strategy.
    pub decision: Vec<u8>,
    /// Hash of the outcome.
    pub outcome: Hash,
}

/// The content of a block that ends an epoch without a quorum: all members that are not lost have
/// signed for it. No lead proposes it and nobody votes for it; it follows from the signed standings
/// alone, so all members make the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// The members that are gone, ascending.
    pub lost: Vec<MemberIndex>,
    /// The round that the next epoch goes on from: the newest that one of the signers has adopted.
    pub after: Checkpoint,
    /// The final blocks from that of `after` to the newest that one of the signers knows; all of this
    /// epoch if `after` is where it began. Rounds behind the first are final and lost, because
    /// nobody that signs has their outcome.
    pub head: Vec<Block>,
    /// The standings of all members that are not lost, ascending.
    pub standings: Vec<Confirmed>,
}

/// The last standing of a member in a recovery, and its word that it goes on from the whole set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The member.
    pub by: MemberIndex,
    /// Standing of the member.
    pub standing: Standing,
    /// Signature of the member over the standing.
    pub signature: Signature,
    /// The number of the member's confirmation.
    pub number: u64,
    /// Signature of the member over the confirmation.
    pub confirmation: Signature,
}
