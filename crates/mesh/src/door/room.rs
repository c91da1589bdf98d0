//! The places of connections that have proved no key: how many there are for whom.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use protocol::MemberIndex;

/// Places for one address, and more for every other member: several may share an address, all of a
/// federation on one machine do.
const ADDRESS: usize = 16;
/// Places for all addresses of no member, and more for every other member.
const ALL: usize = 128;
/// Addresses that are remembered for one member.
const KNOWN: usize = 8;

/// Source of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConnectionSource {
    /// An address, as it is counted: of IPv6 the net that one machine has.
    Address(IpAddr),
    /// Through a member that relays.
    Relayed,
}

impl ConnectionSource {
    /// IPv4 addresses count as they are. Of an IPv6 address the first 64 bits count, because a machine
    /// gives itself any of the others.
    pub(super) fn of(ip: IpAddr) -> Self {
        Self::Address(match ip.to_canonical() {
            IpAddr::V6(ip) => masked(ip.into(), 64),
            v4 => v4,
        })
    }

    /// The net that its address belongs to: what a provider gives one customer.
    fn net(self) -> Option<(IpAddr, u8)> {
        match self {
            Self::Address(IpAddr::V4(ip)) => {
                let [a, b, c, _] = ip.octets();
                Some((IpAddr::from([a, b, c, 0]), 24))
            }
            Self::Address(IpAddr::V6(ip)) => Some((masked(ip.into(), 48), 48)),
            Self::Relayed => None,
        }
    }
}

/// An IPv6 address of which only the first bits are kept.
fn masked(address: u128, bits: u32) -> IpAddr {
    IpAddr::from((address & !(u128::MAX >> bits)).to_be_bytes())
}

/// A place that was given, and the one that was taken away for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GrantedPlace {
    /// Number of the place.
    pub(super) number: u64,
    /// The number of the other one, and where its connection came from.
    pub(super) instead: Option<(u64, ConnectionSource)>,
}

/// All places.
pub(super) struct Room {
    /// Places for one address.
    address: usize,
    /// Places for all addresses of no member.
    all: usize,
    last: u64,
    /// Holders of the places. Later numbers are younger.
    taken: BTreeMap<u64, ConnectionSource>,
    /// Addresses of members, newest last.
    known: BTreeMap<MemberIndex, VecDeque<ConnectionSource>>,
}

impl Room {
    /// For a roster with this many others.
    pub(super) fn new(others: usize) -> Self {
        Self {
            address: ADDRESS + 2 * others,
            all: ALL + 4 * others,
            last: 0,
            taken: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    /// A member has this address, or came from it.
    pub(super) fn know(&mut self, member: MemberIndex, ip: IpAddr) {
        let source = ConnectionSource::of(ip);
        let known = self.known.entry(member).or_default();
        known.retain(|other| *other != source);
        known.push_back(source);
        if known.len() > KNOWN {
            known.pop_front();
        }
    }

    /// Returns whether `source` is the address of a member, or a connection that a member relays.
    fn is_known(&self, source: ConnectionSource) -> bool {
        let mut known = self.known.values().flatten();
        source == ConnectionSource::Relayed || known.any(|known| *known == source)
    }

    /// Returns what an operator is told about where it is: an address of a member, or a net.
    pub(super) fn name(&self, source: ConnectionSource) -> Option<String> {
        match source {
            ConnectionSource::Address(ip) if self.is_known(source) => Some(ip.to_string()),
            _ => source.net().map(|(net, bits)| format!("{net}/{bits}")),
        }
    }

    /// A connection comes in, and gets a place until [`leave`](Self::leave).
    pub(super) fn knock(&mut self, source: ConnectionSource) -> GrantedPlace {
        let instead = self.gives_way(source);
        if let Some((old, _)) = instead {
            self.taken.remove(&old);
        }
        self.last += 1;
        self.taken.insert(self.last, source);
        GrantedPlace {
            number: self.last,
            instead,
        }
    }

    /// The connection that gives way to one from here, if one has to.
    fn gives_way(&self, source: ConnectionSource) -> Option<(u64, ConnectionSource)> {
        let taken = || self.taken.iter().map(|(number, from)| (*number, *from));
        // The oldest of these, if they have all their places.
        fn oldest(
            mut those: impl Iterator<Item = (u64, ConnectionSource)>,
            places: usize,
        ) -> Option<(u64, ConnectionSource)> {
            let oldest = those.next();
            oldest.filter(|_| 1 + those.count() >= places)
        }
        let same = taken().filter(|(_, from)| *from == source);
        if let Some(same) = oldest(same, self.address) {
            return Some(same);
        }
        if self.is_known(source) {
            return None;
        }
        let unknown: Vec<_> = taken().filter(|(_, from)| !self.is_known(*from)).collect();
        let of = |net| {
            let all = unknown.iter().copied();
            all.filter(move |(_, from)| from.net() == net)
        };
        let net = source.net();
        if let Some(neighbour) = oldest(of(net), 2 * self.address) {
            return Some(neighbour);
        }
        if unknown.len() < self.all {
            return None;
        }
        // The net that has most, if it has more than this one will have.
        let nets: BTreeSet<_> = unknown.iter().map(|(_, from)| from.net()).collect();
        let most = nets.into_iter().max_by_key(|net| of(*net).count());
        let most = most.filter(|most| of(*most).count() > of(net).count() + 1);
        match most {
            Some(most) => of(most).next(),
            None => unknown.first().copied(),
        }
    }

    /// A connection has proved its key, or has ended.
    pub(super) fn leave(&mut self, number: u64) {
        self.taken.remove(&number);
    }

    /// Places that are taken.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> ConnectionSource {
        ConnectionSource::of(address.parse().expect("an IP address"))
    }

    #[test]
    fn full_addresses_and_nets_drop_their_oldest_connection() {
        let mut room = Room::new(0);
        let from = at("192.0.2.7");
        for number in 1..=ADDRESS as u64 {
            let instead = None;
            assert_eq!(room.knock(from), GrantedPlace { number, instead });
        }
        assert_eq!(room.knock(from).instead, Some((1, from)));
        // Its neighbours have as much again, together.
        for host in 8..8 + ADDRESS {
            let given = room.knock(at(&format!("192.0.2.{host}")));
            assert_eq!(given.instead, None, "{host}");
        }
        assert_eq!(room.knock(at("192.0.2.200")).instead, Some((2, from)));
        assert_eq!(room.len(), 2 * ADDRESS);
        // Other nets are not touched.
        assert_eq!(room.knock(at("192.0.3.7")).instead, None);
    }

    #[test]
    fn addresses_of_one_machine_and_of_one_customer_count_as_one() {
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:1:2:3"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("2001:db8::1").net(), at("2001:db8:0:ffff::1").net());
        assert_ne!(at("2001:db8::1").net(), at("2001:db8:1::1").net());
        assert_eq!(at("::ffff:192.0.2.7"), at("192.0.2.7"));
    }

    #[test]
    fn members_have_places_that_other_addresses_never_take() {
        let mut room = Room::new(3);
        room.know(MemberIndex(1), "198.51.100.1".parse().expect("an address"));
        let member = at("198.51.100.1");
        let first = room.knock(member).number;
        for knock in 0..10_000u32 {
            let [_, a, b, c] = knock.to_be_bytes();
            room.knock(ConnectionSource::of(IpAddr::from([10 + a, b, c, 1])));
            room.knock(ConnectionSource::of(IpAddr::from([10, a, b, c])));
        }
        assert_eq!(room.taken.get(&first), Some(&member));
        for _ in 1..room.address {
            assert_eq!(room.knock(member).instead, None);
        }
        assert_eq!(room.len(), room.all + room.address);
        // Somebody else behind its address takes the place of the oldest connection from there.
        assert_eq!(room.knock(member).instead, Some((first, member)));
    }

    #[test]
    fn where_all_places_are_taken_the_largest_net_gives_one_up() {
        let mut room = Room::new(0);
        for net in 0..ALL / 2 {
            room.knock(at(&format!("10.1.{net}.1")));
        }
        let large: Vec<_> = (0..ALL / 4)
            .flat_map(|host| [format!("10.2.1.{host}"), format!("10.2.2.{host}")])
            .collect();
        for host in &large {
            assert_eq!(room.knock(at(host)).instead, None, "{host}");
        }
        let instead = room.knock(at("192.0.2.7")).instead;
        let (_, from) = instead.expect("all places are taken");
        assert_eq!(
            from.net().map(|(net, _)| net.to_string()),
            Some("10.2.2.0".into())
        );
        assert_eq!(room.len(), ALL);
        // Where all nets have as little as the new one, the oldest connection of all gives way.
        let mut room = Room::new(0);
        for net in 0..ALL {
            room.knock(at(&format!("10.1.{net}.1")));
        }
        assert_eq!(
            room.knock(at("192.0.2.7")).instead,
            Some((1, at("10.1.0.1")))
        );
    }

    #[test]
    fn a_place_is_free_after_its_connection_has_left() {
        let mut room = Room::new(0);
        for _ in 0..ADDRESS {
            room.knock(at("192.0.2.7"));
        }
        room.leave(1);
        assert_eq!(room.knock(at("192.0.2.7")).instead, None);
    }

    #[test]
    fn only_the_last_addresses_of_a_member_are_known() {
        let mut room = Room::new(3);
        let ip = |host: usize| IpAddr::from([192, 0, 2, host as u8]);
        (0..=KNOWN).for_each(|host| room.know(MemberIndex(2), ip(host)));
        assert!(!room.is_known(ConnectionSource::of(ip(0))));
        assert!((1..=KNOWN).all(|host| room.is_known(ConnectionSource::of(ip(host)))));
    }
}
