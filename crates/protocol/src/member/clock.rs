//! The timers: all of them multiples of the beat or of measured round trips.

use std::time::Duration;

use super::Member;
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;

impl Member {
    /// When to call [`step`](Self::step) with [`Input::Time`](crate::Input::Time) at the latest.
    pub fn deadline(&self) -> Option<Time> {
        if self.idle() {
            return None;
        }
        let mut due = vec![self.next_beat];
        if !self.ballots.nullified(self.view.number) {
            due.push(self.view.heard + self.silence());
            due.push(self.view.entered + self.limit());
        }
        due.extend(self.lead_deadline());
        due.extend(self.judge_deadline());
        due.into_iter().filter(|&time| time > self.now).min()
    }

    /// All rounds are done, and nothing is missing.
    fn done(&self) -> bool {
        self.complete && self.chain.unresolved.is_none()
    }

    /// Nothing to do until somebody says something.
    fn idle(&self) -> bool {
        self.done() && !self.sync.telling
    }

    /// A member cannot be reached. It may be back within the round's patience, so that alone does
    /// not excuse it.
    pub(super) fn down(&mut self, peer: MemberIndex) {
        self.unreachable.insert(peer);
        self.sync.unreachable(peer);
    }

    /// Whether a member need not be waited for beyond D: the last round that it was asked to take
    /// part in became final without it, and it cannot be reached or had its chance.
    pub(super) fn excused(&self, member: MemberIndex) -> bool {
        let reachable = !self.unreachable.contains(&member);
        self.round.excuses(member, reachable)
    }

    /// A member can be reached.
    pub(super) fn up(&mut self, peer: MemberIndex, round_trip: Duration) {
        self.unreachable.remove(&peer);
        if let Some(known) = self.round_trips.get_mut(peer.at()) {
            *known = Some(round_trip);
        }
        let beat = self.config.epoch.beat();
        let mut known: Vec<_> = self.round_trips.iter().flatten().copied().collect();
        known.push(Duration::ZERO);
        let quorum = self.config.epoch.roster.quorum();
        let at = (quorum - 1).min(known.len() - 1);
        let (_, &mut trip, _) = known.select_nth_unstable(at);
        self.shortest_phase = (beat / 2).max((4 * trip).min(16 * beat));
        self.ask_first(peer);
        self.tell_complete(peer);
    }

    /// D, the time that one phase of a view may take: D0 = max(beat/2, four times the q-th smallest
    /// round trip, at most 16 beats), doubled for every view since the last final learning block.
    pub(super) fn phase_time(&self) -> Duration {
        let failed = (self.view.number - 1).saturating_sub(self.chain.learned.view);
        self.shortest_phase * (1 << failed.min(4) as u32)
    }

    /// How long a lead may be silent.
    fn silence(&self) -> Duration {
        (3 * self.config.epoch.beat()).max(2 * self.phase_time())
    }

    /// How long a view may take, whatever its lead says.
    fn limit(&self) -> Duration {
        let epoch = &self.config.epoch;
        let phases = epoch.roster.faulty() as u32 + 4;
        // Collecting, scoring and signing may each take the whole patience.
        let least = 3 * epoch.patience() + phases * self.phase_time();
        (epoch.beat() * epoch.charter.limit).max(least)
    }

    /// Whether the round has waited long enough for slow participants.
    pub(super) fn patience_over(&self) -> bool {
        self.now >= self.round.started + self.config.epoch.patience()
    }

    /// The lead of the view shows progress. An old message that somebody says again is none.
    pub(super) fn progressed(&mut self, counter: u64) {
        if self.view.counted.is_none_or(|last| counter > last) {
            self.view.counted = Some(counter);
            self.view.heard = self.now;
        }
    }

    /// Votes against a view whose lead is silent or too slow (R2).
    pub(super) fn watch(&mut self) {
        if self.complete || self.ballots.nullified(self.view.number) {
            return;
        }
        let lead = || self.config.epoch.roster.name(self.view.lead).to_owned();
        let (silence, limit) = (self.silence(), self.limit());
        if self.now >= self.view.heard + silence {
            let lead = lead();
            self.nullify(Refusal::Silent { lead, silence });
        } else if self.now >= self.view.entered + limit {
            let lead = lead();
            self.nullify(Refusal::Slow { lead, limit });
        }
    }

    /// Says again, once per beat, whatever has not been answered.
    pub(super) fn beat(&mut self) {
        if self.now < self.next_beat || self.idle() {
            return;
        }
        self.next_beat = self.now + self.config.epoch.beat();
        if self.done() {
            return self.tell_all_complete();
        }
        self.round.retry();
        self.repeat_judging();
        self.repeat_as_lead();
        self.repeat_contribution();
        self.repeat_votes();
        self.ask_again();
    }
}
