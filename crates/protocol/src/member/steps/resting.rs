//! Checks that nothing is left to do.

use crate::member::Member;

impl Member {
    /// Returns true if nothing is left to agree on: the last round is adopted, and no approved change waits.
    pub(in crate::member) fn at_rest(&self) -> bool {
        self.rounds.completion.reached && !self.governance.amendments.pending()
    }

    /// Returns true if no timer runs: everything is finished, and Complete was sent to all others.
    pub(in crate::member) fn timers_off(&self) -> bool {
        let finished = self.at_rest() && self.consensus.chain.unresolved.is_none();
        let rests = finished && !self.rounds.completion.unsent;
        self.consensus.over
            || rests
                && !self.governance.amendments.repeats(self.config.me)
                && !self.governance.recoveries.runs()
    }
}
