//! What a member signs that wants to go on without members that are gone for good.

use serde::{Deserialize, Serialize};

use crate::hash::Hash;
use crate::parameters::Checkpoint;
use crate::roster::MemberIndex;

/// What a member signs that wants to go on without others: whom it holds for lost, and where it
/// stands. From then on it does nothing more in this epoch.
///
/// An institution may correct itself: of a member's standings the one with the highest number counts,
/// and it also says that the member has not confirmed, and never will, a set with an earlier one (or
/// that another member of that set has said so before).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Counts up from 1 with every standing of this member in this epoch.
    pub number: u64,
    /// The members that are gone, ascending. All others have to sign.
    pub lost: Vec<MemberIndex>,
    /// The last round whose outcome the signer has adopted.
    pub adopted: Checkpoint,
    /// View of the last final block that it knows; 0 for none of this epoch.
    pub view: u64,
    /// That block; the epoch's id for none.
    pub block: Hash,
    /// A later view of which it knows a notarisation; 0 for none. The block of that view may be final
    /// for a member that is gone.
    pub notarised: u64,
}

/// What a member signs that has the last standings of all that remain: it goes on from these. A
/// recovery is complete when all that remain have confirmed the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// Counts up from 1 with every confirmation of this member in this epoch: the highest counts.
    pub number: u64,
    /// Hash of the set of standings: see [`recovery::set`](crate::recovery::set).
    pub set: Hash,
}
