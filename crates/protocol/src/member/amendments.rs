//! Changes of the agreement: approvals are exchanged, a lead proposes what enough members approve,
//! and the epoch ends when that is final.

use std::collections::{BTreeMap, BTreeSet};

use super::{ByMember, Member};
use crate::charter::Checkpoint;
use crate::effects::{Effect, Record, Report};
use crate::hash::Hash;
use crate::identity::Signature;
use crate::message::{Amendment, Block, Body, Change, Content, Passage};
use crate::roster::MemberIndex;

/// Most amendments of one member that are kept, and most approvals.
const KEPT: usize = 2;
/// Beats after which amendments and approvals are sent again.
const REPEAT: u32 = 4;

/// The amendments that members approve.
#[derive(Default)]
pub(super) struct Amendments {
    /// Those that this member's institution approves.
    own: BTreeSet<Hash>,
    /// Known ones that may follow this epoch, each with the member that sent it first.
    known: BTreeMap<Hash, (Amendment, MemberIndex)>,
    /// Approvals by members, newest last.
    approvals: ByMember<Vec<(Hash, Signature)>>,
    /// One with enough approvals, which waits to be proposed and to become final.
    pending: Option<Hash>,
    /// Beats until the next repetition.
    pause: u32,
}

impl Amendments {
    /// Whether an amendment has enough approvals.
    pub(super) fn pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether there is something to send again.
    pub(super) fn repeats(&self) -> bool {
        !self.own.is_empty()
    }

    /// The members that approve an amendment, with their signatures, ascending.
    fn approvals_of(&self, amendment: &Hash) -> Vec<(MemberIndex, Signature)> {
        let of = |approvals: &Vec<(Hash, Signature)>| {
            let found = approvals.iter().find(|(hash, _)| hash == amendment);
            found.map(|(_, signature)| *signature)
        };
        let all = self.approvals.iter();
        all.filter_map(|(by, approvals)| Some((*by, of(approvals)?)))
            .collect()
    }

    /// The change with a known amendment, as it may follow the final round `after`.
    fn change(&self, hash: &Hash, after: Checkpoint) -> Option<Change> {
        let (amendment, _) = self.known.get(hash)?;
        Some(Change {
            amendment: amendment.clone(),
            after,
            approvals: self.approvals_of(hash).into(),
        })
    }

    /// Keeps an approval; false if it is known.
    fn add_approval(&mut self, by: MemberIndex, amendment: Hash, signature: Signature) -> bool {
        let approvals = self.approvals.entry(by).or_default();
        if approvals.iter().any(|(known, _)| *known == amendment) {
            return false;
        }
        if approvals.len() == KEPT {
            approvals.remove(0);
        }
        approvals.push((amendment, signature));
        true
    }

    /// Keeps an amendment, unless its sender has sent many others; false if it is known or not kept.
    fn add(&mut self, from: MemberIndex, hash: Hash, amendment: Amendment) -> bool {
        let sent = self.known.values().filter(|(_, by)| *by == from).count();
        if self.known.contains_key(&hash) || sent >= KEPT {
            return false;
        }
        self.known.insert(hash, (amendment, from));
        true
    }
}

impl Member {
    /// Whether nothing is left to agree on: the last round is adopted, and no approved change waits.
    pub(super) fn at_rest(&self) -> bool {
        self.completion.reached && !self.amendments.pending()
    }

    /// This member's institution approves an amendment.
    pub(super) fn approve(&mut self, amendment: Amendment) {
        let hash = amendment.hash();
        if self.amendments.own.contains(&hash) {
            return;
        }
        let spoken = amendment.is_spoken(self.config.formats);
        if let Err(why) = amendment.check(&self.config.epoch).and(spoken) {
            return self.refuse(self.me(), 0, why.into());
        }
        let (message, _) = self.seal(0, 0, Body::Approval { amendment: hash });
        self.amendments.own.insert(hash);
        let me = self.me();
        self.amendments.add(me, hash, amendment);
        self.amendments.add_approval(me, hash, message.signature);
        self.send_amendments(&self.others());
        self.follow_amendment(hash);
    }

    /// An amendment that another member approves.
    pub(super) fn receive_amendment(&mut self, from: MemberIndex, amendment: Amendment) {
        let hash = amendment.hash();
        if self.amendments.known.contains_key(&hash) {
            return;
        }
        match amendment.check(&self.config.epoch) {
            Err(why) => self.refuse(from, 0, why.into()),
            Ok(()) => {
                let spoken = amendment.is_spoken(self.config.formats);
                if self.amendments.add(from, hash, amendment) {
                    self.follow_amendment(hash);
                    // It is known, so that people see it, and this member says that it cannot follow.
                    if let Err(why) = spoken {
                        self.refuse(from, 0, why.into());
                    }
                }
            }
        }
    }

    /// Another member approves an amendment, which may not be known yet.
    pub(super) fn receive_approval(
        &mut self,
        by: MemberIndex,
        amendment: Hash,
        signature: Signature,
    ) {
        if self.amendments.add_approval(by, amendment, signature) {
            self.follow_amendment(amendment);
        }
    }

    /// A block with a change is acceptable: this member knows the amendment and its approvals now,
    /// and stays awake until one is final.
    pub(super) fn note_change(&mut self, block: Hash) {
        let Some(change) = self.chain.block(&block).and_then(Block::change) else {
            return;
        };
        let (amendment, approvals) = (change.amendment.clone(), change.approvals.clone());
        let hash = amendment.hash();
        for &(by, signature) in approvals.iter() {
            self.amendments.add_approval(by, hash, signature);
        }
        let me = self.me();
        if !self.amendments.known.contains_key(&hash) {
            self.amendments.add(me, hash, amendment);
        }
        self.follow_amendment(hash);
    }

    /// More is known of an amendment: reports it, and wakes up if it has enough approvals.
    fn follow_amendment(&mut self, hash: Hash) {
        let Some(change) = self.amendments.change(&hash, self.chain.checkpoint()) else {
            return;
        };
        // Only amendments that may follow this epoch are known.
        let epoch = &self.config.epoch;
        let enough = change.follows(epoch, &change.after).is_ok()
            && change.amendment.is_spoken(self.config.formats).is_ok();
        let needed = change.amendment.needed(epoch);
        self.out.push(Effect::Report(Report::Amendment {
            approved: change.approvals.iter().map(|(by, _)| *by).collect(),
            amendment: Box::new(change.amendment),
            needed,
        }));
        if enough {
            self.choose_amendment();
        }
    }

    /// Chooses the amendment to be proposed: the one that was chosen before, as long as it may follow the
    /// last final round, otherwise the first with enough approvals that may.
    pub(super) fn choose_amendment(&mut self) {
        let (epoch, after) = (self.config.epoch.clone(), self.chain.checkpoint());
        let chosen = self.amendments.pending;
        if let Some(change) = chosen.and_then(|hash| self.amendments.change(&hash, after)) {
            let Err(why) = change.follows(&epoch, &change.after) else {
                return;
            };
            // A round that became final in the meantime is beyond its last one.
            self.refuse(self.me(), 0, why.into());
        }
        let amendments = &self.amendments;
        let follows = |hash: &&Hash| {
            let change = amendments.change(hash, after);
            change.is_some_and(|change| change.follows(&epoch, &change.after).is_ok())
        };
        self.amendments.pending = amendments.known.keys().find(follows).copied();
        if chosen.is_none() && self.amendments.pending() && self.completion.reached {
            self.wake();
        }
    }

    /// After the last round, views go on until the change is final.
    fn wake(&mut self) {
        self.view.entered = self.now;
        self.view.last_progress = self.now;
        self.next_beat = self.now + self.config.epoch.beat();
        self.begin_to_lead();
    }

    /// As lead: proposes the amendment that has enough approvals.
    pub(super) fn propose_change(&mut self) {
        // An approval may have given way to a later one of its member.
        self.choose_amendment();
        let (pending, after) = (self.amendments.pending, self.chain.checkpoint());
        let change = pending.and_then(|hash| self.amendments.change(&hash, after));
        let Some(change) = change else {
            return;
        };
        let (parent, proof) = (self.chain.tip.hash, self.chain.tip.proof.clone());
        self.propose(Content::Change(Box::new(change)), parent, proof);
    }

    /// Sends what this member's institution approves.
    pub(super) fn send_amendments(&mut self, to: &[MemberIndex]) {
        let own: Vec<_> = self.amendments.own.iter().copied().collect();
        for hash in own {
            let Some((amendment, first)) = self.amendments.known.get(&hash) else {
                continue;
            };
            let approvals = self.amendments.approvals_of(&hash);
            // One of those that approve sends the text, and only to members that may not have it.
            let teller = approvals.first().is_some_and(|(by, _)| *by == self.me());
            let teller = teller || *first == self.me();
            let text = teller.then(|| {
                let text = Body::Amendment(Box::new(amendment.clone()));
                self.seal(0, 0, text).1
            });
            let (_, approval) = self.seal(0, 0, Body::Approval { amendment: hash });
            let me = self.me();
            for &to in to.iter().filter(|&&to| to != me) {
                let has = approvals.iter().any(|(by, _)| *by == to);
                let frames = [text.as_ref().filter(|_| !has), Some(&approval)];
                for frame in frames.into_iter().flatten().cloned() {
                    self.out.push(Effect::Send { to, frame });
                }
            }
        }
    }

    /// Every few beats: sends again what this member's institution approves.
    pub(super) fn repeat_amendments(&mut self) {
        if !self.amendments.repeats() {
            return;
        }
        self.amendments.pause += 1;
        if self.amendments.pause >= REPEAT {
            self.amendments.pause = 0;
            self.send_amendments(&self.others());
        }
    }

    /// Somebody proved that the epoch is over.
    pub(super) fn pass(&mut self, passage: Passage) {
        if !self.follows_recovery(&passage) {
            return;
        }
        self.out.push(Effect::Persist(Record::Final {
            blocks: passage.blocks.clone(),
            proof: passage.proof.clone(),
        }));
        self.end_epoch(passage);
    }

    /// The epoch is over. The record of the final blocks is durable with this step.
    pub(super) fn end_epoch(&mut self, passage: Passage) {
        self.over = true;
        self.lead = None;
        self.out.push(Effect::EpochOver(Box::new(passage)));
    }

    /// Whether the agreement has changed, so that this member does nothing more.
    pub fn epoch_over(&self) -> bool {
        self.over
    }
}
