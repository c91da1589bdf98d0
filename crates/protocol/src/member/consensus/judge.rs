//! Judging the place of a proposal of the view: whether its block stands where it may (R1). What it holds is not
//! judged here.

use crate::certificate::{Checked, Verdict};
use crate::change::ChangeError;
use crate::hash::Hash;
use crate::member::Config;
use crate::member::consensus::chain::Chain;
use crate::message::{Block, Body, Content, Message, Proposal};
use crate::recovery::RecoveryError;
use crate::refusal::Refusal;
use crate::roster::MemberIndex;

/// The proposal of the current view, and how far judging it is.
pub(in crate::member) struct Judged {
    pub(in crate::member) message: Message,
    pub(in crate::member) block: Hash,
    /// This member has voted for the block or against the view.
    pub(in crate::member) voted: bool,
    /// The skipped view whose nullification the proposer was asked for in this heartbeat.
    pub(in crate::member) asked: Option<u64>,
}

impl Judged {
    /// A proposal, and whether this member has voted in its view already.
    pub(in crate::member) fn new(message: Message, block: Hash, voted: bool) -> Self {
        Self {
            message,
            block,
            voted,
            asked: None,
        }
    }

    /// The proposal.
    pub(in crate::member) fn proposal(&self) -> Option<&Proposal> {
        match &self.message.body {
            Body::Proposal(proposal) => Some(proposal),
            _ => None,
        }
    }

    /// Asks the proposer for the nullification of a skipped view, once per heartbeat.
    pub(in crate::member) fn ask_for_skipped(&mut self, view: u64) -> Ruling {
        if self.asked.replace(view) == Some(view) {
            Ruling::Wait
        } else {
            Ruling::Ask(self.message.sender, view)
        }
    }
}

/// What the rules demand now.
pub(in crate::member) enum Opinion {
    /// Wait: the proposal may become acceptable.
    Wait,
    /// Ask for the nullification of this view. It is the first of those that the proposal skips and
    /// that are not known to be nullified.
    UnknownView(u64),
    /// Vote against the view.
    Refuse(Refusal),
    /// Vote for the block, which changes no model.
    Structure,
    /// The block stands where it may: judge what it holds.
    Content,
}

/// What follows from judging a proposal.
pub(in crate::member) enum Ruling {
    /// Nothing, for now.
    Wait,
    /// Vote for the block.
    Notarize(Hash, Checked),
    /// Vote for the block, which changes no model and may hold a change of the agreement.
    Structure(Hash),
    /// Vote against the view.
    Nullify(Refusal),
    /// Ask the proposer how this view ended.
    Ask(MemberIndex, u64),
}

/// Judging the place of a block. Borrows what that depends on.
pub(in crate::member) struct Placing<'a> {
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) chain: &'a Chain,
}

impl Placing<'_> {
    /// What R1 demands of any block, apart from what it holds.
    pub(in crate::member) fn opinion(&self, proposal: &Proposal) -> Opinion {
        let block = &proposal.block;
        let tip = &self.chain.tip;
        match &block.content {
            Content::Empty => {
                let Some(notarised) = &proposal.parent else {
                    return Opinion::Refuse(Refusal::NothingNotarised);
                };
                if notarised.verdict != Verdict::Notarised(block.parent) {
                    return Opinion::Refuse(Refusal::ParentUnproven);
                }
                let audited = self.chain.is_audited(&self.config.epoch, notarised);
                if !audited {
                    // Its auditors were drawn by a final block that this member may not know yet.
                    return Opinion::Wait;
                }
                match self.check_skipped(block, notarised.view) {
                    Ok(()) => Opinion::Structure,
                    Err(opinion) => opinion,
                }
            }
            Content::Recovery(_) => {
                Opinion::Refuse(ChangeError::from(RecoveryError::Proposed).into())
            }
            Content::Change(_) | Content::Learning(_) | Content::Masked(_) => {
                if block.parent != tip.hash {
                    return self.other_parent(proposal);
                }
                match self.check_skipped(block, tip.view) {
                    Ok(()) => Opinion::Content,
                    Err(opinion) => opinion,
                }
            }
        }
    }

    /// A learning block whose parent is not the last final block known here: either this member
    /// lags behind, or the block is wrong.
    fn other_parent(&self, proposal: &Proposal) -> Opinion {
        let ahead = proposal.parent.as_ref().is_some_and(|parent| {
            parent.view > self.chain.tip.view
                && parent.verdict.block() == Some(proposal.block.parent)
                && matches!(parent.verdict, Verdict::Final(_))
        });
        if ahead {
            Opinion::Wait
        } else {
            Opinion::Refuse(Refusal::ParentNotFinal)
        }
    }

    /// Checks that every view between the parent's and the block's is known to be nullified. The
    /// proposal carries the last of these nullifications; its lead is asked for earlier ones.
    fn check_skipped(&self, block: &Block, parent: u64) -> Result<(), Opinion> {
        if parent >= block.view {
            return Err(Opinion::Refuse(Refusal::SkipUnproven));
        }
        match self.chain.gap(parent, block.view) {
            Some(view) => Err(Opinion::UnknownView(view)),
            None => Ok(()),
        }
    }
}

/// Checks that a block names the view and the epoch of its proposal.
pub(in crate::member) fn structure(block: &Block, view: u64, epoch: Hash) -> Result<(), Refusal> {
    if block.view != view || block.epoch != epoch {
        return Err(Refusal::BlockMisplaced);
    }
    Ok(())
}
