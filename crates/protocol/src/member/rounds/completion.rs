//! Completion: the last round is adopted, here and at other members.

use std::collections::BTreeSet;

use crate::member::Member;
use crate::roster::MemberIndex;

/// The members that have adopted the last round.
#[derive(Default)]
pub(in crate::member) struct Completion {
    /// This member has.
    pub(in crate::member) reached: bool,
    /// Complete has not been sent to the others yet.
    pub(in crate::member) unsent: bool,
    /// Others that have.
    pub(in crate::member) others: BTreeSet<MemberIndex>,
}

impl Member {
    /// Whether nothing is left to agree on: the last round is adopted, and no approved change waits.
    pub(in crate::member) fn at_rest(&self) -> bool {
        self.rounds.completion.reached && !self.governance.amendments.pending()
    }

    /// Whether no timer runs: everything is finished, and Complete was sent to all others.
    pub(in crate::member) fn timers_off(&self) -> bool {
        let finished = self.at_rest() && self.consensus.chain.unresolved.is_none();
        let rests = finished && !self.rounds.completion.unsent;
        self.consensus.over
            || rests
                && !self.governance.amendments.repeats(self.config.me)
                && !self.governance.recoveries.runs()
    }
}
