//! Going on without members that are gone for good: this member's standing, those of others, and the
//! recovery that follows when all that remain have signed.

use std::collections::{BTreeMap, BTreeSet};

use super::{ByMember, Member};
use crate::certificate::Verdict;
use crate::charter::Checkpoint;
use crate::effects::{Effect, Input, Record, Report};
use crate::envelope::{self, Opened};
use crate::hash::Hash;
use crate::identity::Signature;
use crate::message::{Block, Body, Message, Passage, Recovery, Standing};
use crate::mutation::{Mutation, broken};
use crate::recovery::{RecoveryError, ground, remaining};
use crate::roster::MemberIndex;
use crate::time::Time;

/// Beats after which a standing is sent again.
const REPEAT: u32 = 4;
/// Beats that a member waits for the outcomes of final rounds before it signs without them.
const FETCHES: u32 = 8;
/// Most sets of lost members for which standings of one member are kept.
const KEPT: usize = 2;

/// Members declared lost.
type Lost = Vec<MemberIndex>;

/// What members have signed about going on without others.
#[derive(Default)]
pub(super) struct Recoveries {
    /// What this member's institution wants and the member has not signed yet, and since when.
    wanted: Option<(Lost, Time)>,
    /// What this member has signed.
    own: BTreeMap<Lost, Message>,
    /// The standings of members, this one included.
    heard: BTreeMap<Lost, ByMember<(Standing, Signature)>>,
    /// Recoveries that leave this member out and were reported.
    told: BTreeSet<Hash>,
    pause: u32,
}

impl Recoveries {
    /// Whether this member has signed, and so does nothing more in this epoch.
    pub(super) fn signed(&self) -> bool {
        !self.own.is_empty() && !broken(Mutation::ActsAfterStanding)
    }

    /// Whether timers have to run.
    pub(super) fn runs(&self) -> bool {
        self.signed() || self.wanted.is_some()
    }

    /// Takes back what this member signed before a restart.
    pub(super) fn restore(&mut self, message: Message) {
        if let Body::Standing(standing) = &message.body {
            let lost = standing.lost.clone();
            self.add(message.sender, (**standing).clone(), message.signature);
            self.own.insert(lost, message);
        }
    }

    /// Keeps a standing; false if it is known, or the member has signed for other sets too.
    fn add(&mut self, by: MemberIndex, standing: Standing, signature: Signature) -> bool {
        let of_it = self.heard.values().filter(|all| all.contains_key(&by));
        let known = self.heard.get(&standing.lost);
        if known.is_some_and(|all| all.contains_key(&by)) || of_it.count() >= KEPT {
            return false;
        }
        let all = self.heard.entry(standing.lost.clone()).or_default();
        all.insert(by, (standing, signature));
        true
    }
}

impl Member {
    /// This member's institution wants to go on without members that are gone.
    pub(super) fn recover(&mut self, lost: Lost) {
        if self.recoveries.own.contains_key(&lost) {
            return self.follow_recovery(&lost);
        }
        let checked = remaining(&self.config.epoch, &lost);
        let checked = checked.and_then(|remaining| match remaining.contains(&self.me()) {
            true => Ok(()),
            false => Err(RecoveryError::Itself),
        });
        match checked {
            Ok(()) => self.recoveries.wanted = Some((lost, self.now)),
            Err(why) => self.refuse(self.me(), 0, crate::change::ChangeError::from(why).into()),
        }
    }

    /// Whether this member takes an input although it has signed a standing: only what leads out of
    /// the epoch, and questions of others that still have to catch up.
    pub(super) fn heeds(&self, input: &Input) -> bool {
        match input {
            Input::Opened(Opened::Message(message)) => {
                matches!(message.body, Body::Standing(_) | Body::SyncRequest { .. })
            }
            Input::Opened(Opened::Passage(_))
            | Input::Up { .. }
            | Input::Down { .. }
            | Input::Recover { .. }
            | Input::Time => true,
            _ => false,
        }
    }

    /// Signs what the institution wants, as soon as everything final is adopted or cannot be.
    pub(super) fn sign_standing(&mut self) {
        let Some((_, since)) = &self.recoveries.wanted else {
            return;
        };
        let late = self.now >= *since + self.config.epoch.beat() * FETCHES;
        let adopted = self.adoption.waiting.is_empty() || late;
        if self.adoption.is_running() || !adopted {
            return;
        }
        let Some((lost, _)) = self.recoveries.wanted.take() else {
            return;
        };
        let tip = &self.chain.tip;
        let notarised = self.chain.newest_notarised();
        let standing = Standing {
            lost: lost.clone(),
            adopted: self.adopted_checkpoint(),
            view: tip.view,
            block: tip.hash,
            notarised: notarised.map_or(0, |certificate| certificate.view),
        };
        let (message, _) = self.seal(0, 0, standing.body());
        self.out
            .push(Effect::Persist(Record::Standing(message.clone())));
        self.lead = None;
        // Its own votes under way count no more.
        self.loopback.clear();
        self.early.clear();
        let me = self.me();
        self.recoveries.add(me, standing, message.signature);
        self.recoveries.own.insert(lost.clone(), message);
        self.send_standings(&self.others());
        self.follow_recovery(&lost);
    }

    /// The last round that this member has adopted.
    fn adopted_checkpoint(&self) -> Checkpoint {
        let applied = self.adoption.applied;
        let began = self.config.epoch.began;
        let newest = self.chain.checkpoint();
        let of_history = || {
            let history = self.chain.history.iter().map(|(block, _)| block);
            let of_round = |block: &&Block| block.learning().is_some_and(|of| of.round == applied);
            let block = history.rev().find(of_round)?;
            let outcome = block.learning()?.outcome;
            let (round, block) = (applied, block.hash());
            Some(Checkpoint {
                round,
                block,
                outcome,
            })
        };
        match applied {
            _ if applied >= newest.round => newest,
            _ if applied == began.round => began,
            // One that passed into this epoch and has nothing of it yet stands before its beginning.
            _ => of_history().unwrap_or(Checkpoint {
                round: applied,
                block: Hash([0; 32]),
                outcome: Hash([0; 32]),
            }),
        }
    }

    /// Another member's standing.
    pub(super) fn receive_standing(
        &mut self,
        by: MemberIndex,
        standing: Standing,
        signature: Signature,
    ) {
        let remaining = remaining(&self.config.epoch, &standing.lost);
        match remaining {
            Ok(remaining) if remaining.contains(&by) => {
                let lost = standing.lost.clone();
                if self.recoveries.add(by, standing, signature) {
                    self.follow_recovery(&lost);
                }
            }
            Ok(_) => {
                let why = crate::change::ChangeError::from(RecoveryError::Itself);
                self.refuse(by, 0, why.into());
            }
            Err(why) => self.refuse(by, 0, crate::change::ChangeError::from(why).into()),
        }
    }

    /// More is known of who wants to go on without whom: reports it, and goes on if all have signed.
    fn follow_recovery(&mut self, lost: &Lost) {
        let Ok(remaining) = remaining(&self.config.epoch, lost) else {
            return;
        };
        let Some(standings) = self.recoveries.heard.get(lost) else {
            return;
        };
        let adopted = standings
            .values()
            .map(|(standing, _)| standing.adopted.round);
        let newest = standings.values().map(|(standing, _)| standing.view).max();
        let notarised = standings
            .values()
            .map(|(standing, _)| standing.notarised)
            .max();
        self.out.push(Effect::Report(Report::Recovery {
            lost: lost.clone(),
            signed: standings.keys().copied().collect(),
            needed: remaining.len(),
            round: adopted.max().unwrap_or(0),
            notarised: notarised.filter(|view| Some(*view) > newest),
        }));
        if standings.len() < remaining.len() || !self.recoveries.own.contains_key(lost) {
            return;
        }
        if let Some(passage) = self.recovered(lost) {
            let frame = envelope::seal_passage(&self.config.epoch, &passage);
            let me = self.me();
            for to in remaining.into_iter().filter(|&to| to != me) {
                let frame = frame.clone();
                self.out.push(Effect::Send { to, frame });
            }
            self.pass(passage);
        }
    }

    /// The end of the epoch that follows from the standings of all that remain, if this member has the
    /// newest final block and its proof. Otherwise one that has them sends it.
    fn recovered(&self, lost: &Lost) -> Option<Passage> {
        let epoch = &self.config.epoch;
        let standings = self.recoveries.heard.get(lost)?;
        let ground = ground(epoch, standings.values().map(|(standing, _)| standing)).ok()?;
        let history = &self.chain.history;
        let (mut head, mut proof) = (Vec::new(), Recovery::no_proof(epoch));
        if ground.view > 0 {
            let last = history
                .iter()
                .rposition(|(block, _)| block.view == ground.view)?;
            let certificate = history[last].1.as_ref()?;
            if certificate.verdict != Verdict::Final(ground.block) {
                return None;
            }
            proof = certificate.clone();
            let first = match ground.after == epoch.began {
                true => 0,
                false => history.iter().rposition(|(block, _)| {
                    block
                        .learning()
                        .is_some_and(|of| of.round == ground.after.round)
                })?,
            };
            let blocks = history.get(first..=last)?.iter();
            head = blocks.map(|(block, _)| block.clone()).collect();
        }
        let block = Recovery::block(epoch, lost, &ground, standings, head);
        // It is what the others check.
        epoch.next(&block).ok()?;
        let blocks = vec![block];
        Some(Passage { blocks, proof })
    }

    /// Sends what this member has signed to those that have to sign too.
    pub(super) fn send_standings(&mut self, to: &[MemberIndex]) {
        let own: Vec<_> = self.recoveries.own.values().cloned().collect();
        for message in own {
            let Body::Standing(standing) = &message.body else {
                continue;
            };
            let frame = envelope::reseal(&self.config.epoch, &message);
            for &to in to.iter().filter(|to| !standing.lost.contains(to)) {
                let frame = frame.clone();
                self.out.push(Effect::Send { to, frame });
            }
        }
    }

    /// Every few beats: sends again what this member has signed.
    pub(super) fn repeat_standings(&mut self) {
        self.recoveries.pause += 1;
        if self.recoveries.pause >= REPEAT {
            self.recoveries.pause = 0;
            self.send_standings(&self.others());
        }
    }

    /// Whether this member follows a recovery: one that it signed. One that declares it lost is only
    /// reported, unless its institution has said to follow it.
    pub(super) fn follows_recovery(&mut self, passage: &Passage) -> bool {
        let (Some(recovery), Some(block)) = (passage.recovery(), passage.blocks.first()) else {
            return true;
        };
        if !recovery.lost.contains(&self.me()) || self.broken(Mutation::LostFollows) {
            return true;
        }
        let id = block.hash();
        let follow = self.config.follow.as_deref();
        if follow.is_some_and(|follow| format!("{id:#}").starts_with(follow)) {
            return true;
        }
        if self.recoveries.told.insert(id) {
            self.out.push(Effect::Report(Report::LeftBehind {
                recovery: id,
                by: recovery.standings.iter().map(|(by, ..)| *by).collect(),
                round: recovery.after.round,
            }));
        }
        false
    }
}
