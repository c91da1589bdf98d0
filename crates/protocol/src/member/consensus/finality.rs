//! What follows for the chain from certificates and final blocks (R3).

use crate::certificate::Certificate;
use crate::effects::{Effect, Record, Report};
use crate::envelope;
use crate::member::Config;
use crate::member::consensus::ballots::Ballots;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::message::{Block, Passage};
use crate::time::Time;

/// The chain, and what is kept beside it. Borrows what that depends on.
pub(in crate::member) struct Extending<'a> {
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) now: Time,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a mut Chain,
    pub(in crate::member) ballots: &'a mut Ballots,
}

impl Extending<'_> {
    /// Adds a certificate; false if it proves nothing new, or lacks the votes of auditors.
    pub(in crate::member) fn insert(&mut self, certificate: &Certificate) -> bool {
        let audited = self.chain.is_audited(&self.config.epoch, certificate);
        audited && self.chain.insert(certificate.clone(), self.now)
    }

    /// The outcome of the last final round is certified. False if it is not the one
    /// of that round, or known.
    pub(in crate::member) fn settle(&mut self, certificate: &Certificate) -> bool {
        if !self.chain.settle(certificate.clone(), self.now) {
            return false;
        }
        let record = Record::Certified(certificate.clone());
        self.out.push(Effect::Persist(record));
        true
    }

    /// Records that blocks are final.
    pub(in crate::member) fn record(&mut self, blocks: &[Block], proof: &Certificate) {
        self.out.push(Effect::Persist(Record::Final {
            blocks: blocks.to_vec(),
            proof: proof.clone(),
        }));
    }

    /// Publishes and reports a certificate.
    pub(in crate::member) fn publish(&mut self, certificate: &Certificate) {
        let frame = envelope::sign_certificate(&self.config.epoch, certificate);
        self.out.push(Effect::Publish { frame });
        let report = Report::Certified(certificate.clone());
        self.out.push(Effect::Report(report));
    }

    /// Moves the tip over final blocks. Gives the proof that the epoch is over, if they end it.
    pub(in crate::member) fn extend(
        &mut self,
        blocks: Vec<Block>,
        proof: Certificate,
    ) -> Option<Passage> {
        let passage = Passage::among(&blocks, &proof);
        self.chain.advance(&self.config.epoch, blocks, proof);
        if passage.is_some() {
            return passage;
        }
        let tip = self.chain.tip.view;
        self.ballots.forget(tip);
        self.chain.unresolved.take_if(|proof| proof.view <= tip);
        None
    }
}
