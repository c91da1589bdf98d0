//! A quorum of votes of one kind: stands alone as proof.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::charter::Epoch;
use crate::envelope;
use crate::hash::Hash;
use crate::identity::{Claim, Signature, Verifier};
use crate::message::{Body, Checked};
use crate::roster::MemberIndex;

/// What the votes were for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Verdict {
    /// The view is over without a block that could become final.
    Nullified,
    /// At most one block of the view can be this.
    Notarised(Hash),
    /// The block and everything before it stays for ever.
    Final(Hash),
}

impl Verdict {
    /// The block voted for, if any.
    pub fn block(&self) -> Option<Hash> {
        match self {
            Self::Nullified => None,
            Self::Notarised(block) | Self::Final(block) => Some(*block),
        }
    }

    /// The body of the vote by a member that checked this much.
    pub fn vote(&self, checked: Checked) -> Body {
        match *self {
            Self::Nullified => Body::Nullify,
            Self::Notarised(block) => Body::Notarize { block, checked },
            Self::Final(block) => Body::Finalize { block },
        }
    }
}

/// One vote within a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    /// Who.
    pub member: MemberIndex,
    /// What it checked; [`Checked::Structure`] for anything but a Notarize.
    pub checked: Checked,
    /// Its signature over the vote.
    pub signature: Signature,
}

/// q votes of one kind for one view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// The view.
    pub view: u64,
    /// What was voted for.
    pub verdict: Verdict,
    /// Exactly a quorum of votes, ascending by member.
    #[serde(with = "crate::codec::shared")]
    pub votes: Arc<[Vote]>,
}

/// Why a certificate proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// Too few or too many votes, or not in ascending order of distinct members.
    #[error("a certificate of view {view} has {got} votes in order, {quorum} are needed")]
    Votes {
        /// The view.
        view: u64,
        /// Distinct votes in order.
        got: usize,
        /// The quorum.
        quorum: usize,
    },
    /// A vote by nobody in the roster.
    #[error("a certificate names member {0}, who is not in the roster")]
    Stranger(MemberIndex),
    /// A signature that does not hold.
    #[error("a certificate of view {0} holds a signature that does not verify")]
    Signature(u64),
}

impl Certificate {
    /// Whether it proves what it says.
    ///
    /// # Errors
    /// [`CertificateError`]: not a quorum of distinct members, strangers, signatures.
    pub fn verify(&self, epoch: &Epoch, verifier: &dyn Verifier) -> Result<(), CertificateError> {
        let quorum = epoch.roster.quorum();
        let ascending = self
            .votes
            .windows(2)
            .all(|pair| pair[0].member < pair[1].member);
        if self.votes.len() != quorum || !ascending {
            let got = if ascending { self.votes.len() } else { 0 };
            return Err(CertificateError::Votes {
                view: self.view,
                got,
                quorum,
            });
        }
        let statements: Vec<_> = self
            .votes
            .iter()
            .map(|vote| {
                let body = self.verdict.vote(vote.checked);
                envelope::statement(epoch, 0, self.view, vote.member, &body)
            })
            .collect();
        let claims = self
            .votes
            .iter()
            .zip(&statements)
            .map(|(vote, message)| {
                let key = epoch.roster.key(vote.member);
                let key = key.ok_or(CertificateError::Stranger(vote.member))?;
                Ok(Claim {
                    key,
                    message,
                    signature: vote.signature,
                })
            })
            .collect::<Result<Vec<_>, CertificateError>>()?;
        if verifier.verify_all(&claims) {
            Ok(())
        } else {
            Err(CertificateError::Signature(self.view))
        }
    }
}
