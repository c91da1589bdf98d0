//! What follows for the rounds from final blocks and certified outcomes (R4).

use crate::certificate::Certificate;
use crate::effects::{Effect, FinalRound, Report};
use crate::member::consensus::chain::{Chain, hashes};
use crate::member::consensus::links::Presence;
use crate::member::consensus::outbox::Outbox;
use crate::member::rounds::absences::Absences;
use crate::member::rounds::adoption::Adoption;
use crate::member::rounds::entries::EntriesAwaited;
use crate::member::rounds::round::Round;
use crate::member::{Config, Member};
use crate::message::Block;
use crate::time::Time;

/// What final blocks mean for the rounds. Borrows what that depends on.
pub(in crate::member) struct Finishing<'a> {
    config: &'a Config,
    now: Time,
    out: &'a mut Outbox,
    chain: &'a Chain,
    round: &'a mut Round,
    adoption: &'a mut Adoption,
    presence: &'a Presence,
    absences: &'a mut Absences,
}

impl Member {
    /// Lends what final blocks mean for the rounds.
    pub(in crate::member) fn finishing(&mut self) -> Finishing<'_> {
        Finishing {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            round: &mut self.rounds.round,
            adoption: &mut self.rounds.adoption,
            presence: &self.consensus.presence,
            absences: &mut self.rounds.absences,
        }
    }
}

impl Finishing<'_> {
    /// Goes on after a restart with the round after the last final one. A final masked round without a known
    /// outcome is still under way.
    pub(in crate::member) fn resume(&mut self) {
        let next = self.chain.learned.round + u64::from(self.chain.settled());
        *self.round = Round::new(next, self.now);
    }

    /// After a restart: the final rounds after the last adopted one wait.
    pub(in crate::member) fn await_after(&mut self, applied: u64) {
        self.adoption.applied = applied;
        if applied < self.chain.learned.round {
            self.adoption.waiting = self.chain.final_rounds(&self.config.epoch, applied);
        }
    }

    /// Masked rounds whose outcomes became known wait to be adopted.
    pub(in crate::member) fn await_settled(&mut self) {
        let last = self.adoption.waiting.last();
        let last = last.map_or(self.adoption.applied, |last| last.round);
        let known = self.chain.final_rounds(&self.config.epoch, last);
        self.adoption.waiting.extend(known);
    }

    /// Reports the rounds of final blocks, which wait to be adopted.
    pub(in crate::member) fn announce(&mut self, blocks: &[Block], proof: &Certificate) {
        let epoch = &self.config.epoch;
        let mut turns = self.chain.turns.clone();
        for (block, hash) in blocks.iter().zip(hashes(blocks, proof)) {
            let Some(of) = block.round() else {
                continue;
            };
            let own = self.round.own.entry();
            let position = own
                .filter(|_| of.round == self.round.number)
                .and_then(|entry| {
                    self.round
                        .manifests
                        .get(&of.manifest)
                        .and_then(|manifest| manifest.position(&entry.id))
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
            let manifest = self.round.manifests.get(&of.manifest);
            if let Some((entry, total)) = manifest.and_then(|manifest| manifest.heaviest()) {
                self.out.push(Effect::Report(Report::HeavyEntry {
                    round: of.round,
                    rows: entry.fields.weight.unwrap_or(0),
                    total,
                    member: entry.fields.member,
                }));
            }
        }
    }

    /// Goes on to the round after the last final one, once its outcome is known; false if that is under
    /// way. After a masked round whose outcome is not known, that round stays.
    pub(in crate::member) fn begin_round(&mut self) -> bool {
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
            let waited_for: Vec<_> = participants
                .filter(|&by| !waiting.marked_absent(by))
                .collect();
            self.absences.waited(self.round.number, &waited_for);
        }
        self.absences.returned(&self.chain.learned.authors);
        self.round.advance_to(next, self.now);
        true
    }
}
