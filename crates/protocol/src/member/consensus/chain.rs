//! The agreed chain: final blocks, and later certificates (R3, R4).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::certificate::{Certificate, Checked, Verdict};
use crate::effects::FinalRound;
use crate::envelope::{Known, KnownVotes};
use crate::hash::Hash;
use crate::message::{Block, Content, MaskedRound, Proposal};
use crate::parameters::{Checkpoint, Epoch, Verification};
use crate::roster::MemberIndex;
use crate::rotation::Turns;
use crate::time::Time;

/// Most nullifications in a proposal, so that its size does not grow with the views that failed.
const CARRIED: u64 = 8;

/// The last final block.
pub(in crate::member) struct Tip {
    pub(in crate::member) hash: Hash,
    pub(in crate::member) view: u64,
    /// Final certificate of the block; none before the first block.
    pub(in crate::member) proof: Option<Certificate>,
}

/// The last final learning block.
pub(in crate::member) struct LastLearning {
    pub(in crate::member) round: u64,
    /// View of the block in the present epoch; 0 if the block is of an earlier one.
    pub(in crate::member) view: u64,
    /// Hash of the block; the id of the first epoch before the first block.
    pub(in crate::member) block: Hash,
    /// Outcome of the block; none of a masked round until that is certified here.
    pub(in crate::member) outcome: Option<Hash>,
    /// The members whose contributions are in the block, ascending; in a masked round those that were
    /// ready. Empty before the first block.
    pub(in crate::member) authors: Vec<MemberIndex>,
    /// Lead and auditors of the block, who have its outcome; empty where all members have computed it.
    pub(in crate::member) keepers: Vec<MemberIndex>,
}

/// The chain as this member knows it.
pub(in crate::member) struct Chain {
    pub(in crate::member) tip: Tip,
    pub(in crate::member) learned: LastLearning,
    /// Who leads the views after the last final learning block, and who led those before it.
    pub(in crate::member) turns: Turns,
    before: Turns,
    /// Final blocks, oldest first, each with its final certificate if it has one of its own. Others
    /// are final as ancestors.
    pub(in crate::member) history: Vec<(Block, Option<Certificate>)>,
    /// Known blocks that are not final.
    blocks: BTreeMap<Hash, Block>,
    /// Certificates of views after the tip, with the time at which each became known.
    certificates: BTreeMap<(u64, Verdict), (Certificate, Time)>,
    /// The final certificate of a block whose ancestors are not all known.
    pub(in crate::member) unresolved: Option<Certificate>,
    /// The final round before the last, where that is masked.
    before_learned: Checkpoint,
    /// The certificate of the outcome of the last final masked round, and when it became known.
    pub(in crate::member) certified: Option<(Certificate, Time)>,
    /// The votes of all these certificates. It is handed out with every message, so it is shared.
    known: Arc<KnownVotes>,
}

impl Chain {
    pub(in crate::member) fn new(epoch: &Epoch) -> Self {
        Self {
            tip: Tip {
                hash: epoch.id,
                view: 0,
                proof: None,
            },
            learned: LastLearning {
                round: epoch.began.round,
                view: 0,
                block: epoch.began.block,
                outcome: Some(epoch.began.outcome),
                authors: Vec::new(),
                keepers: Vec::new(),
            },
            turns: epoch.turns(),
            before: epoch.turns(),
            history: Vec::new(),
            blocks: BTreeMap::new(),
            certificates: BTreeMap::new(),
            unresolved: None,
            before_learned: epoch.began,
            certified: None,
            known: Arc::default(),
        }
    }

    /// Whether the outcome of the last final round is known.
    pub(in crate::member) fn settled(&self) -> bool {
        self.learned.outcome.is_some()
    }

    /// The last final round and its block, if it is masked and its outcome is not certified here.
    pub(in crate::member) fn unsettled(&self) -> Option<(Hash, &MaskedRound)> {
        if self.learned.outcome.is_some() {
            return None;
        }
        let masked = self
            .history
            .iter()
            .rev()
            .find_map(|(block, _)| block.masked())?;
        Some((self.learned.block, masked))
    }

    /// The state that a round starts from, if it is the next one and the outcome before it is known.
    pub(in crate::member) fn state_before(&self, round: u64) -> Option<Hash> {
        let next = self.learned.round + 1 == round;
        self.learned.outcome.filter(|_| next)
    }

    /// The outcome of the last final round is certified; false if it is not the one of that round, or
    /// known.
    pub(in crate::member) fn settle(&mut self, certificate: Certificate, now: Time) -> bool {
        let Verdict::Outcome { block, outcome } = certificate.verdict else {
            return false;
        };
        if block != self.learned.block || self.learned.outcome.is_some() {
            return false;
        }
        self.learned.outcome = Some(outcome);
        self.know(&certificate);
        self.certified = Some((certificate, now));
        true
    }

    /// The lead of a view after the last final learning block.
    pub(in crate::member) fn lead(&self, epoch: &Epoch, view: u64) -> MemberIndex {
        self.turns.lead(epoch, view)
    }

    /// The members that check the round of a view, ascending.
    pub(in crate::member) fn auditors(&self, epoch: &Epoch, view: u64) -> Vec<MemberIndex> {
        epoch.auditors(&self.learned.block, view)
    }

    /// Whether a notarisation has the votes of the auditors that it needs. The notarisation of an empty
    /// block needs none; its votes say that there was no outcome to check. A member that lacks the final
    /// block before it draws other auditors, and learns of it by later final blocks.
    pub(in crate::member) fn is_audited(&self, epoch: &Epoch, certificate: &Certificate) -> bool {
        let needed = epoch.protocol.verification.needed(epoch.roster.len());
        let votes = &certificate.votes;
        let empty = votes.iter().all(|vote| vote.checked == Checked::Structure);
        let notarised = matches!(certificate.verdict, Verdict::Notarised(_));
        if needed == 0 || !notarised || empty {
            return true;
        }
        let auditors = self.auditors(epoch, certificate.view);
        let full = |vote: &&crate::certificate::Vote| {
            let audited = vote.checked == Checked::Outcome(Verification::Full);
            audited && auditors.binary_search(&vote.member).is_ok()
        };
        votes.iter().filter(full).count() >= needed
    }

    /// Whether `by` may propose this block in a view.
    ///
    /// The lead of a learning block follows from the last final learning block. That of an empty
    /// block may also be the member that led the view before its parent was known to be final: by
    /// the time that its block arrives, the parent may be.
    pub(in crate::member) fn may_propose(
        &self,
        epoch: &Epoch,
        view: u64,
        by: MemberIndex,
        proposal: &Proposal,
    ) -> bool {
        let known = |parent: &Certificate| parent.view <= self.tip.view;
        let parent_final = proposal.parent.as_ref().is_some_and(known);
        let allowed = proposal.block.content == Content::Empty;
        self.turns.lead(epoch, view) == by
            || allowed && parent_final && self.before.lead(epoch, view) == by
    }

    /// The certificates that were verified here.
    pub(in crate::member) fn known(&self) -> Known {
        Known {
            certificates: self.known.clone(),
            ..Known::default()
        }
    }

    fn know(&mut self, certificate: &Certificate) {
        let key = (certificate.view, certificate.verdict);
        Arc::make_mut(&mut self.known).insert(key, certificate.votes.clone());
    }

    /// The views before this one that failed since the last final learning block.
    pub(in crate::member) fn failed_views(&self, view: u64) -> u64 {
        (view - 1).saturating_sub(self.learned.view)
    }

    /// A known block that is not final.
    pub(in crate::member) fn block(&self, hash: &Hash) -> Option<&Block> {
        self.blocks.get(hash)
    }

    /// Keeps a block that may become final.
    pub(in crate::member) fn keep(&mut self, hash: Hash, block: Block) {
        if block.view > self.tip.view {
            self.blocks.insert(hash, block);
        }
    }

    /// Adds a certificate; false if it proves nothing new.
    pub(in crate::member) fn insert(&mut self, certificate: Certificate, now: Time) -> bool {
        let key = (certificate.view, certificate.verdict);
        if certificate.view <= self.tip.view || self.certificates.contains_key(&key) {
            return false;
        }
        self.know(&certificate);
        self.certificates.insert(key, (certificate, now));
        true
    }

    pub(in crate::member) fn has(&self, view: u64, verdict: Verdict) -> bool {
        self.certificates.contains_key(&(view, verdict))
    }

    pub(in crate::member) fn nullification(&self, view: u64) -> Option<&Certificate> {
        self.certificates
            .get(&(view, Verdict::Nullified))
            .map(|(certificate, _)| certificate)
    }

    /// The first view between `from` and `to`, both excluded, that is not known to be nullified.
    pub(in crate::member) fn gap(&self, from: u64, to: u64) -> Option<u64> {
        (from + 1..to).find(|&view| self.nullification(view).is_none())
    }

    /// The first view after the last final block of which no certificate is known.
    pub(in crate::member) fn first_unknown(&self) -> u64 {
        let mut view = self.tip.view + 1;
        for (known, _) in self.certificates.keys() {
            view += u64::from(*known == view);
        }
        view
    }

    /// The nullifications that a proposal carries: those of the last views between `from` and `to`,
    /// both excluded.
    pub(in crate::member) fn last_skipped(&self, from: u64, to: u64) -> Vec<Certificate> {
        let first = (from + 1).max(to.saturating_sub(CARRIED));
        (first..to)
            .filter_map(|view| self.nullification(view).cloned())
            .collect()
    }

    /// The notarisation of the highest view after the tip.
    pub(in crate::member) fn newest_notarised(&self) -> Option<&Certificate> {
        self.certificates
            .values()
            .rev()
            .map(|(certificate, _)| certificate)
            .find(|certificate| matches!(certificate.verdict, Verdict::Notarised(_)))
    }

    /// The certificates of a view, with the times at which they became known. For views up to the
    /// tip's this is the tip's final certificate.
    pub(in crate::member) fn of_view(
        &self,
        view: u64,
    ) -> impl Iterator<Item = (&Certificate, Time)> + Clone {
        let tip = self.tip.proof.iter().filter(move |_| view <= self.tip.view);
        let tip = tip.map(|proof| (proof, Time::ZERO));
        // Certificates are of later views than the tip's.
        let later = self.certificates.range((view, Verdict::Nullified)..);
        let own = later.take_while(move |((of, _), _)| *of == view);
        tip.chain(own.map(|(_, (certificate, since))| (certificate, *since)))
    }

    /// The certificates of `view` and later views after the tip, by ascending view.
    pub(in crate::member) fn since_view(&self, view: u64) -> impl Iterator<Item = &Certificate> {
        self.certificates
            .range((view, Verdict::Nullified)..)
            .map(|(_, (certificate, _))| certificate)
    }

    /// A certificate of the highest view of which one is known.
    pub(in crate::member) fn highest_certificate(&self) -> Option<&Certificate> {
        let above = self.certificates.values().next_back();
        above.map(|(known, _)| known).or(self.tip.proof.as_ref())
    }

    /// The highest view of which a certificate is known.
    pub(in crate::member) fn highest(&self) -> u64 {
        let above = self
            .certificates
            .keys()
            .next_back()
            .map_or(0, |(view, _)| *view);
        above.max(self.tip.view)
    }

    /// The blocks that become final with `block`, oldest first.
    ///
    /// # Errors
    /// The first block, going back, that is not known.
    pub(in crate::member) fn path(&self, block: Hash) -> Result<Vec<Block>, Hash> {
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

    /// The first block that is not known, going back from a final one.
    pub(in crate::member) fn missing(&self) -> Option<Hash> {
        let last = self.unresolved.as_ref()?.verdict.block()?;
        self.path(last).err()
    }

    /// A block and the known ones before it, at most `most`.
    pub(in crate::member) fn back_from(&self, block: Hash, most: usize) -> Vec<Block> {
        let mut found = Vec::new();
        let mut at = block;
        while found.len() < most {
            // Older final blocks are asked for by view.
            let newest = || self.history.iter().rev().take(most).map(|(block, _)| block);
            let of_history = || newest().find(|block| block.hash() == at);
            let Some(block) = self.blocks.get(&at).or_else(of_history) else {
                break;
            };
            at = block.parent;
            found.push(block.clone());
        }
        found
    }

    /// Moves the tip over final blocks; `proof` is the final certificate of the last.
    pub(in crate::member) fn advance(
        &mut self,
        epoch: &Epoch,
        blocks: Vec<Block>,
        proof: Certificate,
    ) {
        let last = blocks.len().saturating_sub(1);
        let hashes = hashes(&blocks, &proof);
        for ((at, block), hash) in blocks.into_iter().enumerate().zip(hashes) {
            if let Some(round) = block.round() {
                let keepers = match epoch.protocol.verification {
                    Verification::Full => Vec::new(),
                    _ => {
                        let mut keepers = self.auditors(epoch, block.view);
                        keepers.push(self.turns.lead(epoch, block.view));
                        keepers
                    }
                };
                if let Some(masked) = block.masked() {
                    self.before_learned = Checkpoint {
                        round: self.learned.round,
                        block: self.learned.block,
                        outcome: masked.state,
                    };
                }
                self.learned = LastLearning {
                    keepers,
                    round: round.round,
                    view: block.view,
                    block: hash,
                    outcome: round.outcome,
                    authors: round.members(),
                };
                self.certified = None;
                self.before = self.turns.clone();
                self.turns.advance(epoch, block.view, &self.learned.authors);
            }
            self.tip.hash = hash;
            self.tip.view = block.view;
            self.history
                .push((block, (at == last).then(|| proof.clone())));
        }
        let view = self.tip.view;
        self.blocks.retain(|_, block| block.view > view);
        self.certificates.retain(|(of, _), _| *of > view);
        self.tip.proof = Some(proof);
        self.known = Arc::new(self.votes());
    }

    /// The votes of all certificates here.
    fn votes(&self) -> KnownVotes {
        let later = self.certificates.values().chain(&self.certified);
        let all = later.map(|(known, _)| known).chain(&self.tip.proof);
        let votes = all.map(|known| ((known.view, known.verdict), known.votes.clone()));
        votes.collect()
    }

    /// The last final round, for a change of the agreement; while its outcome is not known, the one before.
    pub(in crate::member) fn checkpoint(&self) -> Checkpoint {
        let last = self.learned.outcome.map(|outcome| Checkpoint {
            round: self.learned.round,
            block: self.learned.block,
            outcome,
        });
        last.unwrap_or(self.before_learned)
    }

    /// Final learning rounds after `round` with known outcomes, oldest first. Of earlier epochs only the
    /// last. The outcome of a masked round stands in the next block of a round, or in its certificate.
    pub(in crate::member) fn final_rounds(&self, epoch: &Epoch, round: u64) -> Vec<FinalRound> {
        let began = Some(epoch.began).filter(|began| began.round > round);
        let began = began.map(|began| FinalRound {
            round: began.round,
            block: began.block,
            outcome: began.outcome,
            position: None,
        });
        let rounds = self.history.iter();
        let rounds = rounds.filter_map(|(block, _)| Some((block, block.round()?)));
        let later = rounds.clone().filter_map(|(block, _)| block.masked());
        let later = later.skip(1).map(|masked| Some(masked.state));
        let later = later.chain([self.learned.outcome]);
        let since = rounds
            .zip(later.chain(std::iter::repeat(None)))
            .filter(|((_, of), _)| of.round > round)
            .filter_map(|((block, of), later)| {
                Some(FinalRound {
                    round: of.round,
                    block: block.hash(),
                    outcome: of.outcome.or(later)?,
                    position: None,
                })
            });
        began.into_iter().chain(since).collect()
    }
}

/// The hashes of blocks, each the parent of the next, of which `proof` makes the last final. They
/// stand in the next block and in the proof, so nothing is hashed.
pub(in crate::member) fn hashes(blocks: &[Block], proof: &Certificate) -> Vec<Hash> {
    let parents = blocks.iter().skip(1).map(|block| block.parent);
    parents.chain(proof.verdict.block()).collect()
}
