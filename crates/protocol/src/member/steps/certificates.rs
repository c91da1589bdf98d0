//! Votes and certificates, and what follows from them for all sides (R3, R4).

use crate::certificate::{Certificate, Verdict};
use crate::member::Member;
use crate::member::consensus::voting::{CountedVote, certify};
use crate::message::{Block, Message};
use crate::refusal::Refusal;

impl Member {
    /// A vote of any member.
    pub(in crate::member) fn receive_vote(&mut self, message: Message) {
        let view = message.view;
        let Some(CountedVote { fault, verdict }) = self.voting().count(message) else {
            return;
        };
        if let Some(evidence) = fault {
            self.accuse(evidence);
        }
        if let Some(certificate) = self.voting().certificate(view, verdict) {
            self.add_certificate(certificate);
        }
    }

    /// Votes against the view if its lead broke a rule, and reports that.
    pub(in crate::member) fn against_lead(&mut self, round: u64, rules: Result<(), Refusal>) {
        if let Err(reason) = rules {
            self.out
                .refuse(self.consensus.view.lead, round, reason.clone());
            self.voting().nullify(reason);
        }
    }

    /// A new certificate: publishes it and follows it (R3).
    pub(in crate::member) fn add_certificate(&mut self, certificate: Certificate) {
        let new = if certificate.verdict.is_outcome() {
            self.extending().settle(&certificate)
        } else {
            self.extending().insert(&certificate)
        };
        if !new {
            return self.settling().keep_certificate(certificate);
        }
        self.own_key().look_for_vote(&certificate);
        self.extending().publish(&certificate);
        let view = certificate.view;
        match certificate.verdict {
            Verdict::Nullified => self.leave(view, certificate),
            Verdict::Notarised(block) => {
                self.voting().finalize(view, block);
                self.leave(view, certificate);
            }
            Verdict::Final(_) => self.make_final(certificate),
            Verdict::Outcome { outcome, .. } => {
                self.finishing().await_settled();
                self.settling().compare(outcome);
                if self.finishing().begin_round() && self.governance.amendments.pending() {
                    self.amending().choose();
                }
                self.try_to_take_part();
                self.follow_tip();
            }
        }
    }

    /// A block and its ancestors are final. If some are unknown, they are asked for first.
    pub(in crate::member) fn make_final(&mut self, proof: Certificate) {
        let after_tip = proof.view > self.consensus.chain.tip.view;
        let Some(hash) = proof.verdict.block().filter(|_| after_tip) else {
            return;
        };
        let Ok(blocks) = self.consensus.chain.path(hash) else {
            let last = self.consensus.chain.unresolved.as_ref();
            if last.is_none_or(|old| old.view < proof.view) {
                self.consensus.chain.unresolved = Some(proof.clone());
                self.syncing().ask_for_ancestors();
            }
            return self.leave(proof.view, proof);
        };
        self.advance(blocks, proof);
    }

    /// Makes these blocks final, each the parent of the next: they are recorded, and adopted by and by (R4).
    pub(in crate::member) fn advance(&mut self, blocks: Vec<Block>, proof: Certificate) {
        self.masking().note_consent(&blocks);
        self.extending().record(&blocks, &proof);
        self.finishing().announce(&blocks, &proof);
        self.own_key().look_for_signatures(&blocks, &proof);
        if let Some(passage) = self.extending().extend(blocks, proof) {
            return self.end_epoch(passage);
        }
        self.finishing().await_settled();
        self.contributing().report_lateness();
        if self.finishing().begin_round() && self.governance.amendments.pending() {
            self.amending().choose();
        }
        self.try_to_take_part();
        self.follow_tip();
        // A later final block may have waited for these ancestors.
        if let Some(waiting) = self.consensus.chain.unresolved.take() {
            self.make_final(waiting);
        }
    }

    /// Opens the sums of a final masked round, votes for their outcome, and goes on once it is certified.
    pub(in crate::member) fn settle(&mut self) {
        self.settling().begin();
        if self.config.bystander.is_none() {
            self.settling().work();
        }
        if let Some(certificate) = self.settling().early_certificate() {
            self.add_certificate(certificate);
        }
        for (view, verdict) in self.settling().voted() {
            if let Some(certificate) = certify(
                &self.config,
                &self.consensus.chain,
                (view, verdict),
                &self.rounds.outcomes.votes,
            ) {
                self.add_certificate(certificate);
            }
        }
    }
}
