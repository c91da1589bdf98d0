//! Handshakes: who else is there, whether it has the same agreement, and whether two processes have one
//! key.

use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use protocol::net::Event;
use protocol::{MemberIndex, SecretKey};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Node;
use crate::hello::{self, Greeted, OwnHandshake};
use crate::members::id_of;
use crate::probe;
use crate::streams::Inbound;

/// Handshakes under way at the same time; more are not answered.
const HANDSHAKES: usize = 64;
/// How long after its start a node first tries its own addresses.
const FIRST_LOOK: Duration = Duration::from_secs(3);
/// How long one of them may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a node does to find another process with its own key. It tries its own addresses of the roster
/// with the key for checks: the process that answers there says its number, and learns that of this
/// one. A process with a copied key, wherever it runs, so finds the one at the address, and is found by
/// it.
pub(super) struct OwnKeySearch {
    secret: [u8; 32],
    /// The key for checks.
    pub(super) probe: Option<PeerId>,
    /// This node's addresses of the roster, and how many looks there were.
    addresses: Vec<String>,
    looks: usize,
    every: Duration,
    next: Instant,
    /// The look under way. Gives where another process answered.
    looking: JoinSet<Option<String>>,
    /// True if the silo was told.
    told: bool,
}

impl OwnKeySearch {
    pub(super) fn new(secret: [u8; 32], addresses: Vec<String>, every: Duration) -> Self {
        let key = SecretKey::from_bytes(&hello::probe_key(&secret)).public();
        Self {
            secret,
            probe: id_of(&key),
            addresses,
            looks: 0,
            every,
            next: Instant::now() + FIRST_LOOK.min(every),
            looking: JoinSet::new(),
            told: false,
        }
    }

    /// Returns when the next look is due.
    pub(super) fn due(&self) -> Option<Instant> {
        let looks = !self.addresses.is_empty() && !self.told && self.looking.is_empty();
        looks.then_some(self.next)
    }

    /// Begins a look, at one address after the other.
    pub(super) fn look(&mut self, card: &OwnHandshake) {
        self.next = Instant::now() + self.every;
        let Some(address) = self.addresses.get(self.looks % self.addresses.len()) else {
            return;
        };
        self.looks += 1;
        let (secret, address) = (self.secret, address.clone());
        let (federation, instance) = (card.federation, card.instance);
        self.looking.spawn(async move {
            let met = probe::own(secret, federation, instance, &address, PATIENCE).await;
            // That nobody answers is nothing unusual: many nodes cannot reach themselves from outside.
            let met = met.ok()?.instance;
            (met != 0 && met != instance).then_some(address)
        });
    }

    /// Returns what the look found. Pending without one.
    pub(super) async fn found(&mut self) -> Option<Option<String>> {
        let found = self.looking.join_next().await?;
        Some(found.ok().flatten())
    }
}

impl Node {
    /// Greets a member after this node has dialled it.
    pub(super) fn greet(&mut self, id: PeerId, remote: Multiaddr) {
        let Some(peer) = self.members.of(&id) else {
            return;
        };
        if self.handshakes.len() < HANDSHAKES {
            let card = self.card.telling(self.twins.of(peer.member));
            let opener = self.opener.clone();
            self.handshakes.spawn(async move {
                match hello::ask(opener, (id, remote), card).await {
                    Ok((greeted, _)) => Some(greeted),
                    Err(error) => {
                        tracing::debug!(%id, "a greeting failed: {error}");
                        None
                    }
                }
            });
        }
    }

    /// Answers a handshake.
    pub(super) fn answer(&mut self, inbound: Inbound) {
        if self.handshakes.len() < HANDSHAKES {
            let peer = self.members.of(&inbound.peer);
            let twins = peer.and_then(|peer| self.twins.of(peer.member));
            let card = self.card.telling(twins);
            let rehearsal = self.rehearsal.clone();
            self.handshakes
                .spawn(hello::answer(inbound, card, rehearsal));
        }
    }

    /// A look at this node's own addresses has ended.
    pub(super) fn looked(&mut self, found: Option<String>) {
        if found.is_some() {
            self.key_elsewhere(found);
        }
    }

    /// Another process has this node's key. The silo is told once.
    fn key_elsewhere(&mut self, address: Option<String>) {
        if !std::mem::replace(&mut self.own_key.told, true) {
            self.outbox.push_back(Event::KeyElsewhere);
            self.knocks.key_elsewhere(address);
        }
    }

    /// Looks whether two processes have one key: the member's, or, as the member says, this node's.
    fn compare_processes(&mut self, member: MemberIndex, greeted: &Greeted) {
        let Greeted {
            hello,
            since,
            remote,
            ..
        } = greeted;
        let from = (*since, remote.to_string());
        if let Some(addresses) = self.twins.heard(member, hello.instance, from) {
            self.knocks.twins(member, addresses);
        }
        let own = self.card.instance;
        if self.twins.witness(member, hello.twins, own) >= self.witnesses {
            self.key_elsewhere(None);
        }
    }

    /// Compares the agreement and the formats, and admits the key with which a member checks addresses.
    pub(super) fn greeted(&mut self, greeted: Greeted) {
        let id = greeted.peer;
        if Some(id) == self.own_key.probe {
            let number = greeted.hello.instance;
            if number != 0 && number != self.card.instance {
                self.key_elsewhere(Some(greeted.remote.to_string()));
            }
            return;
        }
        let (owner, known) = match self.members.of(&id) {
            // What a former member says of itself is of no use any more.
            Some(peer) if peer.guest => return,
            Some(peer) => (Some(peer.member), true),
            None => {
                let owner = self.probes.iter().find(|(_, probe)| **probe == id);
                (owner.map(|(member, _)| *member), false)
            }
        };
        let Some(member) = owner else { return };
        if known && !greeted.hello.probing {
            self.compare_processes(member, &greeted);
        }
        let hello = greeted.hello;
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
