//! Judging the block of a round in clear (R1).

use crate::certificate::Checked;
use crate::effects::Effect;
use crate::hash::Hash;
use crate::member::consensus::judge::{Opinion, Ruling};
use crate::member::rounds::entries::check_rows;
use crate::member::rounds::judging::{Judging, JudgingState};
use crate::message::Learning;
use crate::parameters::Verification;
use crate::refusal::Refusal;
use crate::work::{Case, Request, WorkError};

impl Judging<'_> {
    /// The content of the proposal, if it is that of a round in clear.
    fn learning(&self) -> Option<&Learning> {
        self.view.judged.as_ref()?.proposal()?.block.learning()
    }

    /// Votes for a round in clear once the decision is accepted and the outcome computed, or kept where others
    /// check it.
    ///
    /// # Errors
    /// What R1 demands instead.
    pub(in crate::member) fn vote_for_learning(&mut self) -> Result<Ruling, Opinion> {
        let Some(learning) = self.learning() else {
            return Err(Opinion::Refuse(Refusal::OtherMode));
        };
        let case = self.judge_learning(learning)?;
        if self.left_out(learning) {
            return Err(Opinion::Refuse(Refusal::LeftOut));
        }
        let (manifest, outcome) = (learning.manifest, learning.outcome);
        let inclusions = learning.inclusions.clone();
        self.round.manifests.need(&manifest);
        self.round.proposed = Some((case.manifest.clone(), inclusions));
        if !self.view.audits(self.config, self.chain) {
            return Ok(self.vote_for_kept(outcome));
        }
        let id = case.id();
        *self.state = JudgingState::Working { case: id };
        if !self.round.cases.accepted.contains(&id) {
            let holders = self.config.holders(self.view.lead);
            self.out
                .push(Effect::Work(Request::Check { case, holders }));
        } else if !self.round.cases.outcomes.contains_key(&id) {
            let holders = self.config.holders(self.view.lead);
            self.out
                .push(Effect::Work(Request::Settle { case, holders }));
        }
        Ok(self.conclude(id))
    }

    /// The case of a learning block that R1 allows, apart from checking the decision and the outcome.
    fn judge_learning(&self, learning: &Learning) -> Result<Case, Opinion> {
        let Some(plan) = self.round.plan() else {
            return Err(Opinion::Wait);
        };
        let (got, now) = (learning.round, self.round.number);
        if got != now {
            return Err(Opinion::Refuse(Refusal::WrongRound { got, now }));
        }
        let (got, ours) = (learning.plan, plan.plan);
        if got != ours {
            return Err(Opinion::Refuse(Refusal::WrongPlan { got, ours }));
        }
        let Some(manifest) = self.round.manifests.get(&learning.manifest) else {
            return Err(Opinion::Wait);
        };
        let (k, signers) = (manifest.entries.len(), learning.inclusions.len());
        if signers != k {
            let entries = k;
            return Err(Opinion::Refuse(Refusal::Signers { signers, entries }));
        }
        let signers: Vec<_> = learning.inclusions.iter().map(|(by, _)| *by).collect();
        if let Some(&member) = signers.iter().find(|by| !self.round.participates(**by)) {
            return Err(Opinion::Refuse(Refusal::NotAParticipant(member)));
        }
        if self.config.epoch.protocol.shows_names() {
            // A name counts only with the signature of the member that it names.
            let mut shown: Vec<_> = manifest.entries.iter().map(|e| e.fields.member).collect();
            shown.sort_unstable();
            if !shown.into_iter().eq(signers.iter().copied().map(Some)) {
                return Err(Opinion::Refuse(Refusal::WrongNames));
            }
        }
        let rows = check_rows(&self.config.epoch.roster, &manifest.entries, &signers);
        if let Err(why) = rows {
            return Err(Opinion::Refuse(why));
        }
        let needed = self.round.fewest(self.config);
        if k < needed {
            let entries = k;
            return Err(Opinion::Refuse(Refusal::TooFewEntries { entries, needed }));
        }
        if !self.waiting().enough(&signers) {
            return Err(Opinion::Wait);
        }
        let (round, decision) = (learning.round, learning.decision.clone().into());
        Ok(Case::new(
            round,
            learning.manifest,
            manifest.clone(),
            decision,
        ))
    }

    /// Whether this member holds the lead's receipt and its entry is missing in the manifest.
    fn left_out(&self, learning: &Learning) -> bool {
        let manifest = self.round.manifests.get(&learning.manifest);
        self.receipted && !manifest.is_some_and(|manifest| self.round.own.listed(&manifest.entries))
    }

    /// Votes for a block whose outcome others check, once it is kept here: an outcome that q members
    /// voted for is there after its lead and auditors have died.
    fn vote_for_kept(&mut self, outcome: Hash) -> Ruling {
        if self.round.cases.kept.contains(&outcome) {
            return self.vote(Checked::Outcome(Verification::Inclusion));
        }
        *self.state = JudgingState::Keeping { outcome };
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
        if !matches!(self.state, JudgingState::Keeping { outcome: of } if *of == outcome) {
            return Ok(());
        }
        match result {
            Ok(()) => *self.state = JudgingState::Open,
            Err(WorkError::Unavailable) => *self.state = JudgingState::Stalled,
            Err(WorkError::Refused(reason)) => {
                self.has_voted();
                return Err(Refusal::Work(reason));
            }
        }
        Ok(())
    }

    /// Votes, once the decision is accepted and the outcome computed.
    pub(in crate::member) fn conclude(&mut self, case: Hash) -> Ruling {
        let Some(result) = self.round.cases.outcomes.get(&case).cloned() else {
            return Ruling::Wait;
        };
        if !self.round.cases.accepted.contains(&case) {
            return Ruling::Wait;
        }
        let learning = self.learning();
        let claimed = learning.map(|learning| learning.outcome);
        let left_out = learning.is_some_and(|learning| self.left_out(learning));
        let reason = match (result, claimed) {
            // A receipt may have arrived while the outcome was computed.
            (Ok(_), _) if left_out => Refusal::LeftOut,
            (Ok(outcome), Some(claimed)) if outcome == claimed => {
                return self.vote(Checked::Outcome(Verification::Full));
            }
            (Ok(recomputed), Some(claimed)) => Refusal::WrongOutcome {
                claimed,
                recomputed,
            },
            // An empty block has no case.
            (Ok(_), None) => return Ruling::Wait,
            (Err(WorkError::Unavailable), _) => {
                self.round.cases.outcomes.remove(&case);
                *self.state = JudgingState::Stalled;
                return Ruling::Wait;
            }
            (Err(WorkError::Refused(reason)), _) => Refusal::Work(reason),
        };
        self.refuse(reason)
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
        let working = matches!(self.state, JudgingState::Working { case: under } if *under == case);
        if !working {
            return Ok(());
        }
        match result {
            // Judged again: what is missing now is the outcome.
            Ok(()) => {
                self.hold_proposed();
                *self.state = JudgingState::Open;
            }
            Err(WorkError::Unavailable) => *self.state = JudgingState::Stalled,
            Err(WorkError::Refused(reason)) => {
                self.has_voted();
                return Err(Refusal::Work(reason));
            }
        }
        Ok(())
    }

    /// The models of the proposed manifest were fetched to check the decision, and are kept.
    fn hold_proposed(&mut self) {
        if let Some((manifest, _)) = self.round.proposed.clone() {
            let blobs = manifest.entries.iter().map(|entry| entry.fields.blob);
            self.round.models.hold(blobs);
        }
    }

    /// An outcome became known.
    pub(in crate::member) fn settled(&mut self, case: Hash, result: Result<Hash, WorkError>) {
        self.round.cases.outcomes.insert(case, result);
    }
}
