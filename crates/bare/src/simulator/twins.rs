//! Twins: two processes with one key. Each keeps the rules, and does not know what the other signs.

use protocol::MemberIndex;

use super::{BareEvent, BareNode, FailureKind, HEARTBEAT, Simulator};

impl Simulator<'_> {
    /// The first process of a node's member.
    pub(super) fn first_of(&self, at: usize) -> usize {
        self.twins.get(&at).map_or(at, |&other| other.min(at))
    }

    /// Returns whether two nodes are processes of one member.
    pub(super) fn are_twins(&self, a: usize, b: usize) -> bool {
        self.twins.get(&a) == Some(&b)
    }

    /// A second process starts with a member's key: on a copy of its disk, or with an empty one.
    pub(super) fn add_twin(&mut self, of: usize, copied: bool) -> Result<(), FailureKind> {
        let at = self.nodes.len();
        let first = &self.nodes[of];
        let mut twin = BareNode::new(first.keys[0].clone());
        twin.keys.clone_from(&first.keys);
        if copied {
            twin.journal.clone_from(&first.journal);
            twin.store = first.store.clone();
        }
        self.nodes.push(twin);
        self.twins.insert(at, of);
        self.twins.insert(of, at);
        let member = |node: usize| MemberIndex(node as u16);
        let behaviours = self.byzantine.get(&member(of)).cloned();
        self.byzantine
            .insert(member(at), behaviours.unwrap_or_default());
        self.pass_to(at, 0);
        self.schedule(HEARTBEAT, BareEvent::ByzantineHeartbeat(at));
        self.start(at)
    }
}
