//! Members that lost their journals without noticing: which others could tell them what they
//! signed.

use std::collections::{BTreeMap, BTreeSet};

use protocol::MemberIndex;
use protocol::message::Message;

use super::super::faults::JournalLoss;
use super::Simulator;

/// What others know of members that lost, or are going to lose, their journals.
#[derive(Default)]
pub(super) struct LostJournals {
    /// By such a member: the others that received a binding message of it, each with its count of
    /// restarts, because a restart loses it.
    received: BTreeMap<MemberIndex, BTreeSet<(usize, u32)>>,
    /// Members that restarted as if they were new and have not noticed it.
    pub(super) unaware: BTreeSet<usize>,
    /// Unaware members that no other member could inform.
    marked_absent: BTreeSet<usize>,
}

impl Simulator<'_> {
    /// Records a binding message that was delivered to a member.
    pub(super) fn note_binding(&mut self, message: &Message, to: usize) {
        let hidden = self.options.faults.journal_loss == JournalLoss::Hidden;
        let run = &self.epochs[self.nodes[to].epoch];
        let sender = MemberIndex(run.nodes[message.sender.at()] as u16);
        let binds = message.body.kind().binds();
        let listener = &self.nodes[to];
        if hidden && binds && listener.byzantine.is_none() && self.losing_journals.contains(&sender)
        {
            let received = self.lost_journals.received.entry(sender).or_default();
            received.insert((to, listener.restarts));
        }
    }

    /// A member that asks f + 1 others what it signed learns it for certain only if at most f do
    /// not know. If more do not, it cannot learn it, and counts as one of the f faulty members.
    pub(super) fn excuse_unaware(&mut self) {
        let others = self.nodes.len() - 1;
        let asked = (self.newest().epoch.roster.faulty() + 1).min(others);
        let mut marked_absent = Vec::new();
        for &at in &self.lost_journals.unaware {
            let me = MemberIndex(at as u16);
            let received = self.lost_journals.received.get(&me).into_iter().flatten();
            let still = |&&(node, restarts): &&(usize, u32)| {
                self.nodes[node].restarts == restarts && self.nodes[node].member.is_some()
            };
            if others - received.filter(still).count() >= asked {
                marked_absent.push(at);
            }
        }
        for at in marked_absent {
            // Whoever is no member any more is none of the f.
            let Some((_, me)) = self.seat(at) else {
                continue;
            };
            self.lost_journals.marked_absent.insert(at);
            self.monitor(at).count_as_faulty(me);
        }
    }

    /// Returns whether more members are faulty than the federation tolerates: then no property is promised.
    pub(super) fn too_many_faulty(&self) -> bool {
        let run = self.newest();
        let byzantine = |node: &&usize| self.byzantine.contains_key(&MemberIndex(**node as u16));
        let byzantine = run.nodes.iter().filter(byzantine).count();
        byzantine + self.lost_journals.marked_absent.len() > run.epoch.roster.faulty()
    }
}
