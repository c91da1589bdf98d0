//! What consensus asks of the side whose blocks it agrees on. What follows there from a final block, a new view
//! or a heartbeat is not asked, and stands in `steps`.

use crate::member::consensus::chain::Chain;
use crate::message::{Body, Message};
use crate::roster::MemberIndex;

/// What blocks are about, as far as consensus has to know it.
pub(in crate::member) trait BlockPayload {
    /// The round under way.
    fn round(&self) -> u64;

    /// The round under way, if this member has contributed to it.
    fn contributed(&self) -> Option<u64>;

    /// Whether the journal holds this body as one that this member has signed for a round or its outcome.
    fn has_signed(&self, round: u64, body: &Body) -> bool;

    /// The newest message that a member is known to have signed for a round or its outcome, and must not forget.
    fn signed_by(&self, member: MemberIndex) -> Option<&Message>;

    /// The view of the last final block after which a member may take part again that has forgotten what it signed.
    fn renewed_in(&self, chain: &Chain) -> u64;
}
