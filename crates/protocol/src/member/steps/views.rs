//! Entering and leaving views.

use crate::certificate::Certificate;
use crate::effects::{Effect, Record, Report};
use crate::member::Member;
use crate::member::consensus::views::View;
use crate::member::rounds::judging::JudgingState;
use crate::message::Body;

impl Member {
    /// A view has ended: enters the next one, unless this member is further.
    pub(in crate::member) fn leave(&mut self, view: u64, certificate: Certificate) {
        if view >= self.consensus.view.number {
            self.out
                .push(Effect::Persist(Record::Certified(certificate)));
            self.enter(view + 1);
        }
    }

    /// Blocks became final: enters the view after them, or the present one again if another member leads
    /// it now.
    pub(in crate::member) fn follow_tip(&mut self) {
        let (tip, view) = (self.consensus.chain.tip.view, self.consensus.view.number);
        if tip >= view {
            self.enter(tip + 1);
        } else if self.consensus.chain.lead(&self.config.epoch, view) != self.consensus.view.lead {
            // The view began before this block was known to be final.
            self.enter(view);
        } else if self.consensus.lead.is_some() {
            self.lead_anew();
        }
    }

    /// Enters a view. The number never falls. It stays the same where a block that became final
    /// gives the view another lead.
    pub(in crate::member) fn enter(&mut self, number: u64) {
        let lead = self.consensus.chain.lead(&self.config.epoch, number);
        let again = number == self.consensus.view.number;
        let early = std::mem::take(&mut self.consensus.view.early);
        self.consensus.view = View::new(number, lead, self.now);
        self.consensus.view.early = early;
        self.out.view_begins();
        // What this member proposed in a view stays its only proposal there, and is sent on.
        self.consensus
            .lead
            .take_if(|lead| !(again && lead.proposed()));
        self.rounds.receipt = None;
        self.rounds.judging = JudgingState::default();
        // Models of an earlier lead's manifest may never arrive.
        self.rounds.round.models.fetching = false;
        if self.at_rest() {
            return;
        }
        self.out.push(Effect::Report(Report::Entered {
            view: number,
            lead,
            round: self.rounds.round.number,
        }));
        self.begin_to_lead();
        let waiting = std::mem::take(&mut self.consensus.view.early);
        for message in waiting {
            if message.view == number {
                match message.body {
                    // At once, so that no proposal of this view is judged without it.
                    Body::Receipt { .. } if message.sender == lead => {
                        self.contributing().receipt(&message)
                    }
                    _ => self.out.deliver_to_self(message),
                }
            } else if message.view > number {
                self.consensus.view.early.push_back(message);
            }
        }
    }
}
