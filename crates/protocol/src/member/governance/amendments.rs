//! Changes of the agreement: approvals are exchanged, a lead proposes what enough members approve,
//! and the epoch ends when that is final. `approvals` keeps who approves what.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::change::ChangeError;
use crate::codec;
use crate::effects::{Effect, Report};
use crate::hash::Hash;
use crate::identity::{PublicKey, Signature};
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::stage::BlockDraft;
use crate::member::governance::approvals::{ApprovalWord, Approvals, KEPT, KEPT_BYTES};
use crate::member::{ByMember, Config, Member};
use crate::message::{Amendment, Block, Body, Change, Content};
use crate::parameters::Checkpoint;
use crate::roster::MemberIndex;
use crate::time::Time;

/// Beats after which amendments and approvals are sent again.
const REPEAT: u32 = 4;

/// Most amendments of one member whose refusal is reported in an epoch.
const REFUSED: u32 = 8;

/// The amendments that members approve.
#[derive(Default)]
pub(in crate::member) struct Amendments {
    /// Known ones that may follow this epoch, each with the member that sent it first.
    known: BTreeMap<Hash, (Amendment, MemberIndex)>,
    /// What members say of them.
    approvals: Approvals,
    /// Amendments that this member's institution approves, and whose new members have not all answered:
    /// each with the number that the approval will have.
    waiting: BTreeMap<Hash, u64>,
    /// Keys that are in no present roster, and whose nodes have answered.
    arrived: BTreeSet<PublicKey>,
    /// The keys that the network was last asked to report.
    awaited: Vec<PublicKey>,
    /// When an amendment of a member last made room for another one of it.
    replaced: ByMember<Time>,
    /// How many amendments of members were refused.
    refused: ByMember<u32>,
    /// One with enough approvals, which waits to be proposed and to become final.
    pending: Option<Hash>,
    /// Beats until the next repetition.
    pause: u32,
}

impl Amendments {
    /// Whether an amendment has enough approvals.
    pub(in crate::member) fn pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether there is something to send again, or an approval waits for a new member.
    pub(in crate::member) fn repeats(&self, me: MemberIndex) -> bool {
        !self.waiting.is_empty() || self.approvals.words_of(me).next().is_some()
    }

    /// The change with a known amendment, as it may follow the final round `after`.
    fn change(&self, hash: &Hash, after: Checkpoint) -> Option<Change> {
        let (amendment, _) = self.known.get(hash)?;
        Some(Change {
            amendment: amendment.clone(),
            after,
            approvals: self.approvals.standing(hash).into(),
        })
    }

    /// Whether enough of the approvals in a change stand, as far as this member knows, and those of all that
    /// it concerns: what was withdrawn does not count.
    fn approvals_stand(&self, config: &Config, change: &Change) -> Result<(), ChangeError> {
        let hash = change.amendment.hash();
        let withdrawn = change.approvals.iter().filter(|approval| {
            let last = self.approvals.last(approval.by, &hash);
            last.is_some_and(|word| !word.stands && word.number > approval.number)
        });
        let withdrawn: Vec<_> = withdrawn.map(|approval| approval.by).collect();
        let got = change.approvals.len() - withdrawn.len();
        let needed = change.amendment.needed(&config.epoch);
        let concerned = change.amendment.concerned(&config.epoch);
        let missing = concerned.iter().filter(|by| withdrawn.contains(by)).count();
        if got < needed {
            Err(ChangeError::Approvals { got, needed })
        } else if missing > 0 {
            Err(ChangeError::Consent { missing })
        } else {
            Ok(())
        }
    }

    /// Whether this member may vote for a change, beside the rules that hold for everybody.
    ///
    /// # Errors
    /// [`ChangeError`]: its program or its institution's node cannot follow it, or too few of its
    /// approvals stand.
    pub(in crate::member) fn accepts(
        &self,
        config: &Config,
        change: &Change,
    ) -> Result<(), ChangeError> {
        config.follows(&change.amendment)?;
        self.approvals_stand(config, change)
    }

    /// Keeps an amendment. Where its sender has sent many others, or long ones, those that nobody approves any
    /// more make room, once in a `pause`: every new one is shown to people. Gives those that did.
    ///
    /// # Errors
    /// [`ChangeError::Full`] or [`ChangeError::Large`].
    fn add(
        &mut self,
        from: MemberIndex,
        (hash, amendment): (Hash, Amendment),
        (now, pause): (Time, Duration),
    ) -> Result<Vec<Hash>, ChangeError> {
        let size = |amendment: &Amendment| codec::encode(amendment).len();
        let of_sender = |(_, (_, by)): &(&Hash, &(Amendment, MemberIndex))| *by == from;
        let sent = self.known.iter().filter(of_sender);
        let mut sent: Vec<_> = sent.map(|(hash, (of, _))| (*hash, size(of))).collect();
        let recent = self.replaced.get(&from);
        let recent = recent.is_some_and(|last| now < *last + pause);
        let useless = |(hash, _): &(Hash, usize)| {
            self.approvals.standing(hash).is_empty() && !self.waiting.contains_key(hash)
        };
        let mut gone = Vec::new();
        loop {
            let full = if sent.len() >= KEPT {
                ChangeError::Full { kept: KEPT }
            } else if sent.iter().map(|(_, size)| size).sum::<usize>() + size(&amendment)
                > KEPT_BYTES
            {
                ChangeError::Large { kept: KEPT_BYTES }
            } else {
                break;
            };
            match sent.iter().position(useless).filter(|_| !recent) {
                Some(at) => gone.push(sent.remove(at).0),
                None => return Err(full),
            }
        }
        if !gone.is_empty() {
            self.known.retain(|hash, _| !gone.contains(hash));
            self.replaced.insert(from, now);
        }
        self.known.insert(hash, (amendment, from));
        Ok(gone)
    }
}

impl Config {
    /// Whether this member can and may follow an amendment.
    pub(in crate::member) fn follows(&self, amendment: &Amendment) -> Result<(), ChangeError> {
        amendment.is_spoken(self.formats)?;
        let objection = self.examine.ask(amendment);
        objection.map_err(ChangeError::Objection)
    }
}

/// What members say of amendments, and which is proposed. Borrows what that depends on.
pub(in crate::member) struct Amending<'a> {
    config: &'a Config,
    now: Time,
    out: &'a mut Outbox,
    chain: &'a Chain,
    amendments: &'a mut Amendments,
    /// The last round is adopted here.
    complete: bool,
}

impl Member {
    /// Lends what amendments depend on.
    pub(in crate::member) fn amending(&mut self) -> Amending<'_> {
        Amending {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            amendments: &mut self.governance.amendments,
            complete: self.rounds.completion.reached,
        }
    }

    /// More is known of these amendments: reports them, and wakes up if one has enough approvals.
    pub(in crate::member) fn follow(&mut self, amendments: impl IntoIterator<Item = Hash>) {
        for hash in amendments {
            if self.amending().follow(hash) {
                self.wake();
            }
        }
    }

    /// An amendment that another member approves.
    pub(in crate::member) fn receive_amendment(&mut self, from: MemberIndex, amendment: Amendment) {
        let Some(hash) = self.amending().receive(from, amendment) else {
            return;
        };
        self.follow([hash]);
        self.amending().refuse_unspoken(from, hash);
    }
}

impl Amending<'_> {
    /// The new keys of an amendment whose nodes have not answered yet.
    fn awaits(&self, amendment: &Amendment) -> Vec<PublicKey> {
        let mut keys = amendment.new_keys(&self.config.epoch);
        keys.retain(|key| !self.amendments.arrived.contains(key));
        keys
    }

    /// This member's institution approves an amendment. Gives the one of which more is known now.
    pub(in crate::member) fn approve(&mut self, amendment: Amendment, number: u64) -> Option<Hash> {
        let (hash, me) = (amendment.hash(), self.config.me);
        let last = self.amendments.approvals.last(me, &hash);
        let waits = self.amendments.waiting.get(&hash);
        if last.is_some_and(|word| word.number >= number) || waits.is_some_and(|of| *of >= number) {
            return None;
        }
        let checked = amendment.check(&self.config.epoch);
        let known = self.amendments.known.contains_key(&hash);
        let room = last.is_some_and(|word| word.stands) || self.amendments.approvals.has_room(me);
        let room = if room {
            Ok(())
        } else {
            Err(ChangeError::Full { kept: KEPT })
        };
        let checked = checked
            .and_then(|()| self.config.follows(&amendment))
            .and(room);
        let kept = checked.and_then(|()| {
            if known {
                Ok(())
            } else {
                self.keep_amendment(me, hash, amendment)
            }
        });
        if let Err(why) = kept {
            self.out.refuse(me, 0, why.into());
            return None;
        }
        self.amendments.waiting.insert(hash, number);
        self.sign_approvals();
        if self.amendments.waiting.contains_key(&hash) {
            self.send_waiting(&self.config.others());
        }
        Some(hash)
    }

    /// This member's institution does not approve an amendment any more. Gives the one of
    /// which more is known now.
    pub(in crate::member) fn withdraw(&mut self, hash: Hash, number: u64) -> Option<Hash> {
        self.amendments.waiting.remove(&hash);
        let last = self.amendments.approvals.last(self.config.me, &hash);
        if last.is_some_and(|word| word.number >= number) {
            return None;
        }
        self.say(hash, number, false);
        Some(hash)
    }

    /// A node with this key answers. Gives the amendments of which more is known now.
    pub(in crate::member) fn arrived(&mut self, key: PublicKey) -> Vec<Hash> {
        // Only keys that a known amendment names, so that nobody can fill the set.
        if !self.amendments.awaited.contains(&key) || !self.amendments.arrived.insert(key) {
            return Vec::new();
        }
        self.sign_approvals();
        let names = |amendment: &Amendment| amendment.silos.iter().any(|silo| silo.key == key);
        let known = self.amendments.known.iter();
        let of_key = known.filter(|(_, (amendment, _))| names(amendment));
        of_key.map(|(hash, _)| *hash).collect()
    }

    /// Signs the approvals whose new members have all answered: this member itself, or others of which
    /// one is honest, because not everybody can reach everybody.
    fn sign_approvals(&mut self) {
        let waiting: Vec<_> = self
            .amendments
            .waiting
            .iter()
            .map(|(a, b)| (*a, *b))
            .collect();
        for (hash, number) in waiting {
            let Some((amendment, _)) = self.amendments.known.get(&hash) else {
                continue;
            };
            let others = self.amendments.approvals.standing(&hash).len();
            let heard = others > self.config.epoch.roster.faulty();
            if heard || self.awaits(amendment).is_empty() {
                self.amendments.waiting.remove(&hash);
                self.say(hash, number, true);
            }
        }
    }

    /// Signs and sends a word about an amendment.
    fn say(&mut self, hash: Hash, number: u64, stands: bool) {
        let (message, _) = self.config.sign(0, 0, approval(hash, number, stands));
        let word = ApprovalWord {
            number,
            stands,
            signature: message.signature,
        };
        let me = self.config.me;
        self.amendments.approvals.add(me, hash, word);
        self.send(&self.config.others());
    }

    fn keep_amendment(
        &mut self,
        from: MemberIndex,
        hash: Hash,
        amendment: Amendment,
    ) -> Result<(), ChangeError> {
        let pause = self.config.epoch.heartbeat() * REPEAT;
        let when = (self.now, pause);
        let gone = self.amendments.add(from, (hash, amendment), when)?;
        for amendment in gone {
            let report = Report::AmendmentForgotten { amendment };
            self.out.push(Effect::Report(report));
        }
        Ok(())
    }

    /// Keeps an amendment that another member approves. Gives it, if it is new.
    fn receive(&mut self, from: MemberIndex, amendment: Amendment) -> Option<Hash> {
        let hash = amendment.hash();
        if self.amendments.known.contains_key(&hash) {
            return None;
        }
        let checked = amendment.check(&self.config.epoch);
        if let Err(why) = checked.and_then(|()| self.keep_amendment(from, hash, amendment)) {
            let refused = self.amendments.refused.entry(from).or_default();
            *refused = refused.saturating_add(1);
            if *refused <= REFUSED {
                self.out.refuse(from, 0, why.into());
            }
            return None;
        }
        Some(hash)
    }

    /// Refuses an amendment in a format that this program does not speak. It is known, so that people
    /// see it, and this member says that it cannot follow.
    fn refuse_unspoken(&mut self, from: MemberIndex, hash: Hash) {
        let Some((amendment, _)) = self.amendments.known.get(&hash) else {
            return;
        };
        if let Err(why) = amendment.is_spoken(self.config.formats) {
            self.out.refuse(from, 0, why.into());
        }
    }

    /// What another member says of an amendment, which may not be known yet. Gives the amendment, if
    /// that is news.
    pub(in crate::member) fn receive_approval(
        &mut self,
        by: MemberIndex,
        amendment: Hash,
        (number, stands): (u64, bool),
        signature: Signature,
    ) -> Option<Hash> {
        let word = ApprovalWord {
            number,
            stands,
            signature,
        };
        let new = self.amendments.approvals.add(by, amendment, word);
        if new {
            self.sign_approvals();
        }
        new.then_some(amendment)
    }

    /// A block with a change is acceptable: this member knows the amendment and its approvals now,
    /// and stays awake until one is final. Gives the amendment, if there is one.
    pub(in crate::member) fn note_change(&mut self, block: Hash) -> Option<Hash> {
        let change = self.chain.block(&block).and_then(Block::change)?;
        let (amendment, approvals) = (change.amendment.clone(), change.approvals.clone());
        let hash = amendment.hash();
        for approval in approvals.iter() {
            let word = ApprovalWord {
                number: approval.number,
                stands: true,
                signature: approval.signature,
            };
            self.amendments.approvals.add(approval.by, hash, word);
        }
        let me = self.config.me;
        if !self.amendments.known.contains_key(&hash) {
            // A member that proposes too much itself can still vote for what others propose.
            let _ = self.keep_amendment(me, hash, amendment);
        }
        Some(hash)
    }

    /// More is known of an amendment: reports it. Gives whether this member has to wake up, because
    /// one has enough approvals and the last round is over.
    fn follow(&mut self, hash: Hash) -> bool {
        self.await_keys();
        let Some(change) = self.amendments.change(&hash, self.chain.checkpoint()) else {
            return false;
        };
        // Only amendments that may follow this epoch are known.
        let epoch = &self.config.epoch;
        let objection = self.config.follows(&change.amendment);
        let enough = change.follows(epoch, &change.after).is_ok() && objection.is_ok();
        let needed = change.amendment.needed(epoch);
        let chosen = self.amendments.pending;
        self.out.push(Effect::Report(Report::Amendment {
            approved: change
                .approvals
                .iter()
                .map(|approval| approval.by)
                .collect(),
            awaits: self.awaits(&change.amendment),
            amendment: Box::new(change.amendment),
            needed,
            objection: objection.err().map(|why| why.to_string()),
        }));
        if enough || chosen == Some(hash) {
            self.choose();
        }
        chosen.is_none() && self.amendments.pending() && self.complete
    }

    /// Asks the network to report nodes with new keys of the known amendments.
    fn await_keys(&mut self) {
        let known = self.amendments.known.values();
        let keys: BTreeSet<_> = known
            .flat_map(|(amendment, _)| amendment.new_keys(&self.config.epoch))
            .collect();
        let keys: Vec<_> = keys.into_iter().collect();
        if keys != self.amendments.awaited {
            self.amendments.awaited = keys.clone();
            self.out.push(Effect::Await { keys });
        }
    }

    /// Chooses the amendment to be proposed: the one that was chosen before, as long as it may follow the
    /// last final round, otherwise the first with enough approvals that may.
    pub(in crate::member) fn choose(&mut self) {
        let (epoch, after) = (self.config.epoch.clone(), self.chain.checkpoint());
        let chosen = self.amendments.pending;
        if let Some(change) = chosen.and_then(|hash| self.amendments.change(&hash, after)) {
            let Err(why) = change.follows(&epoch, &change.after) else {
                return;
            };
            // A round that became final in the meantime is beyond its last one, or an approval was
            // withdrawn.
            self.out.refuse(self.config.me, 0, why.into());
        }
        let amendments = &*self.amendments;
        let follows = |hash: &&Hash| {
            let change = amendments.change(hash, after);
            change.is_some_and(|change| {
                change.follows(&epoch, &change.after).is_ok()
                    && self.config.follows(&change.amendment).is_ok()
            })
        };
        self.amendments.pending = amendments.known.keys().find(follows).copied();
    }

    /// As lead: drafts the change with the amendment that has enough approvals.
    pub(in crate::member) fn draft(&mut self) -> Option<BlockDraft> {
        // An approval may have given way to a later one of its member.
        self.choose();
        let (pending, after) = (self.amendments.pending, self.chain.checkpoint());
        let change = pending.and_then(|hash| self.amendments.change(&hash, after))?;
        Some(BlockDraft {
            content: Content::Change(Box::new(change)),
            parent: self.chain.tip.hash,
            proof: self.chain.tip.proof.clone(),
        })
    }

    /// Sends what this member's institution says of amendments.
    pub(in crate::member) fn send(&mut self, to: &[MemberIndex]) {
        let me = self.config.me;
        let own: Vec<_> = self.amendments.approvals.words_of(me).collect();
        for (hash, word) in own {
            let approvals = self.amendments.approvals.standing(&hash);
            let known = self.amendments.known.get(&hash).filter(|_| word.stands);
            let text = known.and_then(|(amendment, first)| {
                // One of those that approve sends the text, and only to members that may not have it.
                let teller = approvals.first().is_some_and(|first| first.by == me);
                (teller || *first == me).then(|| {
                    let text = Body::Amendment(Box::new(amendment.clone()));
                    self.config.sign(0, 0, text).1
                })
            });
            let (_, frame) = self
                .config
                .sign(0, 0, approval(hash, word.number, word.stands));
            for &to in to.iter().filter(|&&to| to != me) {
                let has = approvals.iter().any(|approval| approval.by == to);
                let frames = [text.as_ref().filter(|_| !has), Some(&frame)];
                for frame in frames.into_iter().flatten().cloned() {
                    self.out.push(Effect::Send { to, frame });
                }
            }
        }
        self.send_waiting(to);
    }

    /// Sends the texts that this member's institution approves and that wait for new members: the others
    /// have to see them, so that they approve them and wait for the same.
    fn send_waiting(&mut self, to: &[MemberIndex]) {
        let me = self.config.me;
        let waiting: Vec<_> = self.amendments.waiting.keys().copied().collect();
        for hash in waiting {
            let Some((amendment, _)) = self.amendments.known.get(&hash) else {
                continue;
            };
            let text = Body::Amendment(Box::new(amendment.clone()));
            let (_, frame) = self.config.sign(0, 0, text);
            let approvals = self.amendments.approvals.standing(&hash);
            let has = |to: &MemberIndex| approvals.iter().any(|approval| approval.by == *to);
            for &to in to.iter().filter(|&&to| to != me && !has(&to)) {
                let frame = frame.clone();
                self.out.push(Effect::Send { to, frame });
            }
        }
    }

    /// Every few heartbeats: sends again what this member's institution approves.
    pub(in crate::member) fn repeat(&mut self) {
        if !self.amendments.repeats(self.config.me) {
            return;
        }
        self.amendments.pause += 1;
        if self.amendments.pause >= REPEAT {
            self.amendments.pause = 0;
            self.send(&self.config.others());
        }
    }
}

/// What a member signs that approves an amendment, or does not any more.
fn approval(amendment: Hash, number: u64, stands: bool) -> Body {
    Body::Approval {
        amendment,
        number,
        stands,
    }
}
