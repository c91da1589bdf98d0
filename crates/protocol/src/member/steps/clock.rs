//! The timers of a member. All spans are multiples of the heartbeat or of measured round trips.

use crate::member::Member;
use crate::member::consensus::stage::Stage;
use crate::time::Time;

impl Member {
    /// When [`step`](Self::step) has to be called with [`Input::Time`](crate::Input::Time) at the
    /// latest; none if no timer runs.
    pub fn deadline(&self) -> Option<Time> {
        if self.timers_off() {
            return None;
        }
        if self.governance.recoveries.signed() {
            return Some(self.consensus.next_heartbeat);
        }
        let mut due = vec![self.consensus.next_heartbeat];
        if !self
            .consensus
            .ballots
            .has_nullified(self.consensus.view.number)
        {
            due.push(self.consensus.view.last_progress + self.timing().silence());
            let spans = self.rounds.spans(&self.config.epoch);
            due.push(self.consensus.view.entered + self.timing().view_timeout(spans));
        }
        match self.consensus.lead.as_ref().map(|lead| &lead.stage) {
            Some(Stage::Waiting) => due.push(self.consensus.view.entered + self.timing().phase()),
            Some(Stage::Gathering) => due.extend(self.lead_timing().deadlines()),
            Some(Stage::Voting { .. } | Stage::Over) | None => {}
        }
        if self.consensus.view.judged.is_some() {
            // A waiting proposal is judged again when patience is over.
            due.push(self.rounds.round.started + self.config.epoch.patience());
        }
        due.into_iter().filter(|&time| time > self.now).min()
    }

    /// After the last round, views go on until the change is final.
    pub(in crate::member) fn wake(&mut self) {
        self.consensus.view.entered = self.now;
        self.consensus.view.last_progress = self.now;
        self.consensus.next_heartbeat = self.now + self.config.epoch.heartbeat();
        self.begin_to_lead();
    }

    /// Once per heartbeat: sends all messages again that have not been answered.
    pub(in crate::member) fn each_heartbeat(&mut self) {
        if self.now < self.consensus.next_heartbeat || self.timers_off() {
            return;
        }
        self.consensus.next_heartbeat = self.now + self.config.epoch.heartbeat();
        if self.governance.recoveries.signed() {
            return self.recovering().repeat();
        }
        self.amending().repeat();
        if self.at_rest() && self.consensus.chain.unresolved.is_none() {
            return self.adopting().send_complete_to_all();
        }
        self.adopting().retry();
        self.judging().retry();
        if let Some(judged) = &mut self.consensus.view.judged {
            judged.asked = None;
        }
        self.repeat_as_lead();
        let phase = self.timing().phase();
        self.contributing().repeat_contribution(phase);
        self.contributing().repeat_nothing();
        self.voting().repeat();
        self.settling().repeat();
        self.syncing().repeat();
    }
}
