//! The agreed chain: what is final, what is certified above it, and how finality comes about.

use std::collections::BTreeMap;

use super::Member;
use crate::certificate::{Certificate, Verdict};
use crate::charter::Epoch;
use crate::effects::{Effect, FinalRound, Record, Report};
use crate::envelope::{self, Known};
use crate::hash::Hash;
use crate::message::Block;
use crate::time::Time;

/// Nullifications that a proposal carries: its size must not grow with the views that failed.
const CARRIED: u64 = 8;

/// The last final block.
pub(super) struct Tip {
    pub(super) hash: Hash,
    pub(super) view: u64,
    /// None on the epoch itself.
    pub(super) proof: Option<Certificate>,
}

/// The last final learning block.
pub(super) struct Learned {
    pub(super) round: u64,
    pub(super) view: u64,
    pub(super) outcome: Hash,
    /// Whose contributions are in it; empty before the first.
    pub(super) authors: Vec<crate::roster::MemberIndex>,
}

pub(super) struct Chain {
    pub(super) tip: Tip,
    pub(super) learned: Learned,
    /// Final blocks, oldest first, each with the certificate that made it final where there is one
    /// of its own.
    pub(super) history: Vec<(Block, Option<Certificate>)>,
    /// Known blocks that are not final.
    blocks: BTreeMap<Hash, Block>,
    /// Certificates of views above the tip, and when each became known.
    certificates: BTreeMap<(u64, Verdict), (Certificate, Time)>,
    /// A block is final whose ancestors are not all known.
    pub(super) unresolved: Option<Certificate>,
}

impl Chain {
    pub(super) fn new(epoch: &Epoch) -> Self {
        Self {
            tip: Tip {
                hash: epoch.id,
                view: 0,
                proof: None,
            },
            learned: Learned {
                round: 0,
                view: 0,
                outcome: epoch.charter.start,
                authors: Vec::new(),
            },
            history: Vec::new(),
            blocks: BTreeMap::new(),
            certificates: BTreeMap::new(),
            unresolved: None,
        }
    }

    /// The certificates that were verified here, with their votes.
    pub(super) fn known(&self) -> Known {
        let certificates = self.certificates.values().map(|(known, _)| known);
        let certificates = certificates.chain(&self.tip.proof);
        let said = |known: &Certificate| ((known.view, known.verdict), known.votes.clone());
        Known {
            certificates: certificates.map(said).collect(),
            ..Known::default()
        }
    }

    /// A known block that is not final.
    pub(super) fn block(&self, hash: &Hash) -> Option<&Block> {
        self.blocks.get(hash)
    }

    pub(super) fn keep(&mut self, hash: Hash, block: Block) {
        if block.view > self.tip.view {
            self.blocks.insert(hash, block);
        }
    }

    /// Takes a certificate in; false if it says nothing new.
    pub(super) fn insert(&mut self, certificate: Certificate, now: Time) -> bool {
        let key = (certificate.view, certificate.verdict);
        if certificate.view <= self.tip.view || self.certificates.contains_key(&key) {
            return false;
        }
        self.certificates.insert(key, (certificate, now));
        true
    }

    pub(super) fn has(&self, view: u64, verdict: Verdict) -> bool {
        self.certificates.contains_key(&(view, verdict))
    }

    pub(super) fn nullification(&self, view: u64) -> Option<&Certificate> {
        self.certificates
            .get(&(view, Verdict::Nullified))
            .map(|(certificate, _)| certificate)
    }

    /// The first view between `from` and `to`, both excluded, that is not known to be nullified.
    pub(super) fn gap(&self, from: u64, to: u64) -> Option<u64> {
        (from + 1..to).find(|&view| self.nullification(view).is_none())
    }

    /// The first view after the last final block of which no certificate is known.
    pub(super) fn first_unknown(&self) -> u64 {
        let mut view = self.tip.view + 1;
        for (known, _) in self.certificates.keys() {
            view += u64::from(*known == view);
        }
        view
    }

    /// The nullifications of the last views between `from` and `to`, both excluded: as many as a
    /// proposal carries. Whoever lacks earlier ones asks for them.
    pub(super) fn last_skipped(&self, from: u64, to: u64) -> Vec<Certificate> {
        let first = (from + 1).max(to.saturating_sub(CARRIED));
        (first..to)
            .filter_map(|view| self.nullification(view).cloned())
            .collect()
    }

    pub(super) fn notarisation(&self, block: &Hash) -> Option<&Certificate> {
        self.certificates
            .values()
            .map(|(certificate, _)| certificate)
            .find(|certificate| certificate.verdict == Verdict::Notarised(*block))
    }

    /// The notarisation of the highest view above the tip.
    pub(super) fn newest_notarised(&self) -> Option<&Certificate> {
        self.certificates
            .values()
            .rev()
            .map(|(certificate, _)| certificate)
            .find(|certificate| matches!(certificate.verdict, Verdict::Notarised(_)))
    }

    /// Certificates of a view, with the moments they became known. The tip's for any view up to
    /// the tip's.
    pub(super) fn of_view(&self, view: u64) -> Vec<(&Certificate, Time)> {
        if view <= self.tip.view {
            return self
                .tip
                .proof
                .iter()
                .map(|proof| (proof, Time::ZERO))
                .collect();
        }
        self.certificates
            .iter()
            .filter(|((of, _), _)| *of == view)
            .map(|(_, (certificate, since))| (certificate, *since))
            .collect()
    }

    /// The certificates of views from `view` on that are above the tip, by ascending view.
    pub(super) fn since_view(&self, view: u64) -> impl Iterator<Item = &Certificate> {
        self.certificates
            .range((view, Verdict::Nullified)..)
            .map(|(_, (certificate, _))| certificate)
    }

    /// A certificate of the highest view that one is known of.
    pub(super) fn highest_certificate(&self) -> Option<&Certificate> {
        let above = self.certificates.values().next_back();
        above.map(|(known, _)| known).or(self.tip.proof.as_ref())
    }

    /// The highest view that a certificate is known of.
    pub(super) fn highest(&self) -> u64 {
        let above = self
            .certificates
            .keys()
            .next_back()
            .map_or(0, |(view, _)| *view);
        above.max(self.tip.view)
    }

    /// The blocks that the finality of `block` makes final, oldest first; or the first one, going
    /// back, that is not known.
    fn path(&self, block: Hash) -> Result<Vec<Block>, Hash> {
        let mut path = Vec::new();
        let mut at = block;
        while at != self.tip.hash {
            let block = self.blocks.get(&at).ok_or(at)?;
            path.push(block.clone());
            at = block.parent;
        }
        path.reverse();
        Ok(path)
    }

    /// The first block that is not known, going back from one that is final.
    pub(super) fn missing(&self) -> Option<Hash> {
        let last = self.unresolved.as_ref()?.verdict.block()?;
        self.path(last).err()
    }

    /// A block that somebody misses and those before it, as far as they are known, at most `most`.
    pub(super) fn back_from(&self, block: Hash, most: usize) -> Vec<Block> {
        let mut found = Vec::new();
        let mut at = block;
        while found.len() < most {
            // Whoever asks for more of what is final asks by view.
            let settled = || self.history.iter().rev().take(most).map(|(block, _)| block);
            let of_history = || settled().find(|block| block.hash() == at);
            let Some(block) = self.blocks.get(&at).or_else(of_history) else {
                break;
            };
            at = block.parent;
            found.push(block.clone());
        }
        found
    }

    /// Moves the tip over blocks that are final; `proof` is of the last.
    pub(super) fn advance(&mut self, blocks: Vec<Block>, proof: Certificate) {
        let last = blocks.len().saturating_sub(1);
        let hashes = hashes(&blocks, &proof);
        for ((at, block), hash) in blocks.into_iter().enumerate().zip(hashes) {
            if let Some(learning) = block.learning() {
                self.learned = Learned {
                    round: learning.round,
                    view: block.view,
                    outcome: learning.outcome,
                    authors: learning
                        .inclusions
                        .iter()
                        .map(|(member, _)| *member)
                        .collect(),
                };
            }
            self.tip.hash = hash;
            self.tip.view = block.view;
            self.history
                .push((block, (at == last).then(|| proof.clone())));
        }
        self.tip.proof = Some(proof);
        let view = self.tip.view;
        self.blocks.retain(|_, block| block.view > view);
        self.certificates.retain(|(of, _), _| *of > view);
    }

    /// Final learning rounds after `round`, oldest first.
    pub(super) fn final_rounds(&self, round: u64) -> Vec<FinalRound> {
        self.history
            .iter()
            .filter_map(|(block, _)| Some((block, block.learning()?)))
            .filter(|(_, learning)| learning.round > round)
            .map(|(block, learning)| FinalRound {
                round: learning.round,
                block: block.hash(),
                outcome: learning.outcome,
                position: None,
            })
            .collect()
    }
}

impl Member {
    /// A verified certificate (R3).
    pub(super) fn certify(&mut self, certificate: Certificate) {
        if !self.chain.insert(certificate.clone(), self.now) {
            return;
        }
        let frame = envelope::seal_certificate(&self.config.epoch, &certificate);
        self.out.push(Effect::Publish { frame });
        self.out
            .push(Effect::Report(Report::Certified(certificate.clone())));
        let view = certificate.view;
        match certificate.verdict {
            Verdict::Nullified => self.leave(view, certificate),
            Verdict::Notarised(block) => {
                self.finalize(view, block);
                self.leave(view, certificate);
            }
            Verdict::Final(_) => self.finalise(certificate),
        }
    }

    /// The view is over: go to the next.
    fn leave(&mut self, view: u64, certificate: Certificate) {
        if view >= self.view.number {
            self.out
                .push(Effect::Persist(Record::Certified(certificate)));
            self.enter(view + 1);
        }
    }

    /// A block and all its ancestors are final.
    pub(super) fn finalise(&mut self, proof: Certificate) {
        let Some(hash) = proof
            .verdict
            .block()
            .filter(|_| proof.view > self.chain.tip.view)
        else {
            return;
        };
        let Ok(blocks) = self.chain.path(hash) else {
            // What is final is what q members voted for; the blocks before it can be asked for.
            let newer = self
                .chain
                .unresolved
                .as_ref()
                .is_none_or(|old| old.view < proof.view);
            if newer {
                self.chain.unresolved = Some(proof.clone());
                self.ask_for_ancestors();
            }
            return self.leave(proof.view, proof);
        };
        self.advance(blocks, proof);
    }

    /// These blocks, each the parent of the next, are final: R4 follows.
    pub(super) fn advance(&mut self, blocks: Vec<Block>, proof: Certificate) {
        let before = self.chain.learned.round;
        self.out.push(Effect::Persist(Record::Final {
            blocks: blocks.clone(),
            proof: proof.clone(),
        }));
        for (block, hash) in blocks.iter().zip(hashes(&blocks, &proof)) {
            let Some(learning) = block.learning() else {
                continue;
            };
            let own = self.round.own_entry();
            let position = own
                .filter(|_| learning.round == self.round.number)
                .and_then(|entry| {
                    self.round
                        .sheets
                        .get(&learning.sheet)
                        .and_then(|sheet| sheet.position(&entry.id))
                });
            self.round.unapplied.push(FinalRound {
                round: learning.round,
                block: hash,
                outcome: learning.outcome,
                position,
            });
            self.out.push(Effect::Report(Report::Final {
                round: learning.round,
                view: block.view,
                lead: self.config.epoch.lead(block.view),
                block: hash,
                authors: learning
                    .inclusions
                    .iter()
                    .map(|(member, _)| *member)
                    .collect(),
            }));
        }
        self.notice_own(&blocks, &proof);
        self.chain.advance(blocks, proof);
        let tip = self.chain.tip.view;
        self.ballots.forget(tip);
        if self
            .chain
            .unresolved
            .as_ref()
            .is_some_and(|proof| proof.view <= tip)
        {
            self.chain.unresolved = None;
        }
        if self.chain.learned.round > before {
            let participants = self.round.participants.iter().copied();
            let waited_for: Vec<_> = participants.filter(|&by| !self.excused(by)).collect();
            let (next, authors) = (self.chain.learned.round + 1, &self.chain.learned.authors);
            self.round.close(next, authors, &waited_for, self.now);
        }
        self.recover();
        if tip >= self.view.number {
            self.enter(tip + 1);
        } else if self.lead.is_some() {
            self.take_the_lead();
        }
        // A later block may have been waiting for the ancestors that just became known.
        if let Some(waiting) = self.chain.unresolved.take() {
            self.finalise(waiting);
        }
    }
}

/// The hashes of blocks, each the parent of the next and the last final: computing them is what
/// showed that they are.
fn hashes(blocks: &[Block], proof: &Certificate) -> Vec<Hash> {
    let parents = blocks.iter().skip(1).map(|block| block.parent);
    parents.chain(proof.verdict.block()).collect()
}
