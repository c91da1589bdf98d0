//! The epochs of a run: changes of the agreement, and members that pass from one to the next.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::message::{Amendment, Passage};
use protocol::parameters::{Epoch, Privacy, Sums};
use protocol::roster::Silo;
use protocol::{Epochs, MemberIndex, SecretKey, envelope};

use crate::byzantine::ByzantineMember;
use crate::invariants::Monitor;
use crate::random::Random;

use super::super::changes::BareChange;
use super::super::faults::bearable;
use super::{BareEvent, BareNode, FailureKind, HEARTBEAT, Simulator, violated};

/// An epoch of a run.
pub(super) struct EpochRun {
    pub(super) epoch: Arc<Epoch>,
    pub(super) monitor: Monitor,
    /// The node of each member.
    pub(super) nodes: Vec<usize>,
    /// The sealed proof of its end.
    passage: Option<Bytes>,
    /// The nodes in whose journals its beginning is.
    reached: BTreeSet<usize>,
}

impl Simulator<'_> {
    /// The newest epoch that any member has reached.
    pub(super) fn newest(&self) -> &EpochRun {
        &self.epochs[self.epochs.len() - 1]
    }

    /// The epoch that a node is in, and its position there. Nodes that run a member have one.
    pub(super) fn seat(&self, at: usize) -> Option<(&EpochRun, MemberIndex)> {
        let run = &self.epochs[self.nodes[at].epoch];
        let first = self.first_of(at);
        let seat = run.nodes.iter().position(|&node| node == first)?;
        Some((run, MemberIndex(seat as u16)))
    }

    /// A node's position in the epoch that it is in.
    pub(super) fn me(&self, at: usize) -> MemberIndex {
        let seat = self.seat(at).expect("only members run");
        seat.1
    }

    /// The epoch that a node is in.
    pub(super) fn epoch_of(&self, at: usize) -> &Arc<Epoch> {
        &self.epochs[self.nodes[at].epoch].epoch
    }

    pub(super) fn monitor(&mut self, at: usize) -> &mut Monitor {
        &mut self.epochs[self.nodes[at].epoch].monitor
    }

    /// A node's key in the epoch that it is in.
    pub(super) fn key(&self, at: usize) -> SecretKey {
        let roster = &self.epoch_of(at).roster;
        let keys = &self.nodes[at].keys;
        let current = keys
            .iter()
            .find(|key| roster.position(&key.public()).is_some());
        current.unwrap_or(&keys[0]).clone()
    }

    /// Adds an epoch, if it is new.
    pub(super) fn add_epoch(&mut self, epoch: Arc<Epoch>) {
        let node_of = |silo: &Silo| {
            let owns = |node: &BareNode| node.keys.iter().any(|key| key.public() == silo.key);
            self.nodes.iter().position(owns)
        };
        let nodes: Vec<_> = epoch.roster.silos().iter().filter_map(node_of).collect();
        let members = nodes.iter().zip(epoch.roster.members());
        let faulty: BTreeSet<_> = members
            .filter(|(node, _)| self.byzantine.contains_key(&MemberIndex(**node as u16)))
            .map(|(_, member)| member)
            .collect();
        let rounds = epoch.protocol.rounds as usize;
        if self.ended.trainings.len() < rounds {
            self.ended.trainings.resize(rounds, 0);
        }
        self.epochs.push(EpochRun {
            monitor: Monitor::new(epoch.clone(), faulty, Duration::ZERO),
            epoch,
            nodes,
            passage: None,
            reached: BTreeSet::new(),
        });
    }

    /// The end of an epoch became durable at a node.
    pub(super) fn add_passage(&mut self, at: usize, passage: &Passage) -> Result<(), FailureKind> {
        let from = self.nodes[at].epoch;
        let next = self.epochs[from].epoch.next(&passage.blocks[0]);
        let next = next.map_err(|why| FailureKind::Chains(why.to_string()))?;
        let known = self.epochs.get(from + 1).map(|known| known.epoch.id);
        if known != Some(next.id) {
            match known {
                Some(_) if self.is_lost(from + 1) => self.epochs.truncate(from + 1),
                Some(id) => {
                    return Err(FailureKind::Chains(format!(
                        "epoch {from} ended with block {id} and with block {}",
                        next.id
                    )));
                }
                None => {}
            }
            self.check_recovery(passage)?;
            self.check_words(from, passage)?;
            let frame = envelope::sign_passage(&self.epochs[from].epoch, passage);
            self.epochs[from].passage = Some(frame);
            self.add_epoch(Arc::new(next));
        }
        self.epochs[from + 1].reached.insert(at);
        Ok(())
    }

    /// Returns whether all that have reached this epoch are gone for good, so that nobody else learns of it.
    fn is_lost(&self, epoch: usize) -> bool {
        let mut reached = self.epochs[epoch].reached.iter();
        reached.all(|at| self.nodes[*at].given_up && self.nodes[*at].away)
    }

    /// The epoch of a node's member is over.
    pub(super) fn epoch_over(&mut self, at: usize) -> Result<(), FailureKind> {
        let node = &mut self.nodes[at];
        node.member = None;
        node.restarts += 1;
        node.timer = None;
        self.start(at)?;
        self.relink()
    }

    /// A node that is no member any more stays until a quorum of the next epoch has been told, of
    /// which some may not have known: the final certificate may be nowhere else.
    pub(super) fn farewell(&mut self, at: usize) {
        let next = self.nodes[at].epoch;
        let (Some(former), true) = (next.checked_sub(1), self.nodes[at].dead.is_none()) else {
            return;
        };
        let passed = |node: &&usize| self.nodes[**node].epoch >= next;
        let known = self.epochs[next].nodes.iter().filter(passed).count();
        let passage = self.epochs[former].passage.clone();
        let (false, Some(frame)) = (known >= self.epochs[next].epoch.roster.quorum(), passage)
        else {
            return;
        };
        for to in self.epochs[former].nodes.clone() {
            if to == at || self.nodes[to].epoch >= next {
                continue;
            }
            for after in self.links.arrivals(at, to) {
                let frame = frame.clone();
                let from = at;
                self.schedule(after, BareEvent::Deliver { from, to, frame });
            }
        }
        self.schedule(HEARTBEAT, BareEvent::Farewell(at));
    }

    /// A node without a member goes on in this epoch, if it is in its roster.
    pub(super) fn pass_to(&mut self, at: usize, epoch: usize) {
        self.nodes[at].epoch = epoch;
        self.nodes[at].answered.clear();
        let Some((run, me)) = self.seat(at) else {
            return;
        };
        let (epoch, key) = (run.epoch.clone(), self.key(at));
        let behaviours = self.byzantine.get(&MemberIndex(at as u16));
        let byzantine = behaviours.map(|behaviours| {
            ByzantineMember::new(epoch, me, key, behaviours, self.seed)
                .with_signatures(self.signatures.clone())
        });
        self.nodes[at].byzantine = byzantine;
    }

    /// Returns whether a node was a member and knows that it is none any more.
    pub(super) fn is_out(&self, at: usize) -> bool {
        self.nodes[at].epoch > 0 && self.seat(at).is_none()
    }

    /// A frame of another epoch is answered, once a heartbeat for each node as in a silo: with the proof
    /// that it is over, or with a question.
    pub(super) fn answer_former(&mut self, from: usize, to: usize, frame: &[u8]) {
        let last = self.nodes[to].answered.get(&from);
        if last.is_some_and(|last| self.now < *last + HEARTBEAT) {
            return;
        }
        self.nodes[to].answered.insert(from, self.now);
        let Some(id) = envelope::epoch_of(frame) else {
            return;
        };
        let mut former = self.epochs[..self.nodes[to].epoch].iter();
        let passage = former.find(|run| run.epoch.id == id);
        let passage = passage.map(|run| run.passage.clone());
        // One of an epoch that it does not know asks for the way there.
        let hail = || Some(envelope::hail(self.epoch_of(to)));
        let Some(frame) = passage.unwrap_or_else(hail) else {
            return;
        };
        for after in self.links.arrivals(to, from) {
            let frame = frame.clone();
            let (from, to) = (to, from);
            self.schedule(after, BareEvent::Deliver { from, to, frame });
        }
    }

    /// Nodes of the first epoch that are in the newest roster no more.
    fn left_behind(&self) -> Vec<usize> {
        let newest = &self.newest().nodes;
        let first = self.epochs[0].nodes.iter().copied();
        first.filter(|node| !newest.contains(node)).collect()
    }

    /// A node lost its journal: it knows of the first epoch only, and is told of others again.
    pub(super) fn lose_journal(&mut self, at: usize) -> Result<(), FailureKind> {
        let now = self.now;
        for epoch in 0..self.nodes[at].epoch {
            let run = &mut self.epochs[epoch];
            if let Some(seat) = run.nodes.iter().position(|&node| node == at) {
                let me = MemberIndex(seat as u16);
                run.monitor.crashed(now, me, true).map_err(violated)?;
            }
        }
        self.nodes[at].journal.clear();
        self.pass_to(at, 0);
        if self.seat(at).is_none() {
            self.schedule(HEARTBEAT, BareEvent::Visit(at));
        }
        Ok(())
    }

    /// Draws a change after which the federation still tolerates its faulty members.
    pub(super) fn draw_change(&mut self) -> BareChange {
        let run = self.newest();
        let n = run.nodes.len();
        let byzantine = |node: usize| self.byzantine.contains_key(&MemberIndex(node as u16));
        let faulty = |node: usize| self.nodes[node].dead.is_some() || byzantine(node);
        let sound = |node: usize| {
            let me = MemberIndex(node as u16);
            let whole = !self.nodes[node].lost && !self.put_back.contains(&node);
            !faulty(node) && whole && !self.losing_journals.contains(&me)
        };
        let excluded = self.left_behind().into_iter();
        let excluded = excluded.filter(|&node| faulty(node)).count();
        let flaws = self.flaws.saturating_sub(excluded);
        let rest = if n > 1 { bearable(n - 1) } else { 0 };
        // Fewer than four members tolerate no Byzantine one.
        let liars = run.nodes.iter().filter(|&&node| byzantine(node)).count();
        let tolerated = n.saturating_sub(2) / 3;
        let members = run.nodes.iter().copied();
        let mut changes = vec![BareChange::Rounds, BareChange::Admit];
        for node in members {
            if sound(node) {
                changes.push(BareChange::Rekey(node));
            }
            if n > 1 && sound(node) && rest >= flaws && tolerated >= liars {
                changes.push(BareChange::Leave(node));
            }
            let others = liars - usize::from(byzantine(node));
            if n > 1 && faulty(node) && rest + 1 >= flaws && tolerated >= others {
                changes.push(BareChange::Evict(node));
            }
        }
        changes[self.random.below(changes.len())]
    }

    /// The agreement with a change, for the newest epoch.
    pub(super) fn amendment(&mut self, change: BareChange) -> Amendment {
        let key = self.options.key(&mut self.random, &self.signatures);
        let name = format!("silo {}", self.nodes.len());
        let run = self.newest();
        let epoch = run.epoch.clone();
        let place = |node: usize| run.nodes.iter().position(|&member| member == node);
        let mut silos = epoch.roster.silos().to_vec();
        let mut protocol = epoch.protocol.clone();
        let mut stolen = Vec::new();
        let public = key.public();
        match change {
            BareChange::Rounds => protocol.rounds += 1,
            BareChange::Admit => silos.push(Silo {
                name,
                key: public,
                rows: self.options.fewest_authors.map(|_| 1),
            }),
            BareChange::Leave(node) => {
                if let Some(at) = place(node) {
                    return Amendment::leaving(&epoch, MemberIndex(at as u16));
                }
            }
            BareChange::Evict(node) => {
                if let Some(at) = place(node) {
                    silos.remove(at);
                }
            }
            BareChange::Rekey(node) => {
                if let Some(at) = place(node) {
                    let old = std::mem::replace(&mut silos[at].key, public);
                    // Half of the keys that are replaced were stolen.
                    let draw = format!("stolen in epoch {}", self.epochs.len());
                    let drawn = Random::new(self.seed, &draw).chance(0.5);
                    stolen.extend(drawn.then_some(old));
                }
            }
        }
        match change {
            BareChange::Admit => {
                let node = BareNode::new(key);
                self.nodes.push(node);
                self.schedule(HEARTBEAT, BareEvent::Visit(self.nodes.len() - 1));
            }
            BareChange::Rekey(node) => self.nodes[node].keys.push(key),
            BareChange::Rounds | BareChange::Leave(_) | BareChange::Evict(_) => {}
        }
        // The number of members says how many contributions a round must have at least.
        let mut protocol = protocol.for_members(epoch.roster.len(), silos.len());
        if let (Some(regroup), Privacy::Masked(masked)) =
            (self.options.regroup, &mut protocol.privacy)
            && let Sums::Groups(groups) = &mut masked.sums
        {
            regroup.apply(groups);
            if let Some(before) = epoch
                .protocol
                .privacy
                .masked()
                .filter(|_| self.options.shows)
            {
                masked.shows = before.shown_by(masked).into_iter().collect();
            }
        }
        let f = protocol::roster::faulty(silos.len());
        let protocol = protocol::ProtocolParameters {
            view_timeout: protocol.view_timeout.max(crate::genesis::view_timeout(f)),
            ..protocol
        };
        Amendment {
            format: epoch.format,
            silos,
            protocol,
            text: b"amended".to_vec(),
            stolen,
        }
    }

    /// An institution that waits to be admitted asks a member how far epochs have come.
    pub(super) fn visit(&mut self, at: usize) -> Result<(), FailureKind> {
        if self.nodes[at].member.is_some() || self.nodes[at].epoch > 0 {
            return Ok(());
        }
        let open = |node: usize| self.links.cuts.open(node, at) && self.links.cuts.open(at, node);
        let host = (0..self.nodes.len()).find(|&node| {
            let other = &self.nodes[node];
            let admitted = self.epochs[other.epoch].nodes.contains(&at);
            admitted && other.member.is_some() && other.byzantine.is_none() && open(node)
        });
        let Some(host) = host else {
            self.schedule(HEARTBEAT, BareEvent::Visit(at));
            return Ok(());
        };
        let journal = self.nodes[host].journal.iter();
        self.nodes[at].journal = journal
            .filter(|record| record.ends_epoch())
            .cloned()
            .collect();
        self.start(at)?;
        self.relink()
    }

    /// Puts a node into the epoch that its journal has reached. Gives the records of that epoch.
    pub(super) fn catch_up(&mut self, at: usize) -> Result<Vec<protocol::Record>, FailureKind> {
        let journal = self.nodes[at].journal.clone();
        let epochs = Epochs::replay(self.epochs[0].epoch.clone(), journal);
        let epochs = epochs.map_err(|why| FailureKind::Chains(why.to_string()))?;
        let number = epochs.now.number as usize;
        if number != self.nodes[at].epoch {
            self.pass_to(at, number);
        }
        Ok(epochs.records)
    }

    /// The first round that a node's member may adopt in its epoch was adopted, or comes next.
    pub(super) fn begin_monitoring(&mut self, at: usize) -> Result<(), FailureKind> {
        let adopted = self.nodes[at]
            .journal
            .iter()
            .rev()
            .find_map(|record| match record {
                protocol::Record::Applied { round } => Some(*round),
                _ => None,
            });
        let (now, me) = (self.now, self.me(at));
        let adopted = adopted.unwrap_or(0);
        self.monitor(at).begins(now, me, adopted).map_err(violated)
    }
}
