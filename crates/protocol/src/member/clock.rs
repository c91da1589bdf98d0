//! The timers of a member. All spans are multiples of the beat or of measured round trips.

use std::time::Duration;

use super::Member;
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
            due.push(self.view.last_progress + self.timing().silence());
            due.push(self.view.entered + self.timing().view_timeout());
        }
        due.extend(self.timing().lead_deadline());
        due.extend(self.timing().judge_deadline());
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
        self.judging().repeat();
        let voters = self.voting().voters();
        self.leading().repeat(&voters);
        let phase = self.timing().phase();
        self.contributing().repeat_contribution(phase);
        self.contributing().repeat_nothing();
        self.voting().repeat();
        self.repeat_questions();
    }
}
