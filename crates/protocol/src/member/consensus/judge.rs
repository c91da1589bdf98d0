//! Judging the proposal of a view: whether to vote for it (R1) or against the view (R2).

use crate::certificate::{Checked, Verdict};
use crate::change::ChangeError;
use crate::charter::Verification;
use crate::effects::Effect;
use crate::hash::Hash;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::links::Presence;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::views::View;
use crate::member::governance::amendments::Amendments;
use crate::member::rounds::absences::Absences;
use crate::member::rounds::entries::{EntriesAwaited, check_rows};
use crate::member::rounds::round::Round;
use crate::member::{Config, Inclusions, Member};
use crate::message::{Block, Body, Content, Learning, Message, Proposal};
use crate::recovery::RecoveryError;
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::{Case, Request, WorkError};

/// The proposal of the current view, and how far judging it is.
pub(in crate::member) struct Judged {
    pub(in crate::member) message: Message,
    pub(in crate::member) block: Hash,
    state: JudgingState,
    /// The skipped view whose nullification the proposer was asked for in this beat.
    asked: Option<u64>,
}

impl Judged {
    /// A proposal, and whether this member has voted in its view already.
    pub(in crate::member) fn new(message: Message, block: Hash, voted: bool) -> Self {
        let state = if voted {
            JudgingState::Voted
        } else {
            JudgingState::Incomplete
        };
        Self {
            message,
            block,
            state,
            asked: None,
        }
    }
}

pub(in crate::member) enum JudgingState {
    /// Something that the judgement needs is missing: the plan, the sheet, an ancestor, the end of
    /// a skipped view, or the end of patience.
    Incomplete,
    /// The decision is being checked, or the outcome computed.
    Working { case: Hash },
    /// The outcome that others check is being fetched.
    Keeping { outcome: Hash },
    /// A model could not be fetched; tried again after a beat.
    Stalled,
    /// This member has voted for the block or against the view.
    Voted,
}

/// What the rules demand now.
pub(in crate::member) enum Opinion {
    /// Wait: the proposal may become acceptable.
    Wait,
    /// Ask for the nullification of this view. It is the first of those that the proposal skips and
    /// that are not known to be nullified.
    UnknownView(u64),
    /// Vote against the view.
    Refuse(Refusal),
    /// Vote for the block, which changes no model.
    Structure,
    /// Check the decision and compute the outcome.
    Learning(Case),
    /// Fetch and check the masked vectors of this sheet.
    Masked(Hash),
}

/// Judging the proposal of the view. Borrows what that depends on.
pub(in crate::member) struct Judging<'a> {
    pub(in crate::member) config: &'a Config,
    now: Time,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a Chain,
    pub(in crate::member) view: &'a mut View,
    pub(in crate::member) round: &'a mut Round,
    presence: &'a Presence,
    absences: &'a Absences,
    amendments: &'a Amendments,
    /// The lead of the view has this member's contribution.
    pub(in crate::member) receipted: bool,
}

/// What follows from judging a proposal.
pub(in crate::member) enum Ruling {
    /// Nothing, for now.
    Wait,
    /// Vote for the block.
    Notarize(Hash, Checked),
    /// Vote for the block, which changes no model and may hold a change of the agreement.
    Structure(Hash),
    /// Vote against the view.
    Nullify(Refusal),
    /// Ask the proposer how this view ended.
    Ask(MemberIndex, u64),
}

impl Member {
    /// Lends what judging depends on.
    pub(in crate::member) fn judging(&mut self) -> Judging<'_> {
        Judging {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            view: &mut self.consensus.view,
            round: &mut self.rounds.round,
            presence: &self.consensus.presence,
            absences: &self.rounds.absences,
            amendments: &self.governance.amendments,
            receipted: self.rounds.receipt.is_some(),
        }
    }

    /// Judges the proposal as far as that is possible now, and votes.
    pub(in crate::member) fn judge(&mut self) {
        match self.judging().judge() {
            Ruling::Wait => {}
            Ruling::Notarize(block, checked) => self.voting().notarize(block, checked),
            Ruling::Structure(block) => {
                let amendment = self.amending().note_change(block);
                self.follow(amendment);
                self.voting().notarize(block, Checked::Structure);
            }
            Ruling::Nullify(reason) => self.voting().nullify(reason),
            Ruling::Ask(proposer, view) => self.syncing().ask_from(proposer, view),
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

    /// Judges the proposal as far as that is possible now.
    fn judge(&mut self) -> Ruling {
        let Some(judged) = &self.view.judged else {
            return Ruling::Wait;
        };
        let (block, proposer) = (judged.block, judged.message.sender);
        match &judged.state {
            JudgingState::Incomplete => {}
            JudgingState::Working { case } => {
                let case = *case;
                return self.conclude(block, case);
            }
            JudgingState::Keeping { .. } | JudgingState::Stalled | JudgingState::Voted => {
                return Ruling::Wait;
            }
        }
        let Body::Proposal(proposal) = &judged.message.body else {
            return Ruling::Wait;
        };
        let opinion = self.opinion(proposal);
        let learning = proposal.block.learning();
        let inclusions = match (&opinion, learning) {
            (Opinion::Learning(_), Some(learning)) => learning.inclusions.clone(),
            _ => Inclusions::default(),
        };
        let learning = learning.map(|learning| (learning.sheet, learning.outcome));
        match opinion {
            Opinion::Wait => Ruling::Wait,
            Opinion::UnknownView(view) => self.ask_for_skipped(proposer, view),
            Opinion::Refuse(reason) => {
                self.set_state(JudgingState::Voted);
                self.out.refuse(proposer, self.round.number, reason.clone());
                Ruling::Nullify(reason)
            }
            Opinion::Structure => {
                self.set_state(JudgingState::Voted);
                Ruling::Structure(block)
            }
            Opinion::Masked(sheet) => self.vote_for_masked(block, sheet),
            Opinion::Learning(case) => {
                if let Some((sheet, _)) = &learning {
                    self.round.sheets.need(sheet);
                }
                self.round.proposed = Some((case.sheet.clone(), inclusions));
                if let Some((_, outcome)) =
                    learning.filter(|_| !self.view.audits(self.config, self.chain))
                {
                    return self.vote_for_kept(block, outcome);
                }
                let id = case.id();
                self.set_state(JudgingState::Working { case: id });
                if !self.round.cases.accepted.contains(&id) {
                    let holders = self.config.holders(self.view.lead);
                    self.out
                        .push(Effect::Work(Request::Check { case, holders }));
                } else if !self.round.cases.outcomes.contains_key(&id) {
                    let holders = self.config.holders(self.view.lead);
                    self.out
                        .push(Effect::Work(Request::Settle { case, holders }));
                }
                self.conclude(block, id)
            }
        }
    }

    pub(in crate::member) fn set_state(&mut self, state: JudgingState) {
        if let Some(judged) = &mut self.view.judged {
            judged.state = state;
        }
    }

    /// Votes for a block whose outcome others check, once it is kept here: an outcome that q members
    /// voted for is there after its lead and auditors have died.
    fn vote_for_kept(&mut self, block: Hash, outcome: Hash) -> Ruling {
        if self.round.cases.kept.contains(&outcome) {
            self.set_state(JudgingState::Voted);
            return Ruling::Notarize(block, Checked::Outcome(Verification::Inclusion));
        }
        self.set_state(JudgingState::Keeping { outcome });
        let (round, holders) = (self.round.number, self.config.holders(self.view.lead));
        self.out.push(Effect::Work(Request::Keep {
            round,
            outcome,
            holders,
        }));
        Ruling::Wait
    }

    /// An outcome is kept here, or could not be.
    ///
    /// # Errors
    /// The rule that the lead broke.
    pub(in crate::member) fn kept(
        &mut self,
        round: u64,
        outcome: Hash,
        result: Result<(), WorkError>,
    ) -> Result<(), Refusal> {
        if round != self.round.number {
            return Ok(());
        }
        if result.is_ok() {
            self.round.cases.kept.insert(outcome);
        }
        let waits = |judged: &Judged| matches!(judged.state, JudgingState::Keeping { outcome: of } if of == outcome);
        if !self.view.judged.as_ref().is_some_and(waits) {
            return Ok(());
        }
        match result {
            Ok(()) => self.set_state(JudgingState::Incomplete),
            Err(WorkError::Unavailable) => self.set_state(JudgingState::Stalled),
            Err(WorkError::Refused(reason)) => {
                self.set_state(JudgingState::Voted);
                return Err(Refusal::Work(reason));
            }
        }
        Ok(())
    }

    /// Votes, once the decision is accepted and the outcome computed.
    fn conclude(&mut self, block: Hash, case: Hash) -> Ruling {
        let Some(result) = self.round.cases.outcomes.get(&case).cloned() else {
            return Ruling::Wait;
        };
        if !self.round.cases.accepted.contains(&case) {
            return Ruling::Wait;
        }
        let Some(judged) = &self.view.judged else {
            return Ruling::Wait;
        };
        let proposer = judged.message.sender;
        let Body::Proposal(proposal) = &judged.message.body else {
            return Ruling::Wait;
        };
        let claimed = proposal.block.learning().map(|learning| learning.outcome);
        let reason = match (result, claimed) {
            // A receipt may have arrived while the outcome was computed.
            (Ok(_), _) if self.left_out(proposal) => Refusal::LeftOut,
            (Ok(outcome), Some(claimed)) if outcome == claimed => {
                self.set_state(JudgingState::Voted);
                return Ruling::Notarize(block, Checked::Outcome(Verification::Full));
            }
            (Ok(recomputed), Some(claimed)) => Refusal::WrongOutcome {
                claimed,
                recomputed,
            },
            // An empty block has no case.
            (Ok(_), None) => return Ruling::Wait,
            (Err(WorkError::Unavailable), _) => {
                self.round.cases.outcomes.remove(&case);
                self.set_state(JudgingState::Stalled);
                return Ruling::Wait;
            }
            (Err(WorkError::Refused(reason)), _) => Refusal::Work(reason),
        };
        self.set_state(JudgingState::Voted);
        self.out.refuse(proposer, self.round.number, reason.clone());
        Ruling::Nullify(reason)
    }

    /// Whether a decision is acceptable became known.
    ///
    /// # Errors
    /// The rule that the lead broke.
    pub(in crate::member) fn checked(
        &mut self,
        case: Hash,
        result: Result<(), WorkError>,
    ) -> Result<(), Refusal> {
        if result.is_ok() {
            self.round.cases.accepted.insert(case);
        }
        let working = self.view.judged.as_ref().is_some_and(
            |judged| matches!(&judged.state, JudgingState::Working { case: under } if *under == case),
        );
        if !working {
            return Ok(());
        }
        match result {
            // Judged again: what is missing now is the outcome.
            Ok(()) => {
                self.hold_proposed();
                self.set_state(JudgingState::Incomplete);
            }
            Err(WorkError::Unavailable) => self.set_state(JudgingState::Stalled),
            Err(WorkError::Refused(reason)) => {
                self.set_state(JudgingState::Voted);
                return Err(Refusal::Work(reason));
            }
        }
        Ok(())
    }

    /// The models of the proposed sheet were fetched to check the decision, and are kept.
    fn hold_proposed(&mut self) {
        if let Some((sheet, _)) = self.round.proposed.clone() {
            let blobs = sheet.entries.iter().map(|entry| entry.fields.blob);
            self.round.models.hold(blobs);
        }
    }

    /// An outcome became known.
    pub(in crate::member) fn settled(&mut self, case: Hash, result: Result<Hash, WorkError>) {
        self.round.cases.outcomes.insert(case, result);
    }

    /// What R1 demands, apart from checking the decision and the outcome.
    fn opinion(&self, proposal: &Proposal) -> Opinion {
        let block = &proposal.block;
        let tip = &self.chain.tip;
        match &block.content {
            Content::Empty => {
                let Some(notarised) = &proposal.parent else {
                    return Opinion::Refuse(Refusal::NothingNotarised);
                };
                if notarised.verdict != Verdict::Notarised(block.parent) {
                    return Opinion::Refuse(Refusal::ParentUnproven);
                }
                let audited = self.chain.is_audited(&self.config.epoch, notarised);
                if !audited {
                    // Its auditors were drawn by a final block that this member may not know yet.
                    return Opinion::Wait;
                }
                match self.check_skipped(block, notarised.view) {
                    Ok(()) => Opinion::Structure,
                    Err(opinion) => opinion,
                }
            }
            Content::Change(change) => {
                if block.parent != tip.hash {
                    return self.other_parent(proposal);
                }
                if let Err(opinion) = self.check_skipped(block, tip.view) {
                    return opinion;
                }
                if !self.chain.settled() {
                    return Opinion::Wait;
                }
                let accepted = self.amendments.accepts(self.config, change);
                let checked = change.check(&self.config.epoch, &self.chain.checkpoint());
                match checked.and(accepted) {
                    Ok(()) => Opinion::Structure,
                    Err(why) => Opinion::Refuse(why.into()),
                }
            }
            Content::Recovery(_) => {
                Opinion::Refuse(ChangeError::from(RecoveryError::Proposed).into())
            }
            Content::Masked(masked) => {
                if block.parent != tip.hash {
                    return self.other_parent(proposal);
                }
                if let Err(opinion) = self.check_skipped(block, tip.view) {
                    return opinion;
                }
                self.judge_masked(masked)
            }
            Content::Learning(_) if self.config.masked().is_some() => {
                Opinion::Refuse(Refusal::OtherMode)
            }
            Content::Learning(learning) => {
                if block.parent != tip.hash {
                    return self.other_parent(proposal);
                }
                if let Err(opinion) = self.check_skipped(block, tip.view) {
                    return opinion;
                }
                match self.judge_learning(learning) {
                    Opinion::Learning(_) if self.left_out(proposal) => {
                        Opinion::Refuse(Refusal::LeftOut)
                    }
                    opinion => opinion,
                }
            }
        }
    }

    /// A learning block whose parent is not the last final block known here: either this member
    /// lags behind, or the block is wrong.
    fn other_parent(&self, proposal: &Proposal) -> Opinion {
        let ahead = proposal.parent.as_ref().is_some_and(|parent| {
            parent.view > self.chain.tip.view
                && parent.verdict.block() == Some(proposal.block.parent)
                && matches!(parent.verdict, Verdict::Final(_))
        });
        if ahead {
            Opinion::Wait
        } else {
            Opinion::Refuse(Refusal::ParentNotFinal)
        }
    }

    /// Checks that every view between the parent's and the block's is known to be nullified. The
    /// proposal carries the last of these nullifications; its lead is asked for earlier ones.
    fn check_skipped(&self, block: &Block, parent: u64) -> Result<(), Opinion> {
        if parent >= block.view {
            return Err(Opinion::Refuse(Refusal::SkipUnproven));
        }
        match self.chain.gap(parent, block.view) {
            Some(view) => Err(Opinion::UnknownView(view)),
            None => Ok(()),
        }
    }

    /// Asks the proposer for the nullification of a skipped view, once per beat.
    fn ask_for_skipped(&mut self, proposer: MemberIndex, view: u64) -> Ruling {
        let Some(judged) = &mut self.view.judged else {
            return Ruling::Wait;
        };
        if judged.asked.replace(view) == Some(view) {
            Ruling::Wait
        } else {
            Ruling::Ask(proposer, view)
        }
    }

    /// What R1 demands for the content of a learning block.
    fn judge_learning(&self, learning: &Learning) -> Opinion {
        let Some(plan) = self.round.plan() else {
            return Opinion::Wait;
        };
        let (got, now) = (learning.round, self.round.number);
        if got != now {
            return Opinion::Refuse(Refusal::WrongRound { got, now });
        }
        let (got, ours) = (learning.plan, plan.plan);
        if got != ours {
            return Opinion::Refuse(Refusal::WrongPlan { got, ours });
        }
        let Some(sheet) = self.round.sheets.get(&learning.sheet) else {
            return Opinion::Wait;
        };
        let (k, signers) = (sheet.entries.len(), learning.inclusions.len());
        if signers != k {
            let entries = k;
            return Opinion::Refuse(Refusal::Signers { signers, entries });
        }
        let signers: Vec<_> = learning.inclusions.iter().map(|(by, _)| *by).collect();
        if let Some(&member) = signers.iter().find(|by| !self.round.participates(**by)) {
            return Opinion::Refuse(Refusal::NotAParticipant(member));
        }
        if self.config.epoch.charter.shows_names() {
            // A name counts only with the signature of the member that it names.
            let mut shown: Vec<_> = sheet.entries.iter().map(|e| e.fields.member).collect();
            shown.sort_unstable();
            if !shown.into_iter().eq(signers.iter().copied().map(Some)) {
                return Opinion::Refuse(Refusal::WrongNames);
            }
        }
        let rows = check_rows(&self.config.epoch.roster, &sheet.entries, &signers);
        if let Err(why) = rows {
            return Opinion::Refuse(why);
        }
        let needed = self.round.fewest(self.config);
        if k < needed {
            let entries = k;
            return Opinion::Refuse(Refusal::TooFewEntries { entries, needed });
        }
        if !self.waiting().enough(&signers) {
            return Opinion::Wait;
        }
        let (round, decision) = (learning.round, learning.decision.clone().into());
        Opinion::Learning(Case::new(round, learning.sheet, sheet.clone(), decision))
    }

    /// Whether this member holds the lead's receipt and its entry is missing in the sheet.
    fn left_out(&self, proposal: &Proposal) -> bool {
        let sheet = proposal
            .block
            .learning()
            .and_then(|learning| self.round.sheets.get(&learning.sheet));
        self.receipted && !sheet.is_some_and(|sheet| self.round.own.listed(&sheet.entries))
    }

    /// A beat has passed: asks and fetches again.
    pub(in crate::member) fn repeat(&mut self) {
        self.round.masks.retry();
        if let Some(judged) = &mut self.view.judged {
            judged.asked = None;
            if matches!(judged.state, JudgingState::Stalled) {
                judged.state = JudgingState::Incomplete;
            }
        }
    }
}
