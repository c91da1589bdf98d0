//! What a member signs that wants to go on without members that are gone for good.

use serde::{Deserialize, Serialize};

use crate::charter::Checkpoint;
use crate::hash::Hash;
use crate::roster::MemberIndex;

/// What a member signs that wants to go on without others: whom it holds for lost, and where it
/// stands. From then on it does nothing more in this epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
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
