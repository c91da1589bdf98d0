//! Completion: the last round is adopted, here and at other members.

use std::collections::BTreeSet;

use super::Member;
use crate::roster::MemberIndex;

/// The members that have adopted the last round.
#[derive(Default)]
pub(super) struct Completion {
    /// This member has.
    pub(super) reached: bool,
    /// Complete has not been sent to the others yet.
    pub(super) unsent: bool,
    /// Others that have.
    pub(super) others: BTreeSet<MemberIndex>,
}

impl Member {
    /// Whether nothing is left to agree on: the last round is adopted, and no approved change waits.
    pub(super) fn at_rest(&self) -> bool {
        self.completion.reached && !self.amendments.pending()
    }

    /// Whether no timer runs: everything is finished, and Complete was sent to all others.
    pub(super) fn timers_off(&self) -> bool {
        let finished = self.at_rest() && self.chain.unresolved.is_none();
        let rests = finished && !self.completion.unsent;
        self.over || rests && !self.amendments.repeats(self.config.me) && !self.recoveries.runs()
    }
}
