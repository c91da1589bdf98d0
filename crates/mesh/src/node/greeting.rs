//! Greetings: who else is there, and whether it has the same agreement.

use libp2p::{PeerId, Stream};

use super::Node;
use crate::hello::{self, Greeted};
use crate::members::id_of;

/// Greetings under way at the same time; more are not answered.
const GREETINGS: usize = 64;

impl Node {
    /// Greets a member after this node has dialled it.
    pub(super) fn greet(&mut self, peer: PeerId) {
        if self.members.of(&peer).is_some() && self.greetings.len() < GREETINGS {
            let (opener, card) = (self.opener.clone(), self.card.clone());
            self.greetings.spawn(async move {
                match hello::ask(opener, peer, card).await {
                    Ok((greeted, _)) => Some(greeted),
                    Err(error) => {
                        tracing::debug!(%peer, "a greeting failed: {error}");
                        None
                    }
                }
            });
        }
    }

    /// Answers a greeting.
    pub(super) fn answer(&mut self, peer: PeerId, stream: Stream) {
        if self.greetings.len() < GREETINGS {
            let card = self.card.clone();
            self.greetings.spawn(hello::answer(peer, stream, card));
        }
    }

    /// Compares the agreement and the formats, and admits the key with which a member checks addresses.
    pub(super) fn greeted(&mut self, Greeted { peer: id, hello }: Greeted) {
        let (owner, known) = match self.members.of(&id) {
            Some(peer) => (Some(peer.member), true),
            None => {
                let owner = self.probes.iter().find(|(_, probe)| **probe == id);
                (owner.map(|(member, _)| *member), false)
            }
        };
        let Some(member) = owner else { return };
        if hello.federation != self.card.federation {
            let federation = hello.federation;
            self.knocks
                .other_agreement(&id, member, federation, hello.probing);
        }
        if !known {
            return;
        }
        self.peers.greeted(member, &hello.program);
        let same = hello.federation == self.card.federation;
        if same && !hello.program.understands(&self.card.program) {
            self.knocks.other_format(&id, member, hello.program);
        }
        if let Some(link) = self.links.get_mut(&member) {
            link.probing = hello.probing;
        }
        let me = *self.swarm.local_peer_id();
        // A member's own key stays admitted whatever another member names.
        let probe = id_of(&hello.probe);
        let probe = probe.filter(|probe| *probe != me && self.members.of(probe).is_none());
        let Some(probe) = probe else { return };
        let others = self.probes.iter();
        let taken = others
            .filter(|(other, _)| **other != member)
            .any(|(_, other)| *other == probe);
        if taken || self.probes.get(&member) == Some(&probe) {
            return;
        }
        let admitted = &mut self.swarm.behaviour_mut().members;
        admitted.allow_peer(probe);
        if let Some(old) = self.probes.insert(member, probe) {
            admitted.disallow_peer(old);
        }
    }
}
