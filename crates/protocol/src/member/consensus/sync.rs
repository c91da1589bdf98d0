//! Catching up with what became final elsewhere: questions and answers.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::certificate::{Certificate, Verdict};
use crate::codec;
use crate::effects::Effect;
use crate::envelope;
use crate::hash::Hash;
use crate::member::consensus::ballots::Ballots;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::participation::{JournalState, ParticipationState};
use crate::member::consensus::payload::BlockPayload;
use crate::member::consensus::views::View;
use crate::member::{ByMember, Config};
use crate::message::{Block, Body, Message, Reminder, SyncResponse};
use crate::roster::MemberIndex;

/// Most final blocks in one answer.
const BLOCKS: usize = 64;
/// Most blocks in one answer that the asker misses before a final one.
const MISSING: usize = 16;
/// Most certificates in one answer.
const CERTIFICATES: usize = 32;

/// What a member asks others.
pub(in crate::member) struct Sync {
    /// Others are known, or likely, to have final blocks or certificates that are missing here.
    pub(in crate::member) catching_up: bool,
    /// The nonces of questions that are not answered yet. Other answers are ignored.
    pub(in crate::member) asked: ByMember<u64>,
    /// Questions made since the start.
    questions: u64,
    /// The question made last.
    question: Option<Question>,
    /// The member that was asked last; the one after it is asked next.
    last: Option<MemberIndex>,
}

/// What is asked for: the final blocks after this view, how views ended from this one on, and the
/// blocks that lead to this one.
type Asks = (u64, u64, Option<Hash>);

/// A question, as it was signed. It goes to all that are asked the same in a row: a new member of a
/// large federation asks many at once, and signs once.
struct Question {
    asks: Asks,
    nonce: u64,
    frame: Bytes,
    /// Members that may have been asked with its nonce.
    to: BTreeSet<MemberIndex>,
}

impl Sync {
    /// A member that was away asks others what it missed.
    pub(in crate::member) fn new(journal: JournalState) -> Self {
        Self {
            catching_up: journal != JournalState::Empty,
            asked: ByMember::new(),
            questions: 0,
            question: None,
            last: None,
        }
    }

    /// A member cannot be reached: its answer is not waited for.
    pub(in crate::member) fn unreachable(&mut self, peer: MemberIndex) {
        self.asked.remove(&peer);
    }
}

/// Asking others what became final, and answering them. Borrows what that depends on.
pub(in crate::member) struct Syncing<'a> {
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a mut Chain,
    pub(in crate::member) ballots: &'a Ballots,
    pub(in crate::member) view: &'a View,
    pub(in crate::member) payload: &'a dyn BlockPayload,
    pub(in crate::member) sync: &'a mut Sync,
    pub(in crate::member) participation: &'a ParticipationState,
}

impl Syncing<'_> {
    /// Answers a member that asks what became final after view `after`, how views ended from `from`
    /// on, and which blocks lead to `missing`.
    pub(in crate::member) fn answer(
        &mut self,
        asker: MemberIndex,
        (after, from): (u64, u64),
        missing: Option<Hash>,
        nonce: u64,
    ) {
        if asker == self.config.me {
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
        let (certificates, more): (Vec<_>, bool) = if count == newer.len() {
            let above = above.by_ref().take(CERTIFICATES).cloned();
            let certified = self.chain.certified.iter().map(|(known, _)| known.clone());
            (certified.chain(above).collect(), false)
        } else {
            (Vec::new(), true)
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
        let (_, frame) = self
            .config
            .sign(0, 0, Body::SyncResponse(Box::new(response)));
        self.out.push(Effect::Send { to: asker, frame });
    }

    /// The newest message that a member is known to have signed and must not forget.
    fn signed_by(&self, member: MemberIndex) -> Option<&Message> {
        let vote = self.ballots.last_of(member);
        let proposal = self.view.proposed_by(member);
        let payload = || self.payload.signed_by(member);
        vote.or(proposal).or_else(payload)
    }

    /// Whether this answers a question of this member, which is not open any more then.
    pub(in crate::member) fn takes(
        &mut self,
        sender: MemberIndex,
        response: &SyncResponse,
    ) -> bool {
        let answers = self.sync.asked.get(&sender) == Some(&response.nonce);
        if !answers {
            return false;
        }
        self.sync.asked.remove(&sender);
        self.sync.catching_up = false;
        true
    }

    /// Keeps blocks between the last final block here and a later final one, as long as each is the
    /// one that is missing. Gives whether there were some.
    pub(in crate::member) fn keep_missing(&mut self, blocks: Vec<Block>) -> bool {
        let mut taken = false;
        for block in blocks {
            let hash = block.hash();
            if self.chain.missing() != Some(hash) {
                break;
            }
            self.chain.keep(hash, block);
            taken = true;
        }
        taken
    }

    /// What is missing here: everything after the last final view, and certificates from the first
    /// later view of which none is known.
    pub(in crate::member) fn missing_from(&self) -> (u64, u64) {
        (self.chain.tip.view, self.chain.first_unknown())
    }

    /// Whether this member only listens and needs an answer of `peer` now.
    fn needs_answer_of(&self, peer: MemberIndex) -> bool {
        if self.answered_by(peer) || self.sync.asked.contains_key(&peer) {
            return false;
        }
        let ParticipationState::KeyCheck { answers, .. } = &self.participation else {
            return true;
        };
        // Votes, proposals and contributions may have reached only the leads of these views.
        let view = self.view.number;
        let leads = [view, view + 1].map(|view| self.chain.lead(&self.config.epoch, view));
        let under_way = answers.len() + self.sync.asked.len();
        under_way <= self.config.epoch.roster.faulty() || leads.contains(&peer)
    }

    /// Whether no answer of `peer` is needed for taking part.
    fn answered_by(&self, peer: MemberIndex) -> bool {
        let quorum = self.config.epoch.roster.quorum();
        self.participation.is_answered_by(peer, quorum)
    }

    /// A member has everything that is missing here.
    pub(in crate::member) fn is_behind(&mut self, peer: MemberIndex) {
        self.sync.catching_up = true;
        self.ask_if_useful(peer);
    }

    /// A member can be reached: asks it, if this member is catching up and no question is open, or
    /// if it only listens and needs more answers.
    pub(in crate::member) fn ask_if_useful(&mut self, peer: MemberIndex) {
        let unasked = self.sync.catching_up && self.sync.asked.is_empty();
        if unasked || self.needs_answer_of(peer) {
            self.ask(peer);
        }
    }

    /// Asks for blocks that are missing before a final one. If the member asked does not help, the
    /// next heartbeat asks another.
    pub(in crate::member) fn ask_for_ancestors(&mut self) {
        if self.sync.asked.is_empty() {
            self.ask_next();
        }
    }

    /// Asks the member after the one that was asked last.
    fn ask_next(&mut self) {
        let others = self.config.others();
        let after = |peer: &&MemberIndex| Some(**peer) > self.sync.last;
        let next = others.iter().find(after).or(others.first()).copied();
        if let Some(peer) = next {
            self.ask(peer);
        }
    }

    /// Asks for everything that is missing here.
    pub(in crate::member) fn ask(&mut self, peer: MemberIndex) {
        self.ask_from(peer, self.chain.first_unknown());
    }

    /// Asks for final blocks, and for certificates of view `from` and later ones.
    pub(in crate::member) fn ask_from(&mut self, peer: MemberIndex, from: u64) {
        if peer == self.config.me {
            return;
        }
        self.sync.last = Some(peer);
        let frame = self.question(peer, from);
        self.out.push(Effect::Send { to: peer, frame });
    }

    /// The question for a member. One that is repeated keeps its nonce, because the answer may take
    /// longer than a heartbeat; one that was answered has a new nonce, so that the old answer is not taken
    /// again.
    fn question(&mut self, peer: MemberIndex, from: u64) -> Bytes {
        let open = self.sync.asked.get(&peer).copied();
        let asks = (self.chain.tip.view, from, self.chain.missing());
        if let Some(last) = &mut self.sync.question
            && last.asks == asks
            && open.map_or(!last.to.contains(&peer), |nonce| nonce == last.nonce)
        {
            last.to.insert(peer);
            self.sync.asked.insert(peer, last.nonce);
            return last.frame.clone();
        }
        let nonce = open.unwrap_or_else(|| {
            self.sync.questions += 1;
            self.config.draw("question", self.sync.questions)
        });
        self.sync.asked.insert(peer, nonce);
        // A nonce that is open already may have gone to anybody.
        let to = match open {
            Some(_) => self.config.others().into_iter().collect(),
            None => BTreeSet::from([peer]),
        };
        let (after, from, missing) = asks;
        let body = Body::SyncRequest {
            after,
            from,
            missing,
            nonce,
        };
        let (_, frame) = self.config.sign(0, 0, body);
        self.sync.question = Some(Question {
            asks,
            nonce,
            frame: frame.clone(),
            to,
        });
        frame
    }

    /// Once per heartbeat: asks again for what is missing.
    pub(in crate::member) fn repeat(&mut self) {
        if self.participation.listening() {
            // Questions and answers may be lost: all whose answer is needed are asked.
            for peer in self.config.others() {
                if !self.answered_by(peer) {
                    self.ask(peer);
                }
            }
        }
        let unsettled = !self.chain.settled();
        if self.sync.catching_up || self.chain.unresolved.is_some() || unsettled {
            self.ask_next();
        }
    }
}

/// Whether these blocks continue a chain from `tip`, each the parent of the next, and the
/// certificate makes the last of them final.
pub(in crate::member) fn proves(blocks: &[Block], tip: &Hash, proof: &Certificate) -> bool {
    let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
        return false;
    };
    let linked = |pair: &[Block]| pair[1].parent == pair[0].hash();
    first.parent == *tip
        && blocks.windows(2).all(linked)
        && proof.verdict == Verdict::Final(last.hash())
}
