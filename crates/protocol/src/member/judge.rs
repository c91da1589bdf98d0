//! Whether to vote for the proposal of a view (R1), or against the view (R2).

use super::{Inclusions, Member, Mutation};
use crate::certificate::Verdict;
use crate::effects::{Case, Effect, WorkError};
use crate::evidence::Evidence;
use crate::hash::Hash;
use crate::message::{Block, Body, Checked, Content, Learning, Message, Proposal};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;

/// The proposal of the current view.
pub(super) struct Judged {
    message: Message,
    block: Hash,
    state: State,
    /// The first skipped view whose end is not known here, as its proposer was asked for it.
    asked: Option<u64>,
}

enum State {
    /// Something is still missing: the plan, the sheet, an ancestor, patience.
    Open,
    /// The work of checking and settling is under way.
    Working { case: Hash },
    /// A model could not be had; again after a beat.
    Stalled,
    /// Voted for, or against.
    Over,
}

/// What the rules say of a proposal at this moment.
enum Opinion {
    Wait,
    /// It skips a view, the first of some, whose end is not known here.
    Unknown(u64),
    Refuse(Refusal),
    Empty,
    Learning(Case),
}

impl Member {
    /// The lead's proposal for the current view.
    pub(super) fn proposal(&mut self, message: Message) {
        let Body::Proposal(proposal) = &message.body else {
            return;
        };
        let block = proposal.block.hash();
        if let Some(judged) = &self.view.judged {
            if judged.block == block {
                return;
            }
            if let Some(evidence) = Evidence::of(&judged.message, &message) {
                let reason = Refusal::Contradiction(evidence.charge());
                self.accuse(evidence);
                self.refuse(message.sender, 0, reason.clone());
                self.nullify(reason);
            }
            if !self.broken(Mutation::NotarizeTwice) {
                return;
            }
        }
        let structure = structure(&proposal.block, message.view, self.config.epoch.id);
        if structure.is_ok() {
            self.chain.keep(block, proposal.block.clone());
        }
        if let Some(waiting) = self.chain.unresolved.take() {
            self.finalise(waiting);
        }
        if message.view != self.view.number {
            return;
        }
        let voted = self.ballots.notarized(message.view) && !self.broken(Mutation::NotarizeTwice);
        let sender = message.sender;
        let state = if voted || structure.is_err() {
            State::Over
        } else {
            State::Open
        };
        self.view.judged = Some(Judged {
            message,
            block,
            state,
            asked: None,
        });
        if let Err(reason) = structure {
            self.refuse(sender, 0, reason.clone());
            self.nullify(reason);
        }
    }

    /// Judges, as far as that is possible now.
    pub(super) fn judge(&mut self) {
        if self.sync.listening() {
            // It may vote later in this view.
            return;
        }
        let Some(judged) = &self.view.judged else {
            return;
        };
        let (block, proposer) = (judged.block, judged.message.sender);
        match &judged.state {
            State::Open => {}
            State::Working { case } => {
                let case = *case;
                return self.conclude(block, case);
            }
            State::Stalled | State::Over => return,
        }
        let Body::Proposal(proposal) = &judged.message.body else {
            return;
        };
        let opinion = self.opinion(proposal);
        let learning = proposal.block.learning();
        let inclusions = match (&opinion, learning) {
            (Opinion::Learning(_), Some(learning)) => learning.inclusions.clone(),
            _ => Inclusions::default(),
        };
        let learning = learning.map(|learning| learning.sheet);
        match opinion {
            Opinion::Wait => {}
            Opinion::Unknown(view) => self.ask_for_skipped(proposer, view),
            Opinion::Refuse(reason) => {
                self.state(State::Over);
                self.refuse(proposer, self.round.number, reason.clone());
                self.nullify(reason);
            }
            Opinion::Empty => {
                self.state(State::Over);
                self.notarize(block, Checked::Structure);
            }
            Opinion::Learning(case) => {
                if let Some(learning) = learning {
                    self.round.sheets.need(&learning);
                }
                self.round.proposed = Some((case.sheet.clone(), inclusions));
                let id = case.id();
                self.state(State::Working { case: id });
                if !self.round.checked.contains(&id) {
                    let holders = self.holders();
                    self.out.push(Effect::Check { case, holders });
                } else if !self.round.settled.contains_key(&id) {
                    let holders = self.holders();
                    self.out.push(Effect::Settle { case, holders });
                }
                self.conclude(block, id);
            }
        }
    }

    fn state(&mut self, state: State) {
        if let Some(judged) = &mut self.view.judged {
            judged.state = state;
        }
    }

    /// Votes once the outcome is known.
    fn conclude(&mut self, block: Hash, case: Hash) {
        let Some(result) = self.round.settled.get(&case).cloned() else {
            return;
        };
        if !self.round.checked.contains(&case) {
            return;
        }
        let Some(judged) = &self.view.judged else {
            return;
        };
        let proposer = judged.message.sender;
        let Body::Proposal(proposal) = &judged.message.body else {
            return;
        };
        let claimed = proposal.block.learning().map(|learning| learning.outcome);
        let reason = match (result, claimed) {
            // A receipt may have come while the work was done.
            (Ok(_), _) if self.left_out(proposal) => Refusal::LeftOut,
            (Ok(outcome), Some(claimed)) if outcome == claimed => {
                self.state(State::Over);
                let level = self.config.epoch.charter.verification;
                return self.notarize(block, Checked::Outcome(level));
            }
            (Ok(recomputed), Some(claimed)) => Refusal::WrongOutcome {
                claimed,
                recomputed,
            },
            // An empty block has no case.
            (Ok(_), None) => return,
            (Err(WorkError::Unavailable), _) => {
                self.round.settled.remove(&case);
                return self.state(State::Stalled);
            }
            (Err(WorkError::Refused(reason)), _) => Refusal::Work(reason),
        };
        self.state(State::Over);
        self.refuse(proposer, self.round.number, reason.clone());
        self.nullify(reason);
    }

    pub(super) fn checked(&mut self, case: Hash, result: Result<(), WorkError>) {
        if result.is_ok() {
            self.round.checked.insert(case);
        }
        let working = self.view.judged.as_ref().is_some_and(
            |judged| matches!(&judged.state, State::Working { case: under } if *under == case),
        );
        if !working {
            return;
        }
        match result {
            // Back to the opinion, which now asks for the outcome.
            Ok(()) => {
                self.hold_proposed();
                self.state(State::Open);
            }
            Err(WorkError::Unavailable) => self.state(State::Stalled),
            Err(WorkError::Refused(reason)) => {
                self.state(State::Over);
                let (lead, reason) = (self.view.lead, Refusal::Work(reason));
                self.refuse(lead, self.round.number, reason.clone());
                self.nullify(reason);
            }
        }
    }

    /// The models of the proposal's sheet were fetched to be checked: they are kept here.
    fn hold_proposed(&mut self) {
        if let Some((sheet, _)) = self.round.proposed.clone() {
            let blobs = sheet.entries.iter().map(|entry| entry.fields.blob);
            self.round.hold(blobs);
        }
    }

    /// The proposal of a member, if it is the one of the current view.
    pub(super) fn proposed_by(&self, member: MemberIndex) -> Option<&Message> {
        let judged = self.view.judged.as_ref().map(|judged| &judged.message);
        judged.filter(|message| message.sender == member)
    }

    pub(super) fn settled(&mut self, case: Hash, result: Result<Hash, WorkError>) {
        self.round.settled.insert(case, result);
    }

    /// R1, but for the work on models.
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
                match self.skips(block, notarised.view) {
                    Ok(()) => Opinion::Empty,
                    Err(opinion) => opinion,
                }
            }
            Content::Learning(learning) => {
                let mut parent = tip.view;
                if block.parent != tip.hash {
                    let notarised = self.chain.notarisation(&block.parent);
                    match notarised.filter(|_| self.broken(Mutation::RoundFromNotarised)) {
                        Some(notarised) => parent = notarised.view,
                        None => return self.stray(proposal),
                    }
                }
                if let Err(opinion) = self.skips(block, parent) {
                    return opinion;
                }
                match self.learning(learning) {
                    Opinion::Learning(_) if self.left_out(proposal) => {
                        Opinion::Refuse(Refusal::LeftOut)
                    }
                    opinion => opinion,
                }
            }
        }
    }

    /// A learning block on another parent than the last final block here: ahead of this member, or
    /// wrong.
    fn stray(&self, proposal: &Proposal) -> Opinion {
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

    /// Whether every view between the parent's and the block's is known to be nullified. The
    /// proposal carries the last of these proofs; its lead is asked for earlier ones.
    fn skips(&self, block: &Block, parent: u64) -> Result<(), Opinion> {
        if parent >= block.view {
            return Err(Opinion::Refuse(Refusal::SkipUnproven));
        }
        match self.chain.gap(parent, block.view) {
            Some(view) if !self.broken(Mutation::SkippedWithoutProof) => {
                Err(Opinion::Unknown(view))
            }
            _ => Ok(()),
        }
    }

    /// Asks for how a skipped view ended: once, and again with the next beat.
    fn ask_for_skipped(&mut self, proposer: MemberIndex, view: u64) {
        let Some(judged) = &mut self.view.judged else {
            return;
        };
        if judged.asked.replace(view) != Some(view) {
            self.ask_from(proposer, view);
        }
    }

    fn learning(&self, learning: &Learning) -> Opinion {
        let Some(plan) = &self.round.plan else {
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
        let short = usize::from(self.broken(Mutation::InclusionMissing));
        if signers + short < k || signers > k {
            let entries = k;
            return Opinion::Refuse(Refusal::Signers { signers, entries });
        }
        let signers: Vec<_> = learning.inclusions.iter().map(|(by, _)| *by).collect();
        if let Some(&member) = signers.iter().find(|by| !self.round.participates(**by)) {
            return Opinion::Refuse(Refusal::NotAParticipant(member));
        }
        if self.config.epoch.charter.names_shown {
            // A name counts only with its owner's signature.
            let mut shown: Vec<_> = sheet.entries.iter().map(|e| e.fields.member).collect();
            shown.sort_unstable();
            if !shown.into_iter().eq(signers.iter().copied().map(Some)) {
                return Opinion::Refuse(Refusal::WrongNames);
            }
        }
        let needed = self.fewest();
        if k < needed {
            let entries = k;
            return Opinion::Refuse(Refusal::TooFewEntries { entries, needed });
        }
        if !self.enough(&signers) {
            return Opinion::Wait;
        }
        let (round, decision) = (learning.round, learning.decision.clone().into());
        Opinion::Learning(Case::new(round, learning.sheet, sheet.clone(), decision))
    }

    /// Whether the lead gave this member a receipt and proposes a sheet without its entry.
    fn left_out(&self, proposal: &Proposal) -> bool {
        let sheet = proposal
            .block
            .learning()
            .and_then(|learning| self.round.sheets.get(&learning.sheet));
        self.view.receipt.is_some()
            && !sheet.is_some_and(|sheet| self.listed(&sheet.entries))
            && !self.broken(Mutation::ReceiptIgnored)
    }

    /// When to look at a waiting proposal again.
    pub(super) fn judge_deadline(&self) -> Option<Time> {
        self.view.judged.as_ref()?;
        Some(self.round.started + self.config.epoch.patience())
    }

    /// A beat has passed: what could not be had may be there now.
    pub(super) fn repeat_judging(&mut self) {
        if let Some(judged) = &mut self.view.judged {
            judged.asked = None;
            if matches!(judged.state, State::Stalled) {
                judged.state = State::Open;
            }
        }
    }
}

/// What can be seen of a block without knowing anything else.
fn structure(block: &Block, view: u64, epoch: Hash) -> Result<(), Refusal> {
    if block.view != view || block.epoch != epoch {
        return Err(Refusal::BlockMisplaced);
    }
    Ok(())
}
