//! What the libp2p mesh promises beyond the contract: strangers, restarts, bad input.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use bytes::Bytes;
use mesh::{Command, Config, Contact, Event, Handle, MeshError, Transport, Wish};
use protocol::{Hash, MemberIndex, SecretKey};
use tokio::runtime;
use tokio::time::timeout;

fn contact(member: u16, addresses: &[String]) -> Contact {
    Contact {
        member: MemberIndex(member),
        key: SecretKey::from_bytes(&[member as u8; 32]).public(),
        addresses: addresses.to_vec(),
    }
}

fn config(transport: Transport, port: u16) -> Config {
    let listen = transport.addresses("127.0.0.1", port);
    Config {
        transport,
        ..Config::new(Hash::of(b"mesh"), listen)
    }
}

async fn spawn(config: Config, me: u16, roster: &[Contact]) -> Result<Handle, MeshError> {
    mesh::spawn(
        &runtime::Handle::current(),
        config,
        [me as u8; 32],
        roster.to_vec(),
    )
    .await
}

async fn wait<T>(mesh: &mut Handle, mut pick: impl FnMut(Event) -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = pick(mesh.events.recv().await.expect("the mesh lives")) {
                return found;
            }
        }
    };
    timeout(Duration::from_secs(30), found)
        .await
        .expect("it comes in time")
}

fn up(event: Event) -> Option<MemberIndex> {
    match event {
        Event::Up { peer, .. } => Some(peer),
        _ => None,
    }
}

fn down(event: Event) -> Option<MemberIndex> {
    match event {
        Event::Down { peer } => Some(peer),
        _ => None,
    }
}

fn frame(event: Event) -> Option<Bytes> {
    match event {
        Event::Received { frame, .. } => Some(frame),
        _ => None,
    }
}

fn port(mesh: &Handle) -> u16 {
    let parts: Vec<_> = mesh.addresses[0].split('/').collect();
    parts[4].parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_is_not_let_in() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let members = [contact(0, &[]), contact(1, &[])];
        let mut host = spawn(config(transport, 0), 0, &members).await.unwrap();
        // Member 2 is in its own roster alone.
        let known = contact(0, &host.addresses);
        let roster = [known.clone(), contact(2, &[])];
        let mut stranger = spawn(config(transport, 0), 2, &roster).await.unwrap();
        let to = MemberIndex(0);
        stranger
            .commands
            .send(Command::Send {
                to,
                frame: "in".into(),
            })
            .await
            .unwrap();
        let hash = Hash::of(b"secret");
        let (blobs, from) = (vec![Wish { hash, limit: 10 }], vec![to]);
        stranger
            .commands
            .send(Command::Fetch { blobs, from })
            .await
            .unwrap();
        wait(&mut stranger, |event| {
            matches!(event, Event::Missing { .. }).then_some(())
        })
        .await;
        // A member comes after it; nothing of the stranger came before.
        let mut member = spawn(config(transport, 0), 1, &[known, contact(1, &[])])
            .await
            .unwrap();
        wait(&mut member, up).await;
        let first = timeout(Duration::from_secs(30), host.events.recv())
            .await
            .unwrap()
            .unwrap();
        assert!(
            matches!(
                first,
                Event::Up {
                    peer: MemberIndex(1),
                    ..
                }
            ),
            "{first:?}"
        );
        assert!(stranger.events.try_recv().is_err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_comes_back_at_its_port_is_found_by_those_who_wait() {
    for transport in [Transport::Quic, Transport::Tcp, Transport::Both] {
        let members = [contact(0, &[]), contact(1, &[])];
        let mut host = spawn(config(transport, 0), 0, &members).await.unwrap();
        let port = port(&host);
        let addresses = transport.addresses("127.0.0.1", port);
        let roster = [contact(0, &addresses), contact(1, &[])];
        let mut waiting = spawn(config(transport, 0), 1, &roster).await.unwrap();
        wait(&mut waiting, up).await;
        wait(&mut host, up).await;
        let Handle {
            commands,
            events,
            ended,
            ..
        } = host;
        drop((commands, events));
        ended.await.unwrap();
        wait(&mut waiting, down).await;
        let at = config(
            if transport == Transport::Both {
                Transport::Quic
            } else {
                transport
            },
            port,
        );
        let mut host = spawn(at, 0, &members).await.unwrap();
        wait(&mut waiting, up).await;
        wait(&mut host, up).await;
        let to = MemberIndex(1);
        host.commands
            .send(Command::Send {
                to,
                frame: "again".into(),
            })
            .await
            .unwrap();
        assert_eq!(wait(&mut waiting, frame).await, "again");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_quic_does_not_get_through_tcp_does() {
    let members = [contact(0, &[]), contact(1, &[])];
    let host = spawn(config(Transport::Tcp, 0), 0, &members).await.unwrap();
    // Nobody answers at the UDP port of that number.
    let addresses = Transport::Both.addresses("127.0.0.1", port(&host));
    let roster = [contact(0, &addresses), contact(1, &[])];
    let mut other = spawn(config(Transport::Both, 0), 1, &roster).await.unwrap();
    assert_eq!(wait(&mut other, up).await, MemberIndex(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_over_the_readers_limit_is_lost_and_the_next_arrives() {
    let small = Config {
        frame: 1000,
        ..config(Transport::Tcp, 0)
    };
    let mut reader = spawn(small, 0, &[contact(0, &[]), contact(1, &[])])
        .await
        .unwrap();
    let roster = [contact(0, &reader.addresses), contact(1, &[])];
    let mut writer = spawn(config(Transport::Tcp, 0), 1, &roster).await.unwrap();
    wait(&mut writer, up).await;
    let to = MemberIndex(0);
    let send = |length| Command::Send {
        to,
        frame: vec![1; length].into(),
    };
    writer.commands.send(send(1000)).await.unwrap();
    assert_eq!(wait(&mut reader, frame).await.len(), 1000);
    writer.commands.send(send(1001)).await.unwrap();
    // The stream is closed; the first frame into a closed stream may be lost, the member is kept.
    let next = async {
        loop {
            writer.commands.send(send(999)).await.unwrap();
            if let Ok(event) = timeout(Duration::from_millis(200), reader.events.recv()).await {
                match event.unwrap() {
                    Event::Received { frame, .. } => break frame.len(),
                    Event::Down { .. } => panic!("the member was dropped"),
                    _ => {}
                }
            }
        }
    };
    assert_eq!(timeout(Duration::from_secs(30), next).await.unwrap(), 999);
}

#[tokio::test]
async fn bad_input_is_refused_with_a_sentence_that_helps() {
    let roster = [contact(0, &[]), contact(1, &[])];
    let error = spawn(config(Transport::Both, 0), 7, &roster)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("is not in the roster"), "{error}");

    for transport in [Transport::Quic, Transport::Tcp] {
        let first = spawn(config(transport, 0), 0, &roster).await.unwrap();
        let second = spawn(config(transport, port(&first)), 1, &roster).await;
        let error = second.unwrap_err().to_string();
        assert!(error.contains("choose another port"), "{error}");
    }
    let elsewhere = Config::new(Hash::of(b"mesh"), Transport::Tcp.addresses("192.0.2.1", 0));
    let error = spawn(elsewhere, 0, &roster).await.unwrap_err().to_string();
    assert!(error.contains("/ip4/0.0.0.0"), "{error}");

    let named = Config::new(Hash::of(b"mesh"), Transport::Tcp.addresses("localhost", 0));
    let error = spawn(named, 0, &roster).await.unwrap_err().to_string();
    assert!(error.contains("not at a name"), "{error}");

    let wrong = Config {
        listen: Transport::Tcp.addresses("127.0.0.1", 0),
        ..config(Transport::Quic, 0)
    };
    let error = spawn(wrong, 0, &roster).await.unwrap_err().to_string();
    assert!(error.contains("Quic alone"), "{error}");

    let lost = [
        contact(0, &[]),
        contact(1, &["node.example.org:4400".into()]),
    ];
    let error = spawn(config(Transport::Both, 0), 0, &lost)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"node.example.org:4400\" is not an address"),
        "{error}"
    );
}
