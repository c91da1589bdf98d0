//! How long phases and views may take.

use std::time::Duration;

use crate::member::Config;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::links::Presence;
use crate::member::consensus::views::View;
use crate::refusal::Refusal;
use crate::time::Time;

/// The spans of the present view. Borrows what they depend on.
#[derive(Clone, Copy)]
pub(in crate::member) struct Timing<'a> {
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) now: Time,
    pub(in crate::member) chain: &'a Chain,
    pub(in crate::member) view: &'a View,
    pub(in crate::member) presence: &'a Presence,
}

impl Timing<'_> {
    /// D, the time that one phase of the view may take.
    pub(in crate::member) fn phase(&self) -> Duration {
        let failed = self.chain.failed_views(self.view.number);
        self.presence.phase_time(failed)
    }

    /// The silence span: how long a lead may go without progress.
    pub(in crate::member) fn silence(&self) -> Duration {
        (3 * self.config.epoch.heartbeat()).max(2 * self.phase())
    }

    /// How long a view may take, even if its lead sends progress: so many spans of patience and of D at the least.
    pub(in crate::member) fn view_timeout(&self, (patient, phases): (u32, u32)) -> Duration {
        let epoch = &self.config.epoch;
        let least = patient * epoch.patience() + phases * self.phase();
        (epoch.heartbeat() * epoch.protocol.view_timeout).max(least)
    }

    /// Why to vote against the view now: its lead is silent or too slow (R2).
    pub(in crate::member) fn lead_fails(&self, spans: (u32, u32)) -> Option<Refusal> {
        let lead = || self.config.epoch.roster.name(self.view.lead).to_owned();
        let (silence, timeout) = (self.silence(), self.view_timeout(spans));
        let silent = self.now >= self.view.last_progress + silence;
        if silent {
            let lead = lead();
            return Some(Refusal::Silent { lead, silence });
        }
        let slow = self.now >= self.view.entered + timeout;
        slow.then(|| Refusal::Slow {
            lead: lead(),
            timeout,
        })
    }
}

impl View {
    /// A Progress message of the lead. One with an old counter shows no progress: anybody may have
    /// sent it again.
    pub(in crate::member) fn progressed(&mut self, now: Time, counter: u64) {
        if self.progress_counter.is_none_or(|last| counter > last) {
            self.progress_counter = Some(counter);
            self.last_progress = now;
        }
    }
}
