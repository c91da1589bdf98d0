//! What follows from certificates and final blocks (R3, R4).

use crate::certificate::{Certificate, Verdict};
use crate::effects::{Effect, FinalRound, Record, Report};
use crate::envelope;
use crate::member::consensus::ballots::Ballots;
use crate::member::consensus::chain::{Chain, hashes};
use crate::member::consensus::links::Presence;
use crate::member::consensus::outbox::Outbox;
use crate::member::rounds::absences::Absences;
use crate::member::rounds::adoption::Adoption;
use crate::member::rounds::entries::EntriesAwaited;
use crate::member::rounds::round::Round;
use crate::member::{Config, Member};
use crate::message::{Block, Passage};
use crate::time::Time;

/// The chain, and what follows from its final blocks. Borrows what that depends on.
pub(in crate::member) struct Extending<'a> {
    config: &'a Config,
    now: Time,
    out: &'a mut Outbox,
    chain: &'a mut Chain,
    ballots: &'a mut Ballots,
    round: &'a mut Round,
    adoption: &'a mut Adoption,
    presence: &'a Presence,
    absences: &'a mut Absences,
}

impl Member {
    /// Lends what follows from certificates and final blocks.
    pub(in crate::member) fn extending(&mut self) -> Extending<'_> {
        Extending {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &mut self.consensus.chain,
            ballots: &mut self.consensus.ballots,
            round: &mut self.rounds.round,
            adoption: &mut self.rounds.adoption,
            presence: &self.consensus.presence,
            absences: &mut self.rounds.absences,
        }
    }

    /// A new certificate: publishes it and follows it (R3).
    pub(in crate::member) fn add_certificate(&mut self, certificate: Certificate) {
        if !self.extending().insert(&certificate) {
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
                self.settling().compare(outcome);
                if self.extending().begin_round() && self.amending().waits() {
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
        self.extending().announce(&blocks, &proof);
        self.own_key().look_for_signatures(&blocks, &proof);
        if let Some(passage) = self.extending().extend(blocks, proof) {
            return self.end_epoch(passage);
        }
        self.contributing().report_lateness();
        if self.extending().begin_round() && self.amending().waits() {
            self.amending().choose();
        }
        self.try_to_take_part();
        self.follow_tip();
        // A later final block may have waited for these ancestors.
        if let Some(waiting) = self.consensus.chain.unresolved.take() {
            self.make_final(waiting);
        }
    }
}

impl Extending<'_> {
    /// Adds a certificate; false if it proves nothing new, or lacks the votes of auditors.
    fn insert(&mut self, certificate: &Certificate) -> bool {
        if certificate.verdict.is_outcome() {
            return self.settle(certificate);
        }
        let audited = self.chain.is_audited(&self.config.epoch, certificate);
        audited && self.chain.insert(certificate.clone(), self.now)
    }

    /// The outcome of the last final round is certified: it waits to be adopted. False if it is not the one
    /// of that round, or known.
    fn settle(&mut self, certificate: &Certificate) -> bool {
        if !self.chain.settle(certificate.clone(), self.now) {
            return false;
        }
        let record = Record::Certified(certificate.clone());
        self.out.push(Effect::Persist(record));
        self.await_settled();
        true
    }

    /// Masked rounds whose outcomes became known wait to be adopted.
    fn await_settled(&mut self) {
        let last = self.adoption.waiting.last();
        let last = last.map_or(self.adoption.applied, |last| last.round);
        let known = self.chain.final_rounds(&self.config.epoch, last);
        self.adoption.waiting.extend(known);
    }

    /// Publishes and reports a certificate.
    fn publish(&mut self, certificate: &Certificate) {
        let frame = envelope::seal_certificate(&self.config.epoch, certificate);
        self.out.push(Effect::Publish { frame });
        let report = Report::Certified(certificate.clone());
        self.out.push(Effect::Report(report));
    }

    /// Records that blocks are final, and reports their rounds, which wait to be adopted.
    fn announce(&mut self, blocks: &[Block], proof: &Certificate) {
        let epoch = &self.config.epoch;
        let mut turns = self.chain.turns.clone();
        self.out.push(Effect::Persist(Record::Final {
            blocks: blocks.to_vec(),
            proof: proof.clone(),
        }));
        for (block, hash) in blocks.iter().zip(hashes(blocks, proof)) {
            let Some(of) = block.round() else {
                continue;
            };
            let own = self.round.own.entry();
            let position = own
                .filter(|_| of.round == self.round.number)
                .and_then(|entry| {
                    self.round
                        .sheets
                        .get(&of.sheet)
                        .and_then(|sheet| sheet.position(&entry.id))
                });
            if let Some(outcome) = of.outcome {
                self.adoption.waiting.push(FinalRound {
                    round: of.round,
                    block: hash,
                    outcome,
                    position,
                });
            }
            let authors = of.members();
            let lead = turns.lead(epoch, block.view);
            turns.advance(epoch, block.view, &authors);
            self.out.push(Effect::Report(Report::Final {
                round: of.round,
                view: block.view,
                lead,
                block: hash,
                authors,
            }));
            let sheet = self.round.sheets.get(&of.sheet);
            if let Some((entry, total)) = sheet.and_then(|sheet| sheet.heaviest()) {
                self.out.push(Effect::Report(Report::HeavyEntry {
                    round: of.round,
                    rows: entry.fields.weight.unwrap_or(0),
                    total,
                    member: entry.fields.member,
                }));
            }
        }
    }

    /// Moves the tip over final blocks. Gives the proof that the epoch is over, if they end it.
    fn extend(&mut self, blocks: Vec<Block>, proof: Certificate) -> Option<Passage> {
        let passage = Passage::among(&blocks, &proof);
        self.chain.advance(&self.config.epoch, blocks, proof);
        if passage.is_some() {
            return passage;
        }
        if self.config.masked().is_some() {
            self.await_settled();
        }
        let tip = self.chain.tip.view;
        self.ballots.forget(tip);
        self.chain.unresolved.take_if(|proof| proof.view <= tip);
        None
    }

    /// Goes on to the round after the last final one, once its outcome is known; false if that is under
    /// way. After a masked round whose outcome is not known, that round stays.
    fn begin_round(&mut self) -> bool {
        let next = self.chain.learned.round + u64::from(self.chain.settled());
        if next <= self.round.number {
            return false;
        }
        if next == self.round.number + 1 {
            let waiting = EntriesAwaited {
                config: self.config,
                now: self.now,
                round: self.round,
                presence: self.presence,
                absences: self.absences,
            };
            let participants = self.round.participants().iter().copied();
            let waited_for: Vec<_> = participants.filter(|&by| !waiting.excused(by)).collect();
            self.absences.waited(self.round.number, &waited_for);
        }
        self.absences.returned(&self.chain.learned.authors);
        self.round.advance_to(next, self.now);
        true
    }
}
