//! Catching up with what became final elsewhere; and members that only listen, because they cannot
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

/// Final blocks sent in one answer.
const BLOCKS: usize = 64;
/// Blocks sent in one answer that the asker misses before a final one.
const MISSING: usize = 16;
/// Certificates sent in one answer.
const CERTIFICATES: usize = 32;

pub(super) struct Sync {
    /// Whether this member was away and has not heard from anybody since.
    behind: bool,
    /// Questions that are not answered yet, by their nonce. An answer to anything else is ignored.
    asked: ByMember<u64>,
    /// Questions asked in this life.
    questions: u64,
    /// Who was asked last: the next one is asked next.
    last: Option<MemberIndex>,
    standing: Standing,
    /// This member has all rounds, and has not told everybody yet.
    pub(super) telling: bool,
}

/// Whether a member knows what it has signed.
enum Standing {
    /// It does, and takes part.
    Sure,
    /// It came as new: it asks others whether its key was used before.
    New {
        /// Who said that they know of nothing.
        answers: BTreeSet<MemberIndex>,
    },
    /// It lost its journal.
    Lost {
        /// The highest view that each member proved to be certified.
        answers: ByMember<u64>,
        /// What was last said of it.
        said: Option<(usize, Option<u64>)>,
    },
}

impl Standing {
    fn lost() -> Self {
        Self::Lost {
            answers: ByMember::new(),
            said: None,
        }
    }
}

/// What a member knows of its own past as it comes to life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    /// Nothing was ever kept.
    None,
    /// A journal.
    Kept,
    /// There was a journal.
    Lost,
}

impl Sync {
    pub(super) fn new(past: Past) -> Self {
        let standing = match past {
            Past::Kept => Standing::Sure,
            Past::Lost => Standing::lost(),
            Past::None => Standing::New {
                answers: BTreeSet::new(),
            },
        };
        Self {
            behind: past != Past::None,
            asked: ByMember::new(),
            questions: 0,
            last: None,
            standing,
            telling: false,
        }
    }

    /// Whether this member may neither vote, propose, contribute nor sign for a sheet.
    pub(super) fn listening(&self) -> bool {
        !matches!(self.standing, Standing::Sure)
    }

    /// Whether it lost its journal. It does not train then.
    pub(super) fn lost(&self) -> bool {
        matches!(self.standing, Standing::Lost { .. })
    }

    /// A question to a member that is gone gets no answer.
    pub(super) fn unreachable(&mut self, peer: MemberIndex) {
        self.asked.remove(&peer);
    }
}

impl Member {
    /// What became final after a view, and how views ended from `after` on, for a member that asks.
    pub(super) fn answer(
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
        // An answer ends with a block that has a certificate of its own.
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

    /// The newest thing that a member is known to have signed and must not have forgotten.
    fn signed_by(&self, member: MemberIndex) -> Option<&Message> {
        let vote = self.ballots.last_of(member);
        let proposal = self.proposed_by(member);
        let contribution = || self.round.contributed(member);
        vote.or(proposal).or_else(contribution)
    }

    /// A member's answer: final blocks that continue one's own chain, and the way to its view.
    pub(super) fn answered(&mut self, sender: MemberIndex, response: SyncResponse) {
        if self.sync.asked.get(&sender) != Some(&response.nonce) {
            return;
        }
        self.sync.asked.remove(&sender);
        self.sync.behind = false;
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
            self.certify(certificate);
        }
        // Whoever says that there is more and gives nothing is not asked again and again.
        self.sync.behind = ancestors || response.more && self.missing_from() > before;
        let forgotten = response
            .yours
            .is_some_and(|own| self.forgot(&own.message()));
        if forgotten {
            self.notice_used_key();
        }
        match &mut self.sync.standing {
            Standing::Lost { answers, .. } => {
                let answer = answers.entry(sender).or_default();
                *answer = highest.max(*answer);
            }
            Standing::New { answers } if !response.more => {
                answers.insert(sender);
            }
            _ => {}
        }
        self.recover();
        if self.sync.behind {
            self.ask(sender);
        }
    }

    /// Blocks between the last final one here and one that is final: each is the one that was
    /// missing. Whether some were taken and others are still missing.
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
            self.finalise(waiting);
        }
        false
    }

    /// How far this member knows how views ended: its last final view, and the first one after it
    /// of which it knows no certificate.
    fn missing_from(&self) -> (u64, u64) {
        (self.chain.tip.view, self.chain.first_unknown())
    }

    /// Whether a message of this member's own key is missing in its memory although it would still
    /// bind it. What it signed in views up to the last final block, or in earlier rounds, can do no
    /// harm any more.
    fn forgot(&mut self, own: &Message) -> bool {
        own.sender == self.me()
            && match own.body {
                Body::Contribution(_) => {
                    own.round >= self.round.number && !self.round.remembers(own)
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

    /// A message under one's own key came from outside.
    pub(super) fn heard_own(&mut self, message: &Message) {
        if self.sync.lost() || !self.forgot(message) {
            return;
        }
        if self.sync.listening() {
            self.notice_used_key();
            self.recover();
        } else if !std::mem::replace(&mut self.key_elsewhere, true) {
            self.out.push(Effect::Report(Report::KeyUsedElsewhere));
        }
    }

    /// Blocks became final: a member that came as new looks for its own signatures in them.
    pub(super) fn notice_own(&mut self, blocks: &[Block], proof: &Certificate) {
        if !matches!(self.sync.standing, Standing::New { .. }) {
            return;
        }
        let me = self.me();
        let learned = blocks.iter().filter_map(Block::learning);
        let signers = learned.flat_map(|learning| learning.inclusions.iter().map(|(by, _)| *by));
        let voters = proof.votes.iter().map(|vote| vote.member);
        if signers.chain(voters).any(|by| by == me) {
            self.notice_used_key();
        }
    }

    /// This member's key signed what its journal does not hold: it is a member without its journal.
    fn notice_used_key(&mut self) {
        if !self.sync.lost() {
            self.sync.standing = Standing::lost();
            self.lead = None;
            self.out.push(Effect::Report(Report::KeyUsedBefore));
        }
    }

    /// Whether a member that only listens may take part.
    ///
    /// One that came as new: f + 1 others, one of them honest, know nothing that it signed. One
    /// without its journal: it heard from q others how far views had come, and a block of a cycle
    /// after the next is final; no vote it may have given can matter then.
    pub(super) fn recover(&mut self) {
        let roster = &self.config.epoch.roster;
        let n = roster.len() as u64;
        match &mut self.sync.standing {
            Standing::Sure => {}
            Standing::New { answers } => {
                let needed = (roster.faulty() + 1).min(roster.len() - 1);
                if answers.len() >= needed {
                    self.take_part();
                }
            }
            Standing::Lost { answers, said } => {
                let needed = roster.quorum();
                let highest = answers.values().max().copied().unwrap_or(0);
                let until = (highest / n + 2) * n;
                let enough = answers.len() >= needed;
                if enough && self.chain.tip.view >= until {
                    self.out.push(Effect::Report(Report::TakingPart));
                    return self.take_part();
                }
                let now = (answers.len(), enough.then_some(until));
                if *said != Some(now) {
                    *said = Some(now);
                    self.out.push(Effect::Report(Report::Listening {
                        answers: now.0,
                        needed,
                        until: now.1,
                    }));
                }
            }
        }
    }

    /// From here on it votes, proposes and contributes.
    fn take_part(&mut self) {
        self.sync.standing = Standing::Sure;
        self.begin_to_lead();
    }

    /// A member can be reached that may know more: one that was away asks the first it reaches; one
    /// that only listens asks until enough have answered.
    pub(super) fn ask_first(&mut self, peer: MemberIndex) {
        let unasked = self.sync.behind && self.sync.asked.is_empty();
        if unasked || self.needs_answer_of(peer) {
            self.ask(peer);
        }
    }

    /// Whether a member that only listens wants to hear from this one now.
    fn needs_answer_of(&self, peer: MemberIndex) -> bool {
        if self.answered_by(peer) || self.sync.asked.contains_key(&peer) {
            return false;
        }
        let Standing::New { answers } = &self.sync.standing else {
            return true;
        };
        // Leads know what was signed in their views, though nobody else may.
        let view = self.view.number;
        let leads = [view, view + 1].map(|view| self.config.epoch.lead(view));
        let under_way = answers.len() + self.sync.asked.len();
        under_way <= self.config.epoch.roster.faulty() || leads.contains(&peer)
    }

    /// Whether a member that only listens has enough answers, or one of this member.
    fn answered_by(&self, peer: MemberIndex) -> bool {
        match &self.sync.standing {
            Standing::Sure => true,
            Standing::New { answers } => answers.contains(&peer),
            Standing::Lost { answers, .. } => {
                answers.len() >= self.config.epoch.roster.quorum() || answers.contains_key(&peer)
            }
        }
    }

    /// Blocks before a final one are missing here. Whoever is asked first may not have them, or
    /// may not say; with every beat the next one is asked.
    pub(super) fn ask_for_ancestors(&mut self) {
        if self.sync.asked.is_empty() {
            self.ask_next();
        }
    }

    fn ask_next(&mut self) {
        let others = self.others();
        let after = |peer: &&MemberIndex| Some(**peer) > self.sync.last;
        let next = others.iter().find(after).or(others.first()).copied();
        if let Some(peer) = next {
            self.ask(peer);
        }
    }

    /// Asks for final blocks, and for how views ended, from the first that is not known here.
    fn ask(&mut self, peer: MemberIndex) {
        self.ask_from(peer, self.chain.first_unknown());
    }

    /// Asks for final blocks, and for how views ended from this one on.
    pub(super) fn ask_from(&mut self, peer: MemberIndex, from: u64) {
        if peer == self.me() {
            return;
        }
        // A question that is asked again keeps its nonce: the answer may need longer than a beat.
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

    /// The last round is final and applied here.
    pub(super) fn completed(&mut self) {
        self.complete = true;
        self.lead = None;
        self.sync.telling = true;
        self.out.push(Effect::Report(Report::Complete));
    }

    /// With the beat after that everybody is told: who waits for others before it leaves need not
    /// wait for this member. Not at once, because everybody is busy finishing then.
    pub(super) fn tell_all_complete(&mut self) {
        if std::mem::take(&mut self.sync.telling) {
            // To each, not to all: nobody passes it on, so whoever is reached must hear it from here.
            self.say_complete(self.others());
        }
    }

    /// A member that was not there when everybody was told is told when it comes.
    pub(super) fn tell_complete(&mut self, peer: MemberIndex) {
        if self.complete && peer != self.me() {
            self.say_complete(vec![peer]);
        }
    }

    fn say_complete(&mut self, members: Vec<MemberIndex>) {
        let (_, frame) = self.seal(self.config.epoch.charter.rounds, 0, Body::Complete);
        let send = |to| Effect::Send {
            to,
            frame: frame.clone(),
        };
        self.out.extend(members.into_iter().map(send));
    }

    /// A member has all rounds; whoever has not may ask it for what is missing.
    pub(super) fn heard_complete(&mut self, member: MemberIndex, round: u64) {
        let last = self.config.epoch.charter.rounds;
        if round != last || member == self.me() || !self.completed.insert(member) {
            return;
        }
        self.out
            .push(Effect::Report(Report::MemberComplete { member }));
        if self.chain.learned.round < last {
            self.sync.behind = true;
            self.ask_first(member);
        }
    }

    /// Once per beat: asks again what was not answered.
    pub(super) fn ask_again(&mut self) {
        if self.sync.listening() {
            // Whoever was asked and did not answer may not have heard, or be gone: ask everybody.
            for peer in self.others() {
                if !self.answered_by(peer) {
                    self.ask(peer);
                }
            }
        }
        if self.sync.behind || self.chain.unresolved.is_some() {
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
