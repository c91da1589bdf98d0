//! Connections through other members, for members that no other node can dial.
//!
//! A node that can only dial out keeps slots at a few members that it is connected to: they pass on
//! connections to it (libp2p's circuit relay). A node that wants to reach it tries the members that it
//! is connected to itself. Both go through the members in the same order, which depends on the member
//! to be reached, so that the first attempt mostly finds a slot, and different members use different
//! relays. Over such a connection the two ends try to make a direct one (libp2p's DCUtR), for which
//! each needs to know the address that others see.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::time::Duration;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::{Multiaddr, Protocol};
use libp2p::{PeerId, relay};
use protocol::{Hash, MemberIndex};
use tokio::time::{Instant, timeout};

use crate::dial::pause;
use crate::streams::{StreamKind, StreamOpener};

/// Members at which a node that can only dial out keeps slots: two may fail at the same time.
const SLOTS: usize = 3;
/// Pauses after a member refused a slot, after the first time and after many.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// Time for which one connection is relayed; then its ends make a new one.
const LASTS: Duration = Duration::from_secs(24 * 3600);
/// Bytes that one relayed connection may have, both directions together; then its ends make a new
/// one. Much more than a day of models.
const BYTES: u64 = 1 << 40;
/// Connections that a node relays for one member, and for all.
const CIRCUITS: (usize, usize) = (96, 4096);
/// Longest time for a question for this node's address.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of an address, written out.
const ADDRESS: usize = 255;

/// The part of a node that relays, in a federation with this number of other members. It is reached by
/// members only, because the swarm denies all other connections; so what it relays has members at both
/// ends.
pub(crate) fn server(me: PeerId, others: usize) -> relay::Behaviour {
    let config = relay::Config {
        max_reservations: 4 * others,
        max_reservations_per_peer: 4,
        reservation_duration: Duration::from_secs(3600),
        // By member, not by IP address: several members may be behind one.
        reservation_rate_limiters: Vec::new(),
        max_circuits: (others * others).min(CIRCUITS.1),
        max_circuits_per_peer: (2 * others).min(CIRCUITS.0),
        max_circuit_duration: LASTS,
        max_circuit_bytes: BYTES,
        circuit_src_rate_limiters: Vec::new(),
    };
    let at_once = NonZeroU32::new(30 + 8 * others as u32).expect("more than 30");
    let config = config
        .reservation_rate_per_peer(at_once, Duration::from_secs(10))
        .circuit_src_per_peer(at_once, Duration::from_secs(2));
    let mut behaviour = relay::Behaviour::new(me, config);
    behaviour.set_status(Some(relay::Status::Enable));
    behaviour
}

/// The order in which members are asked to relay to `target`: the same at every node.
pub(crate) fn ranked(
    target: MemberIndex,
    relays: impl IntoIterator<Item = MemberIndex>,
) -> Vec<MemberIndex> {
    let mut ranked: Vec<_> = relays.into_iter().filter(|one| *one != target).collect();
    ranked.sort_by_key(|relay| rank(target, *relay));
    ranked
}

/// Returns where a member stands among those that are asked to relay to `target`: the least first. The same at
/// every node.
pub fn rank(target: MemberIndex, relay: MemberIndex) -> [u8; 32] {
    let pair = [target.0.to_le_bytes(), relay.0.to_le_bytes()].concat();
    Hash::labelled("relay", &[&pair]).0
}

/// The address of a slot at a member that is connected from `address`.
pub(crate) fn slot(mut address: Multiaddr, relay: PeerId) -> Multiaddr {
    if let Some(Protocol::P2p(_)) = address.iter().last() {
        address.pop();
    }
    address
        .with(Protocol::P2p(relay))
        .with(Protocol::P2pCircuit)
}

/// The slots of this node at members that relay to it.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// Slots that the node has or has asked for.
    taken: BTreeMap<MemberIndex, ListenerId>,
    /// Members that refused: how often in a row, and when they are asked again.
    refused: BTreeMap<MemberIndex, (u32, Instant)>,
}

impl Slots {
    /// The members to ask now, of those that could relay, in their order.
    pub(crate) fn missing(&self, ranked: &[MemberIndex]) -> Vec<MemberIndex> {
        let now = Instant::now();
        let may = |relay: &&MemberIndex| {
            let later = self.refused.get(relay).is_some_and(|(_, due)| *due > now);
            !later && !self.taken.contains_key(relay)
        };
        let free = SLOTS.saturating_sub(self.taken.len());
        ranked.iter().filter(may).take(free).copied().collect()
    }

    /// A member was asked for a slot.
    pub(crate) fn ask(&mut self, relay: MemberIndex, listener: ListenerId) {
        self.taken.insert(relay, listener);
    }

    /// A member gave the slot.
    pub(crate) fn granted(&mut self, relay: MemberIndex) {
        self.refused.remove(&relay);
    }

    /// A slot ended or was refused. Gives the member whose it was.
    pub(crate) fn closed(&mut self, me: MemberIndex, listener: ListenerId) -> Option<MemberIndex> {
        let mut all = self.taken.iter();
        let relay = *all.find(|(_, taken)| **taken == listener)?.0;
        self.taken.remove(&relay);
        self.refuse(me, relay);
        Some(relay)
    }

    /// A member cannot be asked now.
    pub(crate) fn refuse(&mut self, me: MemberIndex, relay: MemberIndex) {
        let (failures, due) = self.refused.entry(relay).or_insert((0, Instant::now()));
        *due = Instant::now() + pause(me, relay, *failures, PAUSES);
        *failures = failures.saturating_add(1);
    }

    /// Returns when a member may be asked again, while slots are missing.
    pub(crate) fn next(&self) -> Option<Instant> {
        let now = Instant::now();
        let later = self
            .refused
            .iter()
            .filter(|(relay, (_, due))| *due > now && !self.taken.contains_key(relay));
        let next = later.map(|(_, (_, due))| *due).min();
        next.filter(|_| self.taken.len() < SLOTS)
    }
}

/// Asks a member from which address this node's connection comes. `None` if it does not say.
pub(crate) async fn ask_address(opener: StreamOpener, peer: PeerId) -> Option<Multiaddr> {
    let asked = async {
        let mut stream = opener.open(peer, StreamKind::Address).await.ok()?;
        let address = read(&mut stream).await.ok();
        let _ = stream.close().await;
        address
    };
    timeout(PATIENCE, asked).await.ok()?
}

/// Tells the node at the other end where its connection comes from.
pub(crate) async fn tell_address(mut stream: impl AsyncWrite + Unpin, address: Multiaddr) {
    let text = address.to_string();
    let Ok(length) = u8::try_from(text.len()) else {
        return;
    };
    let mut bytes = vec![length];
    bytes.extend_from_slice(text.as_bytes());
    let told = async {
        stream.write_all(&bytes).await?;
        stream.close().await
    };
    if let Ok(Err(error)) = timeout(PATIENCE, told).await {
        tracing::debug!("a node was not told its address: {error}");
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Multiaddr> {
    let mut length = [0];
    stream.read_exact(&mut length).await?;
    let mut text = [0; ADDRESS];
    let text = &mut text[..usize::from(length[0])];
    stream.read_exact(text).await?;
    let text = std::str::from_utf8(text).map_err(io::Error::other)?;
    text.parse().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(all: impl IntoIterator<Item = u16>) -> Vec<MemberIndex> {
        all.into_iter().map(MemberIndex).collect()
    }

    #[test]
    fn all_nodes_ask_one_members_same_relays_first() {
        let target = MemberIndex(3);
        let all = ranked(target, members(0..20));
        assert_eq!(all.len(), 19);
        assert!(!all.contains(&target));
        // A node that is connected to fewer members keeps the order.
        let fewer = ranked(target, members((0..20).rev().filter(|one| one % 3 > 0)));
        let mut rest = all.iter();
        assert!(fewer.iter().all(|one| rest.any(|other| other == one)));
        let firsts: std::collections::BTreeSet<_> = (0..20)
            .map(|target| ranked(MemberIndex(target), members(0..20))[0])
            .collect();
        assert!(firsts.len() > 5, "{firsts:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_slot_is_tried_elsewhere_and_again_ever_later() {
        let (me, relays) = (MemberIndex(9), members(0..4));
        let mut slots = Slots::default();
        assert_eq!(slots.missing(&relays), relays[..SLOTS]);
        let listeners: Vec<_> = relays[..SLOTS]
            .iter()
            .map(|&relay| {
                let listener = ListenerId::next();
                slots.ask(relay, listener);
                listener
            })
            .collect();
        assert_eq!((slots.missing(&relays), slots.next()), (Vec::new(), None));
        assert_eq!(slots.closed(me, ListenerId::next()), None);
        assert_eq!(slots.closed(me, listeners[0]), Some(relays[0]));
        assert_eq!(slots.missing(&relays), [relays[3]]);
        let mut waited = Vec::new();
        for _ in 0..4 {
            let due = slots.next().expect("a slot is missing");
            waited.push(due - Instant::now());
            tokio::time::advance(due - Instant::now()).await;
            assert_eq!(slots.missing(&relays), [relays[0]]);
            slots.refuse(me, relays[0]);
        }
        assert!(waited.is_sorted(), "{waited:?}");
        slots.ask(relays[0], listeners[0]);
        slots.granted(relays[0]);
        slots.closed(me, listeners[0]);
        assert!(
            slots
                .next()
                .is_some_and(|due| due - Instant::now() <= PAUSES.0)
        );
    }

    #[tokio::test]
    async fn an_address_is_read_as_it_was_told() {
        let address: Multiaddr = "/ip4/192.0.2.7/udp/4001/quic-v1".parse().expect("valid");
        let mut bytes = futures::io::Cursor::new(Vec::new());
        tell_address(&mut bytes, address.clone()).await;
        let bytes = bytes.into_inner();
        assert_eq!(read(&mut &bytes[..]).await.ok(), Some(address));
        assert!(read(&mut &bytes[..bytes.len() - 1]).await.is_err());
    }
}
