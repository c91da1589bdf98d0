//! The timers of a member. All spans are multiples of the beat or of measured round trips.

use std::time::Duration;

use super::{Member, Mutation};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;

impl Member {
    /// When [`step`](Self::step) has to be called with [`Input::Time`](crate::Input::Time) at the
    /// latest; none if no timer runs.
    pub fn deadline(&self) -> Option<Time> {
        if self.timers_off() {
            return None;
        }
        if self.recoveries.signed() {
            return Some(self.next_beat);
        }
        let mut due = vec![self.next_beat];
        if !self.ballots.has_nullified(self.view.number) {
            due.push(self.view.last_progress + self.silence());
            due.push(self.view.entered + self.view_timeout());
        }
        due.extend(self.lead_deadline());
        due.extend(self.judge_deadline());
        due.into_iter().filter(|&time| time > self.now).min()
    }

    /// Whether the last round is adopted, no block of the chain is missing, and no approved change
    /// waits to be proposed.
    fn finished(&self) -> bool {
        self.at_rest() && self.chain.unresolved.is_none()
    }

    /// Whether no timer runs: everything is finished, and Complete was sent to all others.
    fn timers_off(&self) -> bool {
        let rests = self.finished() && !self.completion.unsent;
        self.over || rests && !self.amendments.repeats(self.config.me) && !self.recoveries.runs()
    }

    /// A member cannot be reached.
    pub(super) fn peer_down(&mut self, peer: MemberIndex) {
        self.presence.down(peer);
        self.sync.unreachable(peer);
    }

    /// A member can be reached.
    pub(super) fn peer_up(&mut self, peer: MemberIndex, round_trip: Duration) {
        self.presence.up(&self.config.epoch, peer, round_trip);
        self.ask_if_useful(peer);
        self.send_standings(&[peer]);
        if self.recoveries.signed() {
            return;
        }
        self.send_complete_to(peer);
        self.contributing().send_nothing(&[peer]);
        self.send_amendments(&[peer]);
    }

    /// D, the time that one phase of the view may take.
    pub(super) fn phase_time(&self) -> Duration {
        let failed = match self.config.broken(Mutation::PhasesStayShort) {
            true => 0,
            false => self.chain.failed_views(self.view.number),
        };
        self.presence.phase_time(failed)
    }

    /// The silence span: how long a lead may go without progress.
    fn silence(&self) -> Duration {
        (3 * self.config.epoch.beat()).max(2 * self.phase_time())
    }

    /// How long a view may take, even if its lead sends progress.
    fn view_timeout(&self) -> Duration {
        let epoch = &self.config.epoch;
        let phases = epoch.roster.faulty() as u32 + 4;
        // Contributions, scores and inclusions may each be waited for until patience is over.
        let least = 3 * epoch.patience() + phases * self.phase_time();
        (epoch.beat() * epoch.charter.view_timeout).max(least)
    }

    /// A Progress message of the lead. One with an old counter shows no progress: anybody may have
    /// sent it again.
    pub(super) fn progressed(&mut self, counter: u64) {
        if self.view.progress_counter.is_none_or(|last| counter > last)
            || self.config.broken(Mutation::OldProgressCounts)
        {
            self.view.progress_counter = Some(counter);
            self.view.last_progress = self.now;
        }
    }

    /// Votes against the view if its lead is silent or too slow (R2).
    pub(super) fn check_lead_timers(&mut self) {
        if self.at_rest() || self.ballots.has_nullified(self.view.number) {
            return;
        }
        let lead = || self.config.epoch.roster.name(self.view.lead).to_owned();
        let (silence, timeout) = (self.silence(), self.view_timeout());
        if self.now >= self.view.last_progress + silence
            && !self.config.broken(Mutation::SilenceTolerated)
        {
            let lead = lead();
            self.voting().nullify(Refusal::Silent { lead, silence });
        } else if self.now >= self.view.entered + timeout
            && !self.config.broken(Mutation::SlownessTolerated)
        {
            let lead = lead();
            self.voting().nullify(Refusal::Slow { lead, timeout });
        }
    }

    /// Once per beat: sends all messages again that have not been answered.
    pub(super) fn each_beat(&mut self) {
        if self.now < self.next_beat || self.timers_off() {
            return;
        }
        self.next_beat = self.now + self.config.epoch.beat();
        if self.recoveries.signed() {
            return self.repeat_standings();
        }
        self.repeat_amendments();
        if self.finished() {
            return self.send_complete_to_all();
        }
        self.round.inbox.retry();
        self.adoption.retry();
        self.repeat_judging();
        self.repeat_as_lead();
        let phase = self.phase_time();
        self.contributing().repeat_contribution(phase);
        self.contributing().repeat_nothing();
        self.voting().repeat();
        self.repeat_questions();
    }
}
