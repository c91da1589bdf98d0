//! Judging what the block of a round holds: whether to vote for it (R1).

use crate::certificate::Checked;
use crate::hash::Hash;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::judge::{Opinion, Ruling};
use crate::member::consensus::links::Presence;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::views::View;
use crate::member::rounds::RoundKind;
use crate::member::rounds::absences::Absences;
use crate::member::rounds::entries::EntriesAwaited;
use crate::member::rounds::round::Round;
use crate::member::{Config, Member};
use crate::refusal::Refusal;
use crate::time::Time;

/// How far judging the content of the view's proposal is, while this member has not voted.
#[derive(Default)]
pub(in crate::member) enum JudgingState {
    /// Something that the judgement needs may be missing: the plan, the manifest, an ancestor, the end of
    /// a skipped view, or the end of patience.
    #[default]
    Open,
    /// The decision is being checked, or the outcome computed.
    Working { case: Hash },
    /// The outcome that others check is being fetched.
    Keeping { outcome: Hash },
    /// A model could not be fetched; tried again after a heartbeat.
    Stalled,
}

/// Judging the content of the proposal of the view. Borrows what that depends on.
pub(in crate::member) struct Judging<'a> {
    kind: &'static dyn RoundKind,
    pub(in crate::member) config: &'a Config,
    now: Time,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a Chain,
    pub(in crate::member) view: &'a mut View,
    pub(in crate::member) round: &'a mut Round,
    pub(in crate::member) state: &'a mut JudgingState,
    presence: &'a Presence,
    absences: &'a Absences,
    /// The lead of the view has this member's contribution.
    pub(in crate::member) receipted: bool,
}

impl Member {
    /// Lends what judging the content of a block depends on.
    pub(in crate::member) fn judging(&mut self) -> Judging<'_> {
        Judging {
            kind: self.rounds.kind,
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            view: &mut self.consensus.view,
            round: &mut self.rounds.round,
            state: &mut self.rounds.judging,
            presence: &self.consensus.presence,
            absences: &self.rounds.absences,
            receipted: self.rounds.receipt.is_some(),
        }
    }
}

impl Judging<'_> {
    /// Whom the round waits for.
    pub(in crate::member) fn waiting(&self) -> EntriesAwaited<'_> {
        EntriesAwaited {
            config: self.config,
            now: self.now,
            round: self.round,
            presence: self.presence,
            absences: self.absences,
        }
    }

    /// What follows from work that is under way for the proposal; `None` if there is none.
    pub(in crate::member) fn under_way(&mut self) -> Option<Ruling> {
        match *self.state {
            JudgingState::Open => None,
            JudgingState::Working { case } => Some(self.conclude(case)),
            JudgingState::Keeping { .. } | JudgingState::Stalled => Some(Ruling::Wait),
        }
    }

    /// Judges what the block holds.
    ///
    /// # Errors
    /// What R1 demands instead.
    pub(in crate::member) fn judge(&mut self) -> Result<Ruling, Opinion> {
        self.kind.judge(self)
    }

    /// Votes for the proposal.
    pub(in crate::member) fn vote(&mut self, checked: Checked) -> Ruling {
        match self.has_voted() {
            Some(block) => Ruling::Notarize(block, checked),
            None => Ruling::Wait,
        }
    }

    /// Votes against the view, because its proposal breaks a rule.
    pub(in crate::member) fn refuse(&mut self, reason: Refusal) -> Ruling {
        self.has_voted();
        if let Some(judged) = &self.view.judged {
            let proposer = judged.message.sender;
            self.out.refuse(proposer, self.round.number, reason.clone());
        }
        Ruling::Nullify(reason)
    }

    /// This member votes now. Gives the proposed block.
    pub(in crate::member) fn has_voted(&mut self) -> Option<Hash> {
        *self.state = JudgingState::Open;
        let judged = self.view.judged.as_mut()?;
        judged.voted = true;
        Some(judged.block)
    }

    /// A heartbeat has passed: fetches again.
    pub(in crate::member) fn retry(&mut self) {
        self.round.masks.retry();
        if matches!(self.state, JudgingState::Stalled) {
            *self.state = JudgingState::Open;
        }
    }
}
