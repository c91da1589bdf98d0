//! Evidence against members and refusals of their messages, reported in bounded number.

use crate::effects::{Effect, Report};
use crate::envelope;
use crate::evidence::Evidence;
use crate::member::Member;

impl Member {
    /// Publishes and reports the first evidence against a member. Later evidence is dropped, so that
    /// no member can fill logs with it.
    pub(in crate::member) fn accuse(&mut self, evidence: Evidence) {
        self.own_key().look_for_messages(&evidence);
        if self.consensus.accused.insert(evidence.member) {
            let frame = envelope::seal_evidence(&self.config.epoch, &evidence);
            self.out.push(Effect::Publish { frame });
            self.out
                .push(Effect::Report(Report::Fault(Box::new(evidence))));
        }
    }
}
