//! The kinds of messages, and whether a kind belongs to a round or to a view.

use serde::{Deserialize, Serialize};

/// The kind of a message. Its number stands in the signed header, in front of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub enum Kind {
    /// [`Body::Contribution`](super::Body::Contribution).
    Contribution = 1,
    /// [`Body::Receipt`](super::Body::Receipt).
    Receipt = 2,
    /// [`Body::Bundle`](super::Body::Bundle).
    Bundle = 3,
    /// [`Body::Scores`](super::Body::Scores).
    Scores = 4,
    /// [`Body::Sheet`](super::Body::Sheet).
    Sheet = 5,
    /// [`Body::Inclusion`](super::Body::Inclusion).
    Inclusion = 6,
    /// [`Body::Proposal`](super::Body::Proposal).
    Proposal = 7,
    /// [`Body::Notarize`](super::Body::Notarize).
    Notarize = 8,
    /// [`Body::Finalize`](super::Body::Finalize).
    Finalize = 9,
    /// [`Body::Nullify`](super::Body::Nullify).
    Nullify = 10,
    /// [`Body::Progress`](super::Body::Progress).
    Progress = 11,
    /// [`Body::SyncRequest`](super::Body::SyncRequest).
    SyncRequest = 12,
    /// [`Body::SyncResponse`](super::Body::SyncResponse).
    SyncResponse = 13,
    /// A [`Certificate`](crate::certificate::Certificate), signed by its voters and not as a whole.
    Certificate = 14,
    /// [`Evidence`](crate::evidence::Evidence), signed by the accused and not as a whole.
    Evidence = 15,
    /// [`Body::Complete`](super::Body::Complete).
    Complete = 16,
    /// [`Body::Amendment`](super::Body::Amendment).
    Amendment = 17,
    /// [`Body::Approval`](super::Body::Approval).
    Approval = 18,
    /// A [`Passage`](super::Passage), signed by its voters and not as a whole.
    Passage = 19,
    /// [`Body::Standing`](super::Body::Standing).
    Standing = 20,
    /// [`Body::Confirmation`](super::Body::Confirmation).
    Confirmation = 21,
    /// [`Body::Nothing`](super::Body::Nothing).
    Nothing = 22,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 22] = [
        Self::Contribution,
        Self::Receipt,
        Self::Bundle,
        Self::Scores,
        Self::Sheet,
        Self::Inclusion,
        Self::Proposal,
        Self::Notarize,
        Self::Finalize,
        Self::Nullify,
        Self::Progress,
        Self::SyncRequest,
        Self::SyncResponse,
        Self::Certificate,
        Self::Evidence,
        Self::Complete,
        Self::Amendment,
        Self::Approval,
        Self::Passage,
        Self::Standing,
        Self::Confirmation,
        Self::Nothing,
    ];

    /// The kind of that number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The first message format that has this kind.
    pub fn since(self) -> u8 {
        match self {
            Self::Nothing => 2,
            _ => 1,
        }
    }

    /// Whether messages of this kind are signed by their sender. The others prove what they say by
    /// the signatures in them, whoever sends them.
    pub fn has_sender(self) -> bool {
        !matches!(self, Self::Certificate | Self::Evidence | Self::Passage)
    }

    /// Whether messages of this kind belong to a round, and whether they belong to a view.
    pub fn scope(self) -> Scope {
        let (round, view) = match self {
            Self::Contribution
            | Self::Scores
            | Self::Inclusion
            | Self::Complete
            | Self::Nothing => (true, false),
            Self::Bundle | Self::Sheet => (true, true),
            Self::Receipt
            | Self::Proposal
            | Self::Notarize
            | Self::Finalize
            | Self::Nullify
            | Self::Progress
            | Self::Certificate => (false, true),
            Self::SyncRequest
            | Self::SyncResponse
            | Self::Evidence
            | Self::Amendment
            | Self::Approval
            | Self::Passage
            | Self::Standing
            | Self::Confirmation => (false, false),
        };
        Scope { round, view }
    }
}

/// Whether a kind of message belongs to a round and to a view. The header holds a number from 1
/// where it does, and 0 where it does not. Other headers are refused before the signature is
/// checked, so that a signed statement has one meaning only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// It belongs to a round.
    pub round: bool,
    /// It belongs to a view.
    pub view: bool,
}

impl Scope {
    /// Whether a header may hold this round and this view.
    pub fn allows(self, round: u64, view: u64) -> bool {
        (round != 0) == self.round && (view != 0) == self.view
    }
}
