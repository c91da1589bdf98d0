//! The change of an agreement, as members approve it and as a block holds it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::charter::{Charter, Checkpoint};
use crate::codec;
use crate::hash::Hash;
use crate::identity::Signature;
use crate::roster::{MemberIndex, Silo};

/// An agreement that may come into force instead of the present one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amendment {
    /// Format of the messages, at least that of the present agreement.
    pub format: u8,
    /// The members.
    pub silos: Vec<Silo>,
    /// The charter.
    pub charter: Charter,
    /// The text that institutions read and approve, from which roster and charter follow. The
    /// protocol does not look into it. Empty where a member leaves by itself.
    pub text: Vec<u8>,
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
    pub approvals: Arc<[(MemberIndex, Signature)]>,
}

impl Amendment {
    /// The hash that members approve.
    pub fn hash(&self) -> Hash {
        Hash::labelled("amendment", &[&codec::encode(self)])
    }
}
