//! What is under this member's own key, or shows that another member has contradicted itself.

use crate::effects::{Effect, Report};
use crate::envelope;
use crate::evidence::Evidence;
use crate::member::Member;
use crate::member::consensus::participation::ParticipationState;
use crate::message::{Body, Message};

impl Member {
    /// Whether this member may lead a view that is its own.
    pub(in crate::member) fn may_lead(&self) -> bool {
        !self.at_rest()
            && !self.governance.recoveries.signed()
            && !self.consensus.participation.listening()
    }

    /// A message under this member's own key came from outside.
    pub(in crate::member) fn own_message_from_outside(&mut self, message: &Message) {
        if let Body::Standing(standing) = &message.body {
            self.recovering().reminded(standing);
        }
        let before = self.consensus.participation.lost_journal();
        self.own_key().look_at(message);
        if !before && self.consensus.participation.lost_journal() {
            self.try_to_take_part();
        }
    }

    /// Lets a member that only listens take part, if it may: from now on it votes, proposes and
    /// contributes.
    pub(in crate::member) fn try_to_take_part(&mut self) {
        if self.own_key().may_take_part() {
            self.consensus.participation = ParticipationState::Full;
            self.begin_to_lead();
        }
    }

    /// Publishes and reports the first evidence against a member. Later evidence is dropped, so that
    /// no member can fill logs with it.
    pub(in crate::member) fn accuse(&mut self, evidence: Evidence) {
        self.own_key().look_for_messages(&evidence);
        if self.consensus.accused.insert(evidence.member) {
            let frame = envelope::sign_evidence(&self.config.epoch, &evidence);
            self.out.push(Effect::Publish { frame });
            self.out
                .push(Effect::Report(Report::Fault(Box::new(evidence))));
        }
    }
}
