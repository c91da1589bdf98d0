//! Nodes on this machine's own network.

use std::time::Duration;

use bytes::Bytes;
use mesh::{Command, Config, Contact, Event, Handle, MeshError, Notice, Transport};
use protocol::{Hash, MemberIndex, PublicKey, SecretKey};
use tokio::runtime;
use tokio::time::timeout;

/// Time within which every expected event must occur.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn secret(member: u16) -> [u8; 32] {
    [member as u8; 32]
}

pub(crate) fn public(member: u16) -> PublicKey {
    SecretKey::from_bytes(&secret(member)).public()
}

pub(crate) fn contact(member: u16, addresses: &[String]) -> Contact {
    Contact {
        member: MemberIndex(member),
        key: public(member),
        addresses: addresses.to_vec(),
    }
}

/// Of a node of this federation, at a free port.
pub(crate) fn of(federation: Hash, transport: Transport) -> Config {
    let listen = transport.addresses("127.0.0.1", 0);
    Config {
        transport,
        first_retry: Duration::from_millis(50),
        last_retry: Duration::from_millis(500),
        ..Config::new(federation, listen)
    }
}

pub(crate) fn config(transport: Transport) -> Config {
    of(Hash::of(b"federation"), transport)
}

/// Configuration of a node of the usual federation, at this port.
pub(crate) fn listening(transport: Transport, port: u16) -> Config {
    Config {
        listen: transport.addresses("127.0.0.1", port),
        ..config(transport)
    }
}

/// Starts the node with the key of `me`.
pub(crate) async fn started(
    config: Config,
    me: u16,
    roster: &[Contact],
) -> Result<Handle, MeshError> {
    let runtime = runtime::Handle::current();
    mesh::spawn(&runtime, config, secret(me), roster.to_vec()).await
}

/// Starts the mesh of a node, which has to succeed.
pub(crate) async fn spawn(config: Config, me: u16, roster: &[Contact]) -> Handle {
    started(config, me, roster).await.unwrap()
}

pub(crate) async fn wait<T>(mesh: &mut Handle, mut pick: impl FnMut(Event) -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = pick(mesh.events.recv().await.expect("the mesh is running")) {
                return found;
            }
        }
    };
    timeout(PATIENCE, found)
        .await
        .expect("the event occurs in time")
}

pub(crate) fn up(event: Event) -> Option<MemberIndex> {
    match event {
        Event::Up { peer, .. } => Some(peer),
        _ => None,
    }
}

pub(crate) fn down(event: Event) -> Option<MemberIndex> {
    match event {
        Event::Down { peer } => Some(peer),
        _ => None,
    }
}

/// A received frame and the neighbour that it came from.
pub(crate) fn received(event: Event) -> Option<(MemberIndex, Bytes)> {
    match event {
        Event::Received { from, frame, .. } => Some((from, frame)),
        _ => None,
    }
}

/// The next notice of a node.
pub(crate) async fn notice(mesh: &mut Handle) -> Notice {
    timeout(PATIENCE, mesh.notices.recv())
        .await
        .unwrap()
        .unwrap()
}

pub(crate) async fn command(mesh: &Handle, command: Command) {
    mesh.commands.send(command).await.unwrap();
}

pub(crate) async fn send(mesh: &Handle, to: u16, frame: impl Into<Bytes>) {
    let (to, frame) = (MemberIndex(to), frame.into());
    command(mesh, Command::Send { to, frame }).await;
}

/// Ends a node and waits until its ports are free.
pub(crate) async fn end(mesh: Handle) {
    let Handle {
        commands,
        events,
        ended,
        ..
    } = mesh;
    drop((commands, events));
    ended.await.unwrap();
}
