//! Restarting with the records of the journal.

use crate::certificate::Verdict;
use crate::effects::Record;
use crate::member::Member;
use crate::message::Body;

impl Member {
    /// Takes back the records of the journal. Gives the last round that was adopted.
    pub(in crate::member) fn restore(&mut self, records: Vec<Record>) -> u64 {
        let mut applied = 0;
        let mut own = None;
        for record in records {
            match record {
                Record::Final { blocks, proof } => {
                    self.consensus
                        .chain
                        .advance(&self.config.epoch, blocks, proof);
                }
                Record::Certified(certificate)
                    if matches!(certificate.verdict, Verdict::Outcome { .. }) =>
                {
                    self.consensus.chain.settle(certificate, self.now);
                }
                Record::Certified(certificate) => {
                    if matches!(certificate.verdict, Verdict::Final(_)) {
                        // A final block is recorded like this while an ancestor is missing.
                        self.consensus.chain.unresolved = Some(certificate.clone());
                    }
                    self.consensus.chain.insert(certificate, self.now);
                }
                Record::Block(block) => self.consensus.chain.keep(block.hash(), block),
                Record::Vote(message) => match message.body {
                    Body::Outcome { .. } => {
                        self.rounds.outcomes.restore(&self.config.epoch, message);
                    }
                    _ => self.consensus.ballots.restore(&self.config.epoch, message),
                },
                Record::Proposed(message) => {
                    self.consensus.ballots.restore(&self.config.epoch, message)
                }
                Record::Contributed(message) => own = Some(message),
                Record::Applied { round } => applied = round,
                Record::Standing(message) => self.governance.recoveries.restore(message),
                Record::Confirmed(confirmed) => {
                    self.governance.recoveries.restore_confirmed(*confirmed)
                }
                Record::Circle(circle) => {
                    self.rounds.circle = Some(circle).filter(|of| !of.0.is_empty())
                }
                Record::Outdated(what) => self.own_key().stop_signing(what),
            }
        }
        let tip = self.consensus.chain.tip.view;
        self.consensus
            .chain
            .unresolved
            .take_if(|proof| proof.view <= tip);
        self.finishing().resume();
        if let Some(message) = own {
            self.contributing().restore(message);
        }
        applied
    }

    /// Enters the first view, or the one in which this member stopped.
    pub(in crate::member) fn begin(&mut self, applied: u64) {
        if applied >= self.adopting().last_round() {
            self.adopting().all_rounds_applied();
        }
        let view = (self.consensus.chain.tip.view + 1)
            .max(self.consensus.chain.highest() + 1)
            .max(self.consensus.ballots.highest());
        self.enter(view);
        self.finishing().await_after(applied);
    }
}
