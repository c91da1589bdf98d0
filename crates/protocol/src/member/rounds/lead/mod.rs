//! The lead's part of a round, in stages.
//!
//! | file | holds |
//! |---|---|
//! | `gathered` | what a lead has gathered, and its stage |
//! | `collect` | contributions and receipts, until the set is closed |
//!
//! What follows is of the kind of round: `clear/lead` goes from scores to a decision, `masked/lead` from a list to
//! a manifest of vectors.

pub(in crate::member) mod collect;
pub(in crate::member) mod gathered;

use std::time::Duration;

use crate::member::consensus::chain::Chain;
use crate::member::consensus::links::Presence;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::stage::BlockDraft;
use crate::member::consensus::timers::Timing;
use crate::member::consensus::views::View;
use crate::member::rounds::RoundKind;
use crate::member::rounds::absences::Absences;
use crate::member::rounds::entries::EntriesAwaited;
use crate::member::rounds::round::Round;
use crate::member::{Config, Member};
use crate::message::{Body, Message};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;

use gathered::{Gathered, RoundStage};

/// Gathering what a block of a round has. Borrows what that depends on.
pub(in crate::member) struct Leading<'a> {
    pub(in crate::member) kind: &'static dyn RoundKind,
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) now: Time,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a Chain,
    pub(in crate::member) view: &'a View,
    pub(in crate::member) round: &'a mut Round,
    pub(in crate::member) presence: &'a Presence,
    pub(in crate::member) absences: &'a Absences,
    /// What is gathered, while this member leads.
    pub(in crate::member) gathered: Option<&'a mut Gathered>,
}

/// The spans that a lead waits for. Borrows what they depend on.
#[derive(Clone, Copy)]
pub(in crate::member) struct LeadTiming<'a> {
    pub(in crate::member) kind: &'static dyn RoundKind,
    pub(in crate::member) view: Timing<'a>,
    pub(in crate::member) round: &'a Round,
    pub(in crate::member) absences: &'a Absences,
    pub(in crate::member) gathered: Option<&'a Gathered>,
}

impl Member {
    /// Lends what gathering for a block depends on.
    pub(in crate::member) fn leading(&mut self) -> Leading<'_> {
        let leads = self.consensus.lead.is_some();
        Leading {
            kind: self.rounds.kind,
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            view: &self.consensus.view,
            round: &mut self.rounds.round,
            presence: &self.consensus.presence,
            absences: &self.rounds.absences,
            gathered: leads.then_some(&mut self.rounds.gathered),
        }
    }

    /// The spans that this member waits for as lead.
    pub(in crate::member) fn lead_timing(&self) -> LeadTiming<'_> {
        let leads = self.consensus.lead.is_some();
        LeadTiming {
            kind: self.rounds.kind,
            view: self.timing(),
            round: &self.rounds.round,
            absences: &self.rounds.absences,
            gathered: leads.then_some(&self.rounds.gathered),
        }
    }
}

impl Leading<'_> {
    /// The spans that this lead waits for.
    pub(in crate::member) fn timing(&self) -> LeadTiming<'_> {
        LeadTiming {
            kind: self.kind,
            view: Timing {
                config: self.config,
                now: self.now,
                chain: self.chain,
                view: self.view,
                presence: self.presence,
            },
            round: self.round,
            absences: self.absences,
            gathered: self.gathered.as_deref(),
        }
    }

    /// Goes on with the present stage, as far as possible now. Gives a block to propose.
    ///
    /// # Errors
    /// Why this member votes against its own view.
    pub(in crate::member) fn go_on(&mut self) -> Result<Option<BlockDraft>, Refusal> {
        match self.gathered.as_ref().map(|gathered| &gathered.stage) {
            None => Ok(None),
            Some(RoundStage::Collecting) => {
                self.collect_contributions();
                Ok(None)
            }
            Some(_) => self.kind.go_on(self),
        }
    }

    pub(in crate::member) fn set_stage(&mut self, stage: RoundStage) {
        if let Some(gathered) = &mut self.gathered {
            gathered.stage = stage;
        }
    }

    /// Once per heartbeat: sends again what members have not answered.
    pub(in crate::member) fn repeat(&mut self) {
        let Some((body, to)) = self.kind.unanswered(self) else {
            return;
        };
        let (round, view) = (self.round.number, self.view.number);
        let (message, frame) = self.config.sign(round, view, body);
        for member in to {
            self.out.send(member, &message, &frame);
        }
    }

    /// Once per heartbeat: sends what a proposal rests on to members that have not voted.
    pub(in crate::member) fn repeat_rests(&mut self, message: &Message, silent: &[MemberIndex]) {
        let (round, view) = (self.round.number, self.view.number);
        let Body::Proposal(proposal) = &message.body else {
            return;
        };
        for body in self.kind.rests_on(self, &proposal.block.content) {
            let (other, bytes) = self.config.sign(round, view, body);
            for &to in silent {
                self.out.send(to, &other, &bytes);
            }
        }
    }
}

impl LeadTiming<'_> {
    /// D, the time that one phase of the view may take.
    pub(in crate::member) fn phase(&self) -> Duration {
        self.view.phase()
    }

    /// Whom the round waits for.
    pub(in crate::member) fn waiting(&self) -> EntriesAwaited<'_> {
        EntriesAwaited {
            config: self.view.config,
            now: self.view.now,
            round: self.round,
            presence: self.view.presence,
            absences: self.absences,
        }
    }

    /// When the spans that the lead waits for end.
    pub(in crate::member) fn deadlines(&self) -> Vec<Time> {
        match self.gathered.map(|gathered| &gathered.stage) {
            Some(RoundStage::Collecting) => {
                let entered = self.view.view.entered + self.phase();
                vec![
                    entered,
                    self.round.started + self.view.config.epoch.patience(),
                ]
            }
            Some(_) => self.kind.deadlines(self),
            None => Vec::new(),
        }
    }
}
