//! Recovery: what it takes to go on without members that are gone for good, where no quorum is left.
//!
//! Where rounds are masked, nobody needs to be lost: if no quorum computes the same outcome of a final
//! round, all members together give it up in the same way, and do it again.
//!
//! Every member that remains signs a [`Standing`]: whom it holds for lost, and the last final block that
//! it knows. It may correct itself with another one. When the last standings of all name the same lost
//! members, each signs a [`Confirmation`] of this set. When all have confirmed it, a block with a
//! [`Recovery`] follows from their standings. It ends the epoch after the newest round that one of them has adopted, and begins
//! the next one with their roster. Nothing in it protects against a member that lies, and members that
//! were declared lost and are not may go on by themselves: see `docs/protocol/membership.md`.

use crate::certificate::{Certificate, Verdict};
use crate::codec;
use crate::hash::Hash;
use crate::message::{Block, Body, Confirmation, Confirmed, Content, Passage, Recovery, Standing};
use crate::parameters::{Checkpoint, Epoch, ProtocolParameters};
use crate::roster::{MemberIndex, Silo};

/// Why a recovery is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryError {
    /// The lost members are none where rounds are in clear, all, no members, or out of order.
    #[error(
        "the members declared lost must be some of {members}, not all, each once and in ascending order; \
         none only where rounds are masked"
    )]
    Lost {
        /// Members of the epoch.
        members: usize,
    },
    /// Nobody is declared lost, and no final round lacks an outcome.
    #[error(
        "there is no round to give up: this member knows the outcome of every final round, and no other \
         member has asked for it"
    )]
    NothingOpen,
    /// A member declares itself lost.
    #[error("a member cannot declare itself lost")]
    Itself,
    /// Not all members that remain have signed, or for other lost members.
    #[error("{got} members have signed for the recovery, it needs all {needed} that are not lost")]
    Signers {
        /// Standings of distinct remaining members for these lost members.
        got: usize,
        /// Members that remain.
        needed: usize,
    },
    /// A standing or a confirmation is not its member's signature.
    #[error("a standing or a confirmation in the recovery is not its member's signature")]
    Signature,
    /// The standings contradict each other, or no signer has any outcome of this epoch.
    #[error("the signed standings of the members do not fit together")]
    Standings,
    /// The blocks do not lead from the round that it goes on from to the newest final block.
    #[error("the blocks in the recovery do not lead to the newest final block of its signers")]
    Head,
    /// A lead proposes it.
    #[error("a recovery is signed by all members that remain, and proposed by no lead")]
    Proposed,
}

/// The round and view from which the remaining members resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumePoint {
    /// The newest round that a signer has adopted.
    pub after: Checkpoint,
    /// View of the newest final block that a signer knows; 0 for none of this epoch.
    pub view: u64,
    /// That block; the epoch's id for none.
    pub block: Hash,
}

/// The members that remain without the lost ones, ascending. Where rounds are masked, nobody needs to be
/// lost.
///
/// # Errors
/// [`RecoveryError::Lost`].
pub fn remaining(epoch: &Epoch, lost: &[MemberIndex]) -> Result<Vec<MemberIndex>, RecoveryError> {
    let n = epoch.roster.len();
    let ascending = lost.windows(2).all(|pair| pair[0] < pair[1]);
    let known = match lost.last() {
        Some(last) => last.at() < n,
        None => epoch.protocol.privacy.masked().is_some(),
    };
    if ascending && known && lost.len() < n {
        let members = epoch.roster.members();
        Ok(members.filter(|member| !lost.contains(member)).collect())
    } else {
        Err(RecoveryError::Lost { members: n })
    }
}

/// What members confirm: the hash of a set of standings, in ascending order of the members.
pub fn set<'a>(standings: impl IntoIterator<Item = (MemberIndex, &'a Standing)>) -> Hash {
    let all: Vec<_> = standings.into_iter().collect();
    Hash::labelled("standings", &[&codec::encode(&all)])
}

/// Where these standings agree to go on.
///
/// # Errors
/// [`RecoveryError::Standings`]: they contradict each other, or nobody has an outcome to go on from.
pub fn resume_point<'a>(
    epoch: &Epoch,
    standings: impl IntoIterator<Item = &'a Standing>,
) -> Result<ResumePoint, RecoveryError> {
    let mut found: Option<ResumePoint> = None;
    for standing in standings {
        let own = ResumePoint {
            after: standing.adopted,
            view: standing.view,
            block: standing.block,
        };
        let Some(point) = &mut found else {
            found = Some(own);
            continue;
        };
        let same_view = own.view == point.view && own.block != point.block;
        let same_round = own.after.round == point.after.round && own.after != point.after;
        if same_view || same_round {
            return Err(RecoveryError::Standings);
        }
        if own.view > point.view {
            (point.view, point.block) = (own.view, own.block);
        }
        if own.after.round > point.after.round {
            point.after = own.after;
        }
    }
    let began = epoch.began;
    let holds = |point: &ResumePoint| {
        point.after.round >= began.round
            && (point.after.round > began.round || point.after == began)
            && (point.view > 0 || point.block == epoch.id)
    };
    found.filter(holds).ok_or(RecoveryError::Standings)
}

impl Recovery {
    /// The block with the recovery that follows from the standings of all members that remain.
    /// `head` are the blocks that it has to hold.
    pub fn block(
        epoch: &Epoch,
        lost: &[MemberIndex],
        point: &ResumePoint,
        standings: Vec<Confirmed>,
        head: Vec<Block>,
    ) -> Block {
        Block {
            epoch: epoch.id,
            view: point.view + 1,
            parent: point.block,
            content: Content::Recovery(Box::new(Self {
                lost: lost.to_vec(),
                after: point.after,
                head,
                standings,
            })),
        }
    }

    /// The proof that takes the place of a final certificate where no block of the epoch is final.
    pub fn no_proof(epoch: &Epoch) -> Certificate {
        Certificate {
            view: 0,
            verdict: Verdict::Final(epoch.id),
            votes: Default::default(),
        }
    }

    /// The highest view later than the newest final block of which a signer knows a notarisation. Its
    /// block may be final for a member that is lost.
    pub fn notarised(&self) -> Option<u64> {
        let views = self.standings.iter().map(|signed| &signed.standing);
        let newest = views.clone().map(|standing| standing.view).max()?;
        let views = views.map(|standing| standing.notarised);
        views.max().filter(|view| *view > newest)
    }

    /// Final rounds whose outcome nobody that signed has.
    pub fn rounds_lost(&self) -> Vec<u64> {
        let rounds = self.head.iter().filter_map(Block::round);
        let rounds = rounds.map(|of| of.round);
        rounds.filter(|round| *round > self.after.round).collect()
    }

    /// The members that go on, their parameter set, and where they go on from. The signatures and the
    /// certificate are checked elsewhere.
    ///
    /// # Errors
    /// [`RecoveryError`]: the first rule that it breaks.
    pub(crate) fn check(
        &self,
        epoch: &Epoch,
        block: &Block,
    ) -> Result<(Vec<Silo>, ProtocolParameters), RecoveryError> {
        let remaining = remaining(epoch, &self.lost)?;
        let signers = self.standings.iter();
        let signers = signers.filter(|signed| signed.standing.lost == self.lost);
        let signers: Vec<_> = signers.map(|signed| signed.by).collect();
        let all = signers == remaining && self.standings.len() == remaining.len();
        if !all {
            return Err(RecoveryError::Signers {
                got: signers.len(),
                needed: remaining.len(),
            });
        }
        let standings = self.standings.iter().map(|signed| &signed.standing);
        let point = resume_point(epoch, standings)?;
        if (self.after, block.parent, block.view) != (point.after, point.block, point.view + 1) {
            return Err(RecoveryError::Standings);
        }
        self.check_head(epoch, &point)?;
        let silos = epoch.roster.silos();
        let silos = remaining.iter().map(|member| silos[member.at()].clone());
        let protocol = epoch
            .protocol
            .for_members(epoch.roster.len(), remaining.len());
        Ok((silos.collect(), protocol))
    }

    fn check_head(&self, epoch: &Epoch, point: &ResumePoint) -> Result<(), RecoveryError> {
        let mut parent = epoch.id;
        let mut blocks = self.head.iter();
        if point.after != epoch.began {
            let first = blocks.next().ok_or(RecoveryError::Head)?;
            let of = first.round().ok_or(RecoveryError::Head)?;
            parent = first.hash();
            let found = Checkpoint {
                round: of.round,
                block: parent,
                // That of a masked round is what the signers have adopted.
                outcome: of.outcome.unwrap_or(point.after.outcome),
            };
            if found != point.after || first.epoch != epoch.id {
                return Err(RecoveryError::Head);
            }
        }
        for block in blocks {
            let plain = block.round().is_some() || block.content == Content::Empty;
            let foreign = block.epoch != epoch.id;
            if block.parent != parent || foreign || !plain {
                return Err(RecoveryError::Head);
            }
            parent = block.hash();
        }
        if parent == point.block {
            Ok(())
        } else {
            Err(RecoveryError::Head)
        }
    }
}

impl Passage {
    /// The recovery that ends the epoch, if it ends without a quorum.
    pub fn recovery(&self) -> Option<&Recovery> {
        self.blocks.first()?.recovery()
    }
}

impl Standing {
    /// The message that a member signs.
    pub(crate) fn body(&self) -> Body {
        Body::Standing(Box::new(self.clone()))
    }
}

impl Confirmation {
    /// The message that a member signs.
    pub(crate) fn body(&self) -> Body {
        Body::Confirmation(Box::new(*self))
    }
}
