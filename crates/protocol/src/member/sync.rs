//! Catching up with what became final elsewhere, and members that only listen because they cannot
//! know what they have signed (R5).

use std::collections::BTreeSet;

use super::{ByMember, Member};
use crate::certificate::{Certificate, Verdict};
use crate::codec;
use crate::effects::{Effect, Report};
use crate::envelope;
use crate::hash::Hash;
use crate::message::{Block, Body, Message, Reminder, SyncResponse};
use crate::roster::MemberIndex;

/// Most final blocks in one answer.
const BLOCKS: usize = 64;
/// Most blocks in one answer that the asker misses before a final one.
const MISSING: usize = 16;
/// Most certificates in one answer.
const CERTIFICATES: usize = 32;

/// What a member asks others, and whether it takes part.
pub(super) struct Sync {
    /// Others are known, or likely, to have final blocks or certificates that are missing here.
    catching_up: bool,
    /// The nonces of questions that are not answered yet. Other answers are ignored.
    asked: ByMember<u64>,
    /// Questions asked since the start.
    questions: u64,
    /// The member that was asked last; the one after it is asked next.
    last: Option<MemberIndex>,
    participation: Participation,
    /// This member has adopted the last round and has not yet told the others.
    pub(super) complete_unsent: bool,
}

/// Whether a member takes part, or only listens.
enum Participation {
    /// It knows what it has signed, and takes part.
    Full,
    /// It has an empty journal, and asks others whether its key was used before.
    KeyCheck {
        /// Members that answered and know of nothing that it signed.
        answers: BTreeSet<MemberIndex>,
    },
    /// It lost its journal.
    JournalLost {
        /// The highest view that each member proved by a certificate.
        answers: ByMember<u64>,
        /// The numbers in the last report of it.
        reported: Option<(usize, Option<u64>)>,
    },
}

impl Participation {
    fn journal_lost() -> Self {
        Self::JournalLost {
            answers: ByMember::new(),
            reported: None,
        }
    }
}

/// The journal that a member starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Journal {
    /// Nothing was ever written.
    Empty,
    /// Everything that was written is there.
    Kept,
    /// There was a journal, and it is gone.
    Lost,
}

impl Sync {
    pub(super) fn new(journal: Journal) -> Self {
        let participation = match journal {
            Journal::Kept => Participation::Full,
            Journal::Lost => Participation::journal_lost(),
            Journal::Empty => Participation::KeyCheck {
                answers: BTreeSet::new(),
            },
        };
        Self {
            catching_up: journal != Journal::Empty,
            asked: ByMember::new(),
            questions: 0,
            last: None,
            participation,
            complete_unsent: false,
        }
    }

    /// Whether this member only listens: it neither votes, proposes, contributes nor signs for
    /// sheets.
    pub(super) fn listening(&self) -> bool {
        !matches!(self.participation, Participation::Full)
    }

    /// Whether this member lost its journal. Such a member does not train either.
    pub(super) fn lost_journal(&self) -> bool {
        matches!(self.participation, Participation::JournalLost { .. })
    }

    /// A member cannot be reached: its answer is not waited for.
    pub(super) fn unreachable(&mut self, peer: MemberIndex) {
        self.asked.remove(&peer);
    }
}

impl Member {
    /// Answers a member that asks what became final after view `after`, how views ended from `from`
    /// on, and which blocks lead to `missing`.
    pub(super) fn answer_sync_request(
        &mut self,
        asker: MemberIndex,
        (after, from): (u64, u64),
        missing: Option<Hash>,
        nonce: u64,
    ) {
        if asker == self.me() {
            return;
        }
        let room = envelope::limit(&self.config.epoch) / 2;
        let mut bytes = 0;
        let newer = self.chain.history.partition_point(|(b, _)| b.view <= after);
        let newer = &self.chain.history[newer..];
        let mut fits = |block: &Block| {
            bytes += codec::encode(block).len();
            bytes <= room
        };
        // The blocks of an answer end with one that has a final certificate of its own.
        let first = newer.iter().position(|(_, proof)| proof.is_some());
        let few = newer
            .iter()
            .take(BLOCKS.max(first.map_or(0, |first| first + 1)));
        let few = few.take_while(|(block, _)| fits(block)).count();
        let last = newer[..few].iter().rposition(|(_, proof)| proof.is_some());
        let count = last.map_or(0, |last| last + 1);
        let blocks = newer[..count].iter().map(|(block, _)| block.clone());
        let proof = last.and_then(|last| newer[last].1.clone());
        let reached = newer[..count].last().map_or(after, |(block, _)| block.view);
        let mut above = self.chain.since_view(from.max(reached + 1));
        let (certificates, more) = match count == newer.len() {
            true => (above.by_ref().take(CERTIFICATES).cloned().collect(), false),
            false => (Vec::new(), true),
        };
        let response = SyncResponse {
            after,
            nonce,
            highest: self.chain.highest_certificate().cloned(),
            blocks: blocks.collect(),
            proof,
            missing: missing.map_or_else(Vec::new, |block| self.chain.back_from(block, MISSING)),
            more: more || above.next().is_some(),
            certificates,
            yours: self.signed_by(asker).and_then(Reminder::of),
        };
        let (_, frame) = self.seal(0, 0, Body::SyncResponse(Box::new(response)));
        self.out.push(Effect::Send { to: asker, frame });
    }

    /// The newest message that a member is known to have signed and must not forget.
    fn signed_by(&self, member: MemberIndex) -> Option<&Message> {
        let vote = self.ballots.last_of(member);
        let proposal = self.proposed_by(member);
        let contribution = || self.round.contributed(member);
        vote.or(proposal).or_else(contribution)
    }

    /// Takes over what an answer proves: final blocks that continue this member's chain, and
    /// certificates of later views.
    pub(super) fn receive_sync_response(&mut self, sender: MemberIndex, response: SyncResponse) {
        if self.sync.asked.get(&sender) != Some(&response.nonce) {
            return;
        }
        self.sync.asked.remove(&sender);
        self.sync.catching_up = false;
        let before = self.missing_from();
        let known = self.chain.tip.view;
        let blocks: Vec<_> = response
            .blocks
            .into_iter()
            .filter(|block| block.view > known)
            .collect();
        if let Some(proof) = response.proof
            && proves(&blocks, &self.chain.tip.hash, &proof)
        {
            self.advance(blocks, proof);
        }
        let ancestors = self.take_missing(response.missing);
        let mut highest = 0;
        for certificate in response.certificates.into_iter().chain(response.highest) {
            highest = certificate.view.max(highest);
            self.add_certificate(certificate);
        }
        // Asked again only if this answer brought something new, whatever it promises.
        self.sync.catching_up = ancestors || response.more && self.missing_from() > before;
        let forgotten = response
            .yours
            .is_some_and(|own| self.is_forgotten(&own.message()));
        if forgotten {
            self.key_was_used_before();
        }
        match &mut self.sync.participation {
            Participation::JournalLost { answers, .. } => {
                let answer = answers.entry(sender).or_default();
                *answer = highest.max(*answer);
            }
            Participation::KeyCheck { answers } if !response.more => {
                answers.insert(sender);
            }
            _ => {}
        }
        self.try_to_take_part();
        if self.sync.catching_up {
            self.ask(sender);
        }
    }

    /// Takes blocks between the last final block here and a later final one, as long as each is the
    /// one that is missing. Gives whether some were taken and others are still missing.
    fn take_missing(&mut self, blocks: Vec<Block>) -> bool {
        let mut taken = false;
        for block in blocks {
            let hash = block.hash();
            if self.chain.missing() != Some(hash) {
                break;
            }
            self.chain.keep(hash, block);
            taken = true;
        }
        if self.chain.missing().is_some() {
            return taken;
        }
        if let Some(waiting) = self.chain.unresolved.take() {
            self.make_final(waiting);
        }
        false
    }

    /// What is missing here: everything after the last final view, and certificates from the first
    /// later view of which none is known.
    fn missing_from(&self) -> (u64, u64) {
        (self.chain.tip.view, self.chain.first_unknown())
    }

    /// Whether a message under this member's key is unknown to it and still binds it. What was
    /// signed in views up to the last final block, or in earlier rounds, binds it no more.
    fn is_forgotten(&mut self, own: &Message) -> bool {
        own.sender == self.me()
            && match own.body {
                Body::Contribution(_) => {
                    own.round >= self.round.number && !self.round.own.is_contribution(own)
                }
                Body::Notarize { .. }
                | Body::Finalize { .. }
                | Body::Nullify
                | Body::Proposal(_) => {
                    own.view > self.chain.tip.view && !self.ballots.remembers(own)
                }
                _ => false,
            }
    }

    /// A message under this member's own key came from outside.
    pub(super) fn own_message_from_outside(&mut self, message: &Message) {
        if self.sync.lost_journal() || !self.is_forgotten(message) {
            return;
        }
        if self.sync.listening() {
            self.key_was_used_before();
            self.try_to_take_part();
        } else if !std::mem::replace(&mut self.key_used_elsewhere, true) {
            self.out.push(Effect::Report(Report::KeyUsedElsewhere));
        }
    }

    /// Blocks became final: a member with an empty journal looks for its own signatures in them.
    pub(super) fn look_for_own_signatures(&mut self, blocks: &[Block], proof: &Certificate) {
        if !matches!(self.sync.participation, Participation::KeyCheck { .. }) {
            return;
        }
        let me = self.me();
        let learned = blocks.iter().filter_map(Block::learning);
        let signers = learned.flat_map(|learning| learning.inclusions.iter().map(|(by, _)| *by));
        let voters = proof.votes.iter().map(|vote| vote.member);
        if signers.chain(voters).any(|by| by == me) {
            self.key_was_used_before();
        }
    }

    /// This member's key signed what its journal does not hold: it behaves as one that lost its
    /// journal.
    fn key_was_used_before(&mut self) {
        if !self.sync.lost_journal() {
            self.sync.participation = Participation::journal_lost();
            self.lead = None;
            self.out.push(Effect::Report(Report::KeyUsedBefore));
        }
    }

    /// Lets a member that only listens take part, if it may.
    ///
    /// With an empty journal it may when f + 1 others, at least one of them honest, know of nothing
    /// that it signed. With a lost journal it may when q others have proved how far views had come,
    /// and a block two cycles later is final: no vote that it may have forgotten counts then.
    pub(super) fn try_to_take_part(&mut self) {
        let roster = &self.config.epoch.roster;
        let n = roster.len() as u64;
        match &mut self.sync.participation {
            Participation::Full => {}
            Participation::KeyCheck { answers } => {
                let needed = (roster.faulty() + 1).min(roster.len() - 1);
                if answers.len() >= needed {
                    self.take_part();
                }
            }
            Participation::JournalLost { answers, reported } => {
                let needed = roster.quorum();
                let highest = answers.values().max().copied().unwrap_or(0);
                let until = (highest / n + 2) * n;
                let enough = answers.len() >= needed;
                if enough && self.chain.tip.view >= until {
                    self.out.push(Effect::Report(Report::TakingPart));
                    return self.take_part();
                }
                let now = (answers.len(), enough.then_some(until));
                if *reported != Some(now) {
                    *reported = Some(now);
                    self.out.push(Effect::Report(Report::Listening {
                        answers: now.0,
                        needed,
                        until: now.1,
                    }));
                }
            }
        }
    }

    /// From now on this member votes, proposes and contributes.
    fn take_part(&mut self) {
        self.sync.participation = Participation::Full;
        self.begin_to_lead();
    }

    /// A member can be reached: asks it, if this member is catching up and no question is open, or
    /// if it only listens and needs more answers.
    pub(super) fn ask_if_useful(&mut self, peer: MemberIndex) {
        let unasked = self.sync.catching_up && self.sync.asked.is_empty();
        if unasked || self.needs_answer_of(peer) {
            self.ask(peer);
        }
    }

    /// Whether this member only listens and needs an answer of `peer` now.
    fn needs_answer_of(&self, peer: MemberIndex) -> bool {
        if self.answered_by(peer) || self.sync.asked.contains_key(&peer) {
            return false;
        }
        let Participation::KeyCheck { answers } = &self.sync.participation else {
            return true;
        };
        // Votes, proposals and contributions may have reached only the leads of these views.
        let view = self.view.number;
        let leads = [view, view + 1].map(|view| self.config.epoch.lead(view));
        let under_way = answers.len() + self.sync.asked.len();
        under_way <= self.config.epoch.roster.faulty() || leads.contains(&peer)
    }

    /// Whether no answer of `peer` is needed: there is one, there are enough, or this member takes
    /// part.
    fn answered_by(&self, peer: MemberIndex) -> bool {
        match &self.sync.participation {
            Participation::Full => true,
            Participation::KeyCheck { answers } => answers.contains(&peer),
            Participation::JournalLost { answers, .. } => {
                answers.len() >= self.config.epoch.roster.quorum() || answers.contains_key(&peer)
            }
        }
    }

    /// Asks for blocks that are missing before a final one. If the member asked does not help, the
    /// next beat asks another.
    pub(super) fn ask_for_ancestors(&mut self) {
        if self.sync.asked.is_empty() {
            self.ask_next();
        }
    }

    /// Asks the member after the one that was asked last.
    fn ask_next(&mut self) {
        let others = self.others();
        let after = |peer: &&MemberIndex| Some(**peer) > self.sync.last;
        let next = others.iter().find(after).or(others.first()).copied();
        if let Some(peer) = next {
            self.ask(peer);
        }
    }

    /// Asks for everything that is missing here.
    fn ask(&mut self, peer: MemberIndex) {
        self.ask_from(peer, self.chain.first_unknown());
    }

    /// Asks for final blocks, and for certificates of view `from` and later ones.
    pub(super) fn ask_from(&mut self, peer: MemberIndex, from: u64) {
        if peer == self.me() {
            return;
        }
        // A repeated question keeps its nonce, because the answer may take longer than a beat.
        self.sync.questions += 1;
        let new = self.config.draw("question", self.sync.questions);
        let nonce = *self.sync.asked.entry(peer).or_insert(new);
        self.sync.last = Some(peer);
        let question = Body::SyncRequest {
            after: self.chain.tip.view,
            from,
            missing: self.chain.missing(),
            nonce,
        };
        let (_, frame) = self.seal(0, 0, question);
        self.out.push(Effect::Send { to: peer, frame });
    }

    /// The last round is final and adopted here.
    pub(super) fn all_rounds_applied(&mut self) {
        self.complete = true;
        self.lead = None;
        self.sync.complete_unsent = true;
        self.out.push(Effect::Report(Report::Complete));
    }

    /// Tells the others that the last round is adopted here, with the first beat after it. Not at
    /// once, because everybody is busy with that round then.
    pub(super) fn send_complete_to_all(&mut self) {
        if std::mem::take(&mut self.sync.complete_unsent) {
            // To each directly: messages of this kind are not passed on by gossip.
            self.send_complete(self.others());
        }
    }

    /// A member can be reached: it is told too, if the last round is adopted here.
    pub(super) fn send_complete_to(&mut self, peer: MemberIndex) {
        if self.complete && peer != self.me() {
            self.send_complete(vec![peer]);
        }
    }

    fn send_complete(&mut self, members: Vec<MemberIndex>) {
        let (_, frame) = self.seal(self.config.epoch.charter.rounds, 0, Body::Complete);
        let send = |to| Effect::Send {
            to,
            frame: frame.clone(),
        };
        self.out.extend(members.into_iter().map(send));
    }

    /// Another member has adopted the last round, so it has everything that is missing here.
    pub(super) fn receive_complete(&mut self, member: MemberIndex, round: u64) {
        let last = self.config.epoch.charter.rounds;
        if round != last || member == self.me() || !self.complete_members.insert(member) {
            return;
        }
        self.out
            .push(Effect::Report(Report::MemberComplete { member }));
        if self.chain.learned.round < last {
            self.sync.catching_up = true;
            self.ask_if_useful(member);
        }
    }

    /// Once per beat: asks again for what is missing.
    pub(super) fn repeat_questions(&mut self) {
        if self.sync.listening() {
            // Questions and answers may be lost: all whose answer is needed are asked.
            for peer in self.others() {
                if !self.answered_by(peer) {
                    self.ask(peer);
                }
            }
        }
        if self.sync.catching_up || self.chain.unresolved.is_some() {
            self.ask_next();
        }
    }
}

/// Whether these blocks continue a chain from `tip`, each the parent of the next, and the
/// certificate makes the last of them final.
fn proves(blocks: &[Block], tip: &Hash, proof: &Certificate) -> bool {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
        return false;
    };
    let linked = |pair: &[Block]| pair[1].parent == pair[0].hash();
    first.parent == *tip
        && blocks.windows(2).all(linked)
        && proof.verdict == Verdict::Final(last.hash())
}
