//! Certificates: a quorum of votes of one kind. A certificate is valid whichever member sends it.
//!
//! This file holds the types; [`verify`](crate::verify) checks the signatures.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::identity::Signature;
use crate::parameters::Verification;
use crate::roster::MemberIndex;

/// What a quorum voted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// No block of the view can become final.
    Nullified,
    /// No other block of the view can be notarised.
    Notarised(Hash),
    /// The block and all its ancestors stay in the chain for ever.
    Final(Hash),
    /// The final masked round of this block has this outcome, and no other.
    Outcome {
        /// The block.
        block: Hash,
        /// Hash of the outcome.
        outcome: Hash,
    },
}

impl Verdict {
    /// The block voted for; none for a nullification.
    pub fn block(&self) -> Option<Hash> {
        match self {
            Self::Nullified => None,
            Self::Notarised(block) | Self::Final(block) | Self::Outcome { block, .. } => {
                Some(*block)
            }
        }
    }

    /// Whether this verdict is about the outcome of a masked round.
    pub fn is_outcome(&self) -> bool {
        matches!(self, Self::Outcome { .. })
    }
}

/// What the voter checked before it signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Checked {
    /// The block's parent and the views that it skips: all there is to an empty block. Also stands
    /// in every vote that is not a Notarize.
    Structure,
    /// A learning block. [`Verification::Full`]: the voter fetched all models, checked the decision and
    /// computed the outcome. [`Verification::Inclusion`]: it checked everything but these.
    Outcome(Verification),
}

/// One vote within a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// The voter.
    pub member: MemberIndex,
    /// What the voter checked; [`Checked::Structure`] for anything but a Notarize.
    pub checked: Checked,
    /// Signature of the voter over the vote.
    pub signature: Signature,
}

/// q votes of one kind for one view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The view.
    pub view: u64,
    /// What was voted for.
    pub verdict: Verdict,
    /// Exactly q votes, strictly ascending by member.
    #[serde(with = "crate::codec::shared")]
    pub votes: Arc<[Vote]>,
}

/// Why a certificate proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Not exactly q votes by distinct members in ascending order.
    #[error(
        "the certificate of view {view} has {got} votes by distinct members in ascending order, \
         {quorum} are needed"
    )]
    Votes {
        /// The view.
        view: u64,
        /// Votes, if they are by distinct members in ascending order; else 0.
        got: usize,
        /// q.
        quorum: usize,
    },
    /// A voter that is not in the roster.
    #[error("a certificate holds a vote of member {0}, which is not in the roster")]
    Stranger(MemberIndex),
    /// A signature that does not verify.
    #[error("the certificate of view {0} holds a signature that does not verify")]
    Signature(u64),
}
