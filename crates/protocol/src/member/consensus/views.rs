//! The current view: its lead and its proposal, and what came early of later ones.

use std::collections::VecDeque;

use crate::member::Config;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::judge::Judged;
use crate::message::Message;
use crate::parameters::Verification;
use crate::roster::MemberIndex;
use crate::time::Time;

/// The current view.
pub(in crate::member) struct View {
    pub(in crate::member) number: u64,
    pub(in crate::member) lead: MemberIndex,
    pub(in crate::member) entered: Time,
    /// When the lead's progress counter last grew, and its value.
    pub(in crate::member) last_progress: Time,
    pub(in crate::member) progress_counter: Option<u64>,
    /// The lead's proposal, once it is here.
    pub(in crate::member) judged: Option<Judged>,
    /// Messages by the leads of later views.
    pub(in crate::member) early: VecDeque<Message>,
}

impl View {
    pub(in crate::member) fn new(number: u64, lead: MemberIndex, now: Time) -> Self {
        Self {
            number,
            lead,
            entered: now,
            last_progress: now,
            progress_counter: None,
            judged: None,
            early: VecDeque::new(),
        }
    }

    /// Keeps a message by the lead of a later view: the last one of each kind.
    pub(in crate::member) fn keep_early(&mut self, message: Message) {
        let same = |other: &Message| {
            other.sender == message.sender
                && other.view == message.view
                && other.body.kind() == message.body.kind()
        };
        self.early.retain(|other| !same(other));
        self.early.push_back(message);
    }

    /// The proposal of the current view, if that member signed it.
    pub(in crate::member) fn proposed_by(&self, member: MemberIndex) -> Option<&Message> {
        let judged = self.judged.as_ref().map(|judged| &judged.message);
        judged.filter(|message| message.sender == member)
    }

    /// Whether this member checks the decision and computes the outcome in this view: all members do
    /// under `full`, and the lead has done so in any case.
    pub(in crate::member) fn audits(&self, config: &Config, chain: &Chain) -> bool {
        let epoch = &config.epoch;
        self.lead == config.me
            || epoch.protocol.verification == Verification::Full
            || chain.auditors(epoch, self.number).contains(&config.me)
    }
}
