//! Members that forgot what they signed and believe to be new: who could tell them.

use std::collections::{BTreeMap, BTreeSet};

use protocol::MemberIndex;
use protocol::message::{Kind, Message};

use super::super::faults::Amnesia;
use super::World;

/// What others know of members that will forget, or have forgotten, what they signed.
#[derive(Default)]
pub(super) struct Forgotten {
    /// Who heard something of such a member that binds it, and in which life: a restart forgets it.
    heard: BTreeMap<MemberIndex, BTreeSet<(usize, u32)>>,
    /// Members that came back as new and have not been told otherwise.
    pub(super) unaware: BTreeSet<usize>,
    /// Those of them that nobody could tell.
    excused: BTreeSet<usize>,
}

impl World<'_> {
    /// A message reached a member.
    pub(super) fn remember(&mut self, message: &Message, to: usize) {
        let hidden = self.options.faults.amnesia == Amnesia::Hidden;
        let binds = matches!(
            message.body.kind(),
            Kind::Contribution | Kind::Proposal | Kind::Notarize | Kind::Finalize | Kind::Nullify
        );
        let listener = &self.nodes[to];
        if hidden && binds && listener.liar.is_none() && self.amnesiac.contains(&message.sender) {
            let heard = self.forgotten.heard.entry(message.sender).or_default();
            heard.insert((to, listener.life));
        }
    }

    /// A member that asks f + 1 others what it signed learns it for certain only if fewer do not
    /// know. One that fewer know of cannot be told, and counts as one of the f faulty members.
    pub(super) fn excuse(&mut self) {
        let others = self.nodes.len() - 1;
        let asked = (self.epoch.roster.faulty() + 1).min(others);
        for &at in &self.forgotten.unaware {
            let me = MemberIndex(at as u16);
            let heard = self.forgotten.heard.get(&me).into_iter().flatten();
            let still = |&&(node, life): &&(usize, u32)| {
                self.nodes[node].life == life && self.nodes[node].member.is_some()
            };
            if others - heard.filter(still).count() >= asked {
                self.watch.excuse(me);
                self.forgotten.excused.insert(at);
            }
        }
    }

    /// Whether more members keep no rules than the federation can bear: nothing is promised then.
    pub(super) fn lawless(&self) -> bool {
        self.byzantine.len() + self.forgotten.excused.len() > self.epoch.roster.faulty()
    }
}
