//! Judging the block of a masked round (R1, M4).

use crate::certificate::Checked;
use crate::hash::Hash;
use crate::member::consensus::judge::{Opinion, Ruling};
use crate::member::rounds::judging::Judging;
use crate::member::rounds::masked::kept::ManifestCheck;
use crate::message::MaskedRound;
use crate::parameters::Verification;
use crate::refusal::Refusal;

impl Judging<'_> {
    /// The manifest of a masked round that R1 allows, apart from checking the vectors.
    ///
    /// # Errors
    /// What R1 demands instead.
    fn judge_masked(&self, masked: &MaskedRound) -> Result<Hash, Opinion> {
        let Some(plan) = self.round.plan() else {
            return Err(Opinion::Wait);
        };
        let Some(state) = self.chain.state_before(self.round.number) else {
            // The outcome before it is not certified here.
            return Err(Opinion::Wait);
        };
        let (got, now) = (masked.round, self.round.number);
        if got != now {
            return Err(Opinion::Refuse(Refusal::WrongRound { got, now }));
        }
        let (got, ours) = (masked.plan, plan.plan);
        if got != ours {
            return Err(Opinion::Refuse(Refusal::WrongPlan { got, ours }));
        }
        let (got, ours) = (masked.state, state);
        if got != ours {
            return Err(Opinion::Refuse(Refusal::WrongState { got, ours }));
        }
        let masks = &self.round.masks;
        // The list was answered here, so M2 holds for it.
        let (Some(list), Some(manifest)) =
            (masks.list(&masked.list), masks.manifest(&masked.manifest))
        else {
            return Err(Opinion::Wait);
        };
        let ready = masked.ready == list.keys.members();
        if !ready {
            return Err(Opinion::Refuse(Refusal::OtherReady));
        }
        if manifest.list != list.root {
            return Err(Opinion::Refuse(Refusal::OtherAuthors));
        }
        let signers = masked.inclusions.iter().map(|(by, _)| *by);
        if !signers.eq(manifest.authors()) {
            let (signers, entries) = (masked.inclusions.len(), manifest.entries.len());
            return Err(Opinion::Refuse(Refusal::Signers { signers, entries }));
        }
        let listed = masked.ready.binary_search(&self.config.me).is_ok();
        if self.receipted && !listed {
            return Err(Opinion::Refuse(Refusal::LeftOut));
        }
        let (entries, needed) = (masked.ready.len(), self.round.fewest(self.config));
        if entries < needed {
            return Err(Opinion::Refuse(Refusal::TooFewEntries { entries, needed }));
        }
        if !self.waiting().enough(&masked.ready) {
            return Err(Opinion::Wait);
        }
        Ok(masked.manifest)
    }

    /// Votes for a masked round once all vectors and transcripts are kept here and right: a voter can
    /// open the sums, and can give others all that they need for it.
    ///
    /// # Errors
    /// What R1 demands instead.
    pub(in crate::member) fn vote_for_masked(&mut self) -> Result<Ruling, Opinion> {
        let judged = self.view.judged.as_ref();
        let masked = judged.and_then(|judged| judged.proposal()?.block.masked());
        let manifest = self.judge_masked(masked.ok_or(Opinion::Wait)?)?;
        Ok(match self.round.masks.checks.get(&manifest).cloned() {
            Some(ManifestCheck::Held) => self.vote(Checked::Outcome(Verification::Full)),
            Some(ManifestCheck::Refused(reason)) => {
                self.has_voted();
                let reason = Refusal::Work(reason);
                self.out
                    .refuse(self.view.lead, self.round.number, reason.clone());
                Ruling::Nullify(reason)
            }
            Some(ManifestCheck::Running | ManifestCheck::Stalled) => Ruling::Wait,
            None => {
                let holders = self.config.holders(self.view.lead);
                let masks = &mut self.round.masks;
                if let Some(of) = masks.manifest(&manifest).cloned() {
                    masks.verify(of, manifest, holders, self.out);
                }
                Ruling::Wait
            }
        })
    }
}
