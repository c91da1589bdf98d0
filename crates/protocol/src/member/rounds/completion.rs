//! Completion: the last round is adopted, here and at other members.

use std::collections::BTreeSet;

use crate::parameters::Epoch;
use crate::roster::MemberIndex;

/// The members that have adopted the last round.
#[derive(Default)]
pub(in crate::member) struct Completion {
    /// The last adopted round, if the members' strategy ended the federation with it.
    pub(in crate::member) ended: Option<u64>,
    /// This member has.
    pub(in crate::member) reached: bool,
    /// Complete has not been sent to the others yet.
    pub(in crate::member) unsent: bool,
    /// Others that have.
    pub(in crate::member) others: BTreeSet<MemberIndex>,
}

impl Completion {
    /// The last round: that of the parameter set, or an earlier one with which the strategy ended the
    /// federation. Before such a round is adopted here, nothing is known of it.
    pub(in crate::member) fn last_round(&self, epoch: &Epoch) -> u64 {
        self.ended.unwrap_or(epoch.protocol.rounds)
    }
}
