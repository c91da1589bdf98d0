//! The change of an agreement, as members approve it and as a block holds it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::codec;
use crate::hash::Hash;
use crate::identity::{PublicKey, Signature};
use crate::parameters::{Checkpoint, ProtocolParameters};
use crate::roster::{MemberIndex, Silo};

/// An agreement that may come into force instead of the present one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amendment {
    /// Format of the messages, at least that of the present agreement.
    pub format: u8,
    /// The members.
    pub silos: Vec<Silo>,
    /// The parameter set.
    pub protocol: ProtocolParameters,
    /// The text that institutions read and approve, from which roster and parameter set follow. The
    /// protocol does not look into it. Empty where a member leaves by itself.
    pub text: Vec<u8>,
    /// Keys of the present roster that are in this one no more because they were stolen, ascending.
    /// Whoever has them is told nothing any more, not even that the agreement has changed.
    pub stolen: Vec<PublicKey>,
}

/// A member's signed word that its institution approves an amendment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The member.
    pub by: MemberIndex,
    /// Counts up with everything that the member says of this amendment: the last word counts.
    pub number: u64,
    /// Signature of the member over [`Body::Approval`](super::Body::Approval).
    pub signature: Signature,
}

/// The content of a block that ends an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The agreement of the next epoch.
    pub amendment: Amendment,
    /// The last final round of the present epoch. With it, a member that joins knows where the
    /// federation stands.
    pub after: Checkpoint,
    /// Signatures of members that approve the amendment, ascending by member.
    #[serde(with = "codec::shared")]
    pub approvals: Arc<[Approval]>,
}

impl Amendment {
    /// The hash that members approve.
    pub fn hash(&self) -> Hash {
        Hash::labelled("amendment", &[&codec::encode(self)])
    }
}
