//! Leading a view: gathering for a block of a round, or a change of the agreement, and proposing it.

use bytes::Bytes;

use crate::member::Member;
use crate::member::consensus::leading::LeadingView;
use crate::member::consensus::stage::{Lead, Stage};
use crate::member::rounds::lead::gathered::Gathered;
use crate::message::{Message, Phase};
use crate::refusal::Refusal;

impl Member {
    /// Lends what leading a view depends on.
    fn leading_view(&mut self) -> LeadingView<'_> {
        LeadingView {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            view: &self.consensus.view,
            presence: &self.consensus.presence,
            lead: &mut self.consensus.lead,
            gathered: self.rounds.gathered.phase(),
        }
    }

    /// Starts to lead the view if it is this member's and it may sign. Sends the contribution to the
    /// view's lead.
    pub(in crate::member) fn begin_to_lead(&mut self) {
        let leads = self.consensus.view.lead == self.config.me && self.may_lead();
        if leads && self.consensus.lead.is_none() {
            self.consensus.lead = Some(Lead::new());
            self.rounds.gathered = Gathered::default();
            self.lead_anew();
        }
        if self.consensus.chain.newest_notarised().is_none() {
            self.contributing().send_contribution();
        }
    }

    /// Starts to lead: the view begins, or the round within it.
    pub(in crate::member) fn lead_anew(&mut self) {
        let durable = self.voting().proposal();
        self.rounds.gathered.begin();
        self.leading_view().start(durable);
    }

    /// Goes through as many stages of leading as possible now.
    pub(in crate::member) fn lead(&mut self) {
        loop {
            let Some(before) = self.leading_view().phase() else {
                return;
            };
            let stage = self.consensus.lead.as_ref().map(|lead| &lead.stage);
            let next = match stage {
                Some(Stage::Waiting) => Ok(self.leading_view().wait_for_finality()),
                Some(Stage::Gathering)
                    if before == Phase::Collecting && self.governance.amendments.pending() =>
                {
                    Ok(self.amending().draft())
                }
                Some(Stage::Gathering) => self.leading().go_on(),
                Some(Stage::Voting { .. } | Stage::Over) | None => Ok(None),
            };
            match next {
                Ok(None) => {}
                Ok(Some(draft)) => {
                    let proposed = self.voting().propose(draft);
                    self.proposed(proposed);
                }
                Err(reason) => self.fail_as_lead(reason),
            }
            let round = self.rounds.round.number;
            let phase = self.leading_view().report_phase(round);
            if phase.is_none_or(|phase| phase == before) {
                return;
            }
        }
    }

    /// A block was proposed, or may not be.
    fn proposed(&mut self, proposed: Option<(Message, Bytes)>) {
        self.rounds.gathered.end();
        self.leading_view().proposed(proposed);
    }

    /// This member votes against its own view.
    pub(in crate::member) fn fail_as_lead(&mut self, reason: Refusal) {
        self.rounds.gathered.end();
        self.leading_view().set_stage(Stage::Over);
        self.voting().nullify(reason);
    }

    /// Once per heartbeat: sends again what members have not answered. A proposal is answered by votes.
    pub(in crate::member) fn repeat_as_lead(&mut self) {
        let (message, frame) = match self.consensus.lead.as_ref().map(|lead| &lead.stage) {
            // Progress would only make the others wait.
            None | Some(Stage::Over) => return,
            Some(Stage::Waiting) => return self.leading_view().send_progress(),
            Some(Stage::Gathering) => {
                self.leading_view().send_progress();
                return self.leading().repeat();
            }
            Some(Stage::Voting { message, frame }) => (message.clone(), frame.clone()),
        };
        self.leading_view().send_progress();
        let voters = self.voting().voters();
        let mut silent = self.config.others();
        silent.retain(|member| !voters.contains(member));
        self.leading().repeat_rests(&message, &silent);
        for to in silent {
            self.out.send(to, &message, &frame);
        }
    }
}
