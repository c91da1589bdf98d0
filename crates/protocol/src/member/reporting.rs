//! Evidence against members and refusals of their messages, reported in bounded number.

use super::{Member, Mutation};
use crate::effects::{Effect, Report};
use crate::envelope;
use crate::evidence::Evidence;
use crate::refusal::Refusal;
use crate::roster::MemberIndex;

/// Most refusals of one member that are reported in a view.
const REFUSALS: usize = 8;

impl Member {
    /// Publishes and reports the first evidence against a member. Later evidence is dropped, so that
    /// no member can fill logs with it.
    pub(super) fn accuse(&mut self, evidence: Evidence) {
        self.look_for_own_messages(&evidence);
        if self.broken(Mutation::FaultUnreported) {
            return;
        }
        if self.accused.insert(evidence.member) {
            let frame = envelope::seal_evidence(&self.config.epoch, &evidence);
            self.out.push(Effect::Publish { frame });
            self.out
                .push(Effect::Report(Report::Fault(Box::new(evidence))));
        }
    }

    /// Reports that a message is not accepted: at most [`REFUSALS`] of one member in a view, so that
    /// it cannot fill logs.
    pub(super) fn refuse(&mut self, member: MemberIndex, round: u64, reason: Refusal) {
        let count = self.view.refused.entry(member).or_default();
        *count += 1;
        if *count > REFUSALS {
            return;
        }
        self.out.push(Effect::Report(Report::Refused {
            member,
            round,
            reason,
        }));
    }
}
