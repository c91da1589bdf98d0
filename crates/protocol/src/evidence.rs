//! Evidence of a fault: two messages that one member signed and that no honest member signs both.
//!
//! This file says which messages conflict; [`verify`](crate::verify) checks the signatures.

use serde::{Deserialize, Serialize};

use crate::identity::Signature;
use crate::message::{Body, Message};
use crate::roster::MemberIndex;

/// A signed message, kept as proof. Its sender stands in the [`Evidence`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signed {
    /// The round in its header.
    pub round: u64,
    /// The view in its header.
    pub view: u64,
    /// The body.
    pub body: Body,
    /// The sender's signature.
    pub signature: Signature,
}

/// Proof that a member broke the rules. It is one of these pairs: two proposals of one view; two
/// Notarize, or two Finalize, of one view for different blocks; Nullify and Finalize of one view;
/// two different contributions to one round; two vectors masked for one list; votes for two outcomes of
/// one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The accused member.
    pub member: MemberIndex,
    /// The first of the two messages.
    pub first: Signed,
    /// The second of the two messages.
    pub second: Signed,
}

/// Reason for which evidence shows no fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvidenceError {
    /// An honest member may sign both messages.
    #[error("evidence against member {0}: an honest member may sign both of its messages")]
    NoConflict(MemberIndex),
    /// A signature does not verify, or the accused is not in the roster.
    #[error("evidence against member {0}: a message in it is not signed by that member")]
    Signature(MemberIndex),
}

impl Evidence {
    /// The evidence that two messages make; none if their senders differ or an honest member may
    /// sign both.
    pub fn of(first: &Message, second: &Message) -> Option<Self> {
        let signed = |message: &Message| Signed {
            round: message.round,
            view: message.view,
            body: message.body.clone(),
            signature: message.signature,
        };
        let evidence = Self {
            member: first.sender,
            first: signed(first),
            second: signed(second),
        };
        (first.sender == second.sender && evidence.shows_conflict()).then_some(evidence)
    }

    /// Returns the fault of the member as text: "two proposals in view 7".
    pub fn charge(&self) -> String {
        let (round, view) = (self.first.round, self.first.view);
        match (&self.first.body, &self.second.body) {
            (Body::Contribution(_) | Body::Keys(_), _) => {
                format!("two different contributions in round {round}")
            }
            (Body::MaskedVector(_), _) => {
                format!("two vectors masked for one list in round {round}")
            }
            (Body::Outcome { .. }, _) => format!("two Outcome votes in view {view}"),
            (Body::Proposal(_), _) => format!("two proposals in view {view}"),
            (Body::Notarize { .. }, _) => format!("two Notarize votes in view {view}"),
            (Body::Finalize { .. }, Body::Finalize { .. }) => {
                format!("two Finalize votes in view {view}")
            }
            _ => format!("Nullify and Finalize in view {view}"),
        }
    }

    /// The kind of fault in a few words without blanks, as a file's name can have it.
    pub fn kind(&self) -> &'static str {
        match (&self.first.body, &self.second.body) {
            (Body::Contribution(_) | Body::Keys(_), _) => "two-contributions",
            (Body::MaskedVector(_), _) => "two-masked-vectors",
            (Body::Outcome { .. }, _) => "two-outcome-votes",
            (Body::Proposal(_), _) => "two-proposals",
            (Body::Notarize { .. }, _) => "two-notarize-votes",
            (Body::Finalize { .. }, Body::Finalize { .. }) => "two-finalize-votes",
            _ => "nullify-and-finalize",
        }
    }

    /// Returns true if no honest member signs both messages. Signatures are not looked at.
    pub(crate) fn shows_conflict(&self) -> bool {
        let (one, other) = (&self.first, &self.second);
        let allowed = |signed: &Signed| {
            let scope = signed.body.kind().scope();
            scope.allows(signed.round, signed.view)
        };
        let same_header = (one.round, one.view) == (other.round, other.view);
        same_header
            && one.body.kind().binds()
            && allowed(one)
            && allowed(other)
            && match (&one.body, &other.body) {
                (Body::Contribution(a), Body::Contribution(b)) => !a.same(b),
                (Body::Proposal(a), Body::Proposal(b)) => a.block.hash() != b.block.hash(),
                (Body::Notarize { block: a, .. }, Body::Notarize { block: b, .. })
                | (Body::Finalize { block: a }, Body::Finalize { block: b }) => a != b,
                (Body::Nullify, Body::Finalize { .. }) | (Body::Finalize { .. }, Body::Nullify) => {
                    true
                }
                (Body::Keys(a), Body::Keys(b)) => a != b,
                (Body::MaskedVector(a), Body::MaskedVector(b)) => a.list == b.list && a != b,
                (
                    Body::Outcome { block: a, outcome },
                    Body::Outcome {
                        block: b,
                        outcome: other,
                    },
                ) => a == b && outcome != other,
                _ => false,
            }
    }
}
