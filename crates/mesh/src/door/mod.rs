//! Limits the connections that nobody has proved a key on yet, by where they come from.
//!
//! Everybody who reaches a node's port can open connections and say nothing. Each takes a place until
//! it has proved its key or until [`HANDSHAKE`] is over. So that nobody takes all of them, places are
//! limited by address, by net and in all ([`room`]), and the addresses of members have places of their
//! own that no other address can take. Where all are taken that an address may have, a new connection
//! takes the place of the oldest one: a member proves its key within a few round trips, and a
//! connection that says nothing is the oldest after that.
//!
//! [`Doorway`] is a transport that asks for a place for each connection that comes in, QUIC, TCP and
//! relayed alike. A net that has many connections turned away is reported as a [`Crowd`].

mod room;

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::{AbortHandle, AbortRegistration, Abortable};
use libp2p::Multiaddr;
use libp2p::core::transport::{
    Boxed, DialOpts, ListenerId, Transport, TransportError, TransportEvent,
};
use protocol::MemberIndex;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep};

use crate::config::{is_relayed, socket};
use room::{ConnectionSource, Room};

/// Longest time for a connection to prove its key: a few round trips, also over a satellite.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Connections of one net that are turned away within a [`SPAN`] before it is reported. A federation
/// that starts on one machine stays far below.
const CROWD: u64 = 64;
/// See [`CROWD`].
const SPAN: Duration = Duration::from_secs(60);
/// Nets whose connections are counted.
const NETS: usize = 1024;

/// A net from which many connections came that proved no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// The net, or the single address of a member.
    pub(crate) from: String,
    /// Connections that were turned away since counting began.
    pub(crate) turned_away: u64,
}

/// Admission of incoming connections. Shared by the transport, the connections under way, and the node, which
/// knows the addresses of members.
#[derive(Clone)]
pub(crate) struct Door(Arc<Mutex<Inside>>);

struct Inside {
    room: Room,
    /// Ends the connection of each place.
    under_way: BTreeMap<u64, AbortHandle>,
    /// Connections that were turned away, by net, since the beginning of the span.
    turned_away: BTreeMap<String, u64>,
    since: Instant,
    crowds: mpsc::Sender<Crowd>,
}

impl Door {
    /// Of a node in a roster with this many others. Also returns the end at which crowds are reported.
    pub(crate) fn new(others: usize) -> (Self, mpsc::Receiver<Crowd>) {
        let (crowds, reported) = mpsc::channel(4);
        let inside = Inside {
            room: Room::new(others),
            under_way: BTreeMap::new(),
            turned_away: BTreeMap::new(),
            since: Instant::now(),
            crowds,
        };
        (Self(Arc::new(Mutex::new(inside))), reported)
    }

    /// A member has this address, or came from it.
    pub(crate) fn know(&self, member: MemberIndex, address: &Multiaddr) {
        if let Some((ip, ..)) = socket(address) {
            self.inside().room.know(member, ip);
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0
            .lock()
            .expect("no code panics while it holds this lock")
    }

    /// A connection comes in from this address, and gets a place.
    fn knock(&self, address: &Multiaddr) -> (ConnectionPlace, AbortRegistration) {
        let source = match socket(address) {
            Some((ip, ..)) if !is_relayed(address) => ConnectionSource::of(ip),
            _ => ConnectionSource::Relayed,
        };
        let mut inside = self.inside();
        let given = inside.room.knock(source);
        if let Some((old, from)) = given.instead {
            if let Some(connection) = inside.under_way.remove(&old) {
                connection.abort();
            }
            inside.turn_away(from);
        }
        let (handle, registration) = AbortHandle::new_pair();
        inside.under_way.insert(given.number, handle);
        let (door, number) = (self.clone(), given.number);
        (ConnectionPlace { door, number }, registration)
    }
}

impl Inside {
    /// Counts a connection that was turned away, and reports its net when there were many.
    fn turn_away(&mut self, from: ConnectionSource) {
        let now = Instant::now();
        if now - self.since >= SPAN {
            self.since = now;
            self.turned_away.clear();
        }
        let Some(from) = self.room.name(from) else {
            return;
        };
        if self.turned_away.len() >= NETS && !self.turned_away.contains_key(&from) {
            return;
        }
        let count = self.turned_away.entry(from.clone()).or_default();
        *count += 1;
        if count.is_multiple_of(CROWD) {
            let turned_away = *count;
            // Somebody who does not look at reports has had some already.
            let _ = self.crowds.try_send(Crowd { from, turned_away });
        }
    }
}

/// The place of a connection, which is free again when this is dropped.
struct ConnectionPlace {
    door: Door,
    number: u64,
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut inside = self.door.inside();
        inside.room.leave(self.number);
        inside.under_way.remove(&self.number);
    }
}

/// A transport whose incoming connections need a place.
pub(crate) struct Doorway<O> {
    inner: Boxed<O>,
    door: Door,
}

impl<O> Doorway<O> {
    pub(crate) fn new(inner: Boxed<O>, door: Door) -> Self {
        Self { inner, door }
    }
}

impl<O: 'static> Transport for Doorway<O> {
    type Output = O;
    type Error = io::Error;
    type ListenerUpgrade = Entering<O>;
    type Dial = <Boxed<O> as Transport>::Dial;

    fn listen_on(
        &mut self,
        id: ListenerId,
        address: Multiaddr,
    ) -> Result<(), TransportError<io::Error>> {
        self.inner.listen_on(id, address)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.inner.remove_listener(id)
    }

    fn dial(
        &mut self,
        address: Multiaddr,
        options: DialOpts,
    ) -> Result<Self::Dial, TransportError<io::Error>> {
        self.inner.dial(address, options)
    }

    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<TransportEvent<Entering<O>, io::Error>> {
        let event = ready!(Pin::new(&mut self.inner).poll(context));
        Poll::Ready(match event {
            TransportEvent::Incoming {
                listener_id,
                upgrade,
                local_addr,
                send_back_addr,
            } => TransportEvent::Incoming {
                listener_id,
                upgrade: Entering::new(upgrade, self.door.knock(&send_back_addr)),
                local_addr,
                send_back_addr,
            },
            other => other.map_upgrade(|_| unreachable!("only what comes in is upgraded")),
        })
    }
}

/// Upgrade of a socket to a connection: encryption, keys, streams.
type Upgrade<O> = <Boxed<O> as Transport>::ListenerUpgrade;

/// An [`Upgrade`] that ends where another connection takes its place.
type Proving<O> = Pin<Box<Abortable<Upgrade<O>>>>;

/// A connection that has a place and proves its key.
pub(crate) struct Entering<O> {
    proving: Option<(Proving<O>, ConnectionPlace)>,
    late: Pin<Box<Sleep>>,
}

impl<O> Entering<O> {
    fn new(
        upgrade: Upgrade<O>,
        (place, registration): (ConnectionPlace, AbortRegistration),
    ) -> Self {
        let proving = Box::pin(Abortable::new(upgrade, registration));
        Self {
            proving: Some((proving, place)),
            late: Box::pin(sleep(HANDSHAKE)),
        }
    }
}

impl<O> Future for Entering<O> {
    type Output = Result<O, io::Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let ended = |why: &str| Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)));
        let Some((proving, _)) = &mut this.proving else {
            return ended("the connection has ended");
        };
        let answer = match proving.as_mut().poll(context) {
            Poll::Ready(Ok(made)) => Poll::Ready(made),
            Poll::Ready(Err(_)) => ended("a newer connection from there took its place"),
            Poll::Pending => {
                ready!(this.late.as_mut().poll(context));
                ended("it has proved no key in time")
            }
        };
        this.proving = None;
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn from(address: &str) -> Multiaddr {
        address.parse().expect("an address")
    }

    #[tokio::test(start_paused = true)]
    async fn a_net_often_turned_away_is_reported_and_later_forgotten() {
        let (door, mut crowds) = Door::new(0);
        let mut places = Vec::new();
        let mut knock = |door: &Door, port: u64| {
            places.push(door.knock(&from(&format!("/ip4/192.0.2.7/tcp/{port}"))));
        };
        (0..200).for_each(|port| knock(&door, port));
        let crowd = crowds.try_recv().expect("200 from one address are many");
        assert_eq!(crowd.from, "192.0.2.0/24");
        assert_eq!(crowd.turned_away, CROWD);
        while crowds.try_recv().is_ok() {}
        tokio::time::advance(SPAN).await;
        (0..CROWD - 1).for_each(|port| knock(&door, port));
        assert!(crowds.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn unproven_connections_end_and_replaced_ones_end_at_once() {
        let (door, _crowds) = Door::new(0);
        let enter = |port: u64| {
            let place = door.knock(&from(&format!("/ip4/192.0.2.7/udp/{port}/quic-v1")));
            let upgrade: Upgrade<()> = Box::pin(std::future::pending());
            Entering::new(upgrade, place)
        };
        let began = Instant::now();
        let late = enter(1).await.expect_err("it says nothing");
        assert!(late.to_string().contains("no key in time"), "{late}");
        assert_eq!(began.elapsed(), HANDSHAKE);
        let mut all: Vec<_> = (0..100).map(enter).collect();
        let began = Instant::now();
        let replaced = all.remove(0).await.expect_err("others came");
        assert!(
            replaced.to_string().contains("took its place"),
            "{replaced}"
        );
        assert_eq!(began.elapsed(), Duration::ZERO);
        drop(all);
        assert_eq!(door.inside().under_way.len(), 0);
        assert_eq!(door.inside().room.len(), 0);
    }

    #[test]
    fn an_address_of_a_member_is_named_by_itself() {
        let (door, _crowds) = Door::new(3);
        door.know(MemberIndex(1), &from("/ip4/192.0.2.7/tcp/4400"));
        let ip: IpAddr = "192.0.2.7".parse().expect("an address");
        let name = door.inside().room.name(ConnectionSource::of(ip));
        assert_eq!(name.as_deref(), Some("192.0.2.7"));
    }
}
