//! Members in different epochs, former members, and institutions that are to be admitted.

use std::time::{Duration, Instant};

use super::common::{
    PATIENCE, command, config, contact, down, public, received, send, spawn, up, wait,
};
use bytes::Bytes;
use mesh::{BlobRequest, Command, Config, Event, Handle, Transport};
use protocol::{Hash, MemberIndex};
use tokio::time::{interval, timeout};

/// The former member: its key, and its position at members.
const FORMER: u16 = 7;
const GUEST: MemberIndex = MemberIndex(2);

fn later() -> Hash {
    Hash::of(b"the later epoch")
}

/// Of a member of the later epoch.
fn present(transport: Transport) -> Config {
    Config {
        epoch: later(),
        guests: vec![public(FORMER)],
        ..config(transport)
    }
}

async fn publish(mesh: &Handle, frame: &Bytes) {
    let frame = frame.clone();
    command(mesh, Command::Publish { frame }).await;
}

async fn fetch(mesh: &mut Handle, from: u16) -> bool {
    let hash = Hash::of(b"a model");
    let (blobs, from) = (
        vec![BlobRequest { hash, limit: 10 }],
        vec![MemberIndex(from)],
    );
    command(mesh, Command::Fetch { blobs, from }).await;
    wait(mesh, |event| match event {
        Event::Missing { .. } => Some(false),
        Event::Fetched { .. } => Some(true),
        _ => None,
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_member_gets_only_what_is_sent_whatever_it_asks_for() {
    for transport in [Transport::Quic, Transport::Tcp] {
        // It claims to be in either epoch.
        for claimed in [Hash::of(b"the former epoch"), later()] {
            let members = [contact(0, &[]), contact(1, &[])];
            let mut host = spawn(present(transport), 0, &members).await;
            let here = host.addresses.clone();
            let roster = [contact(0, &here), contact(1, &[])];
            let mut member = spawn(present(transport), 1, &roster).await;
            assert_eq!(wait(&mut member, up).await, MemberIndex(0));
            assert_eq!(wait(&mut host, up).await, MemberIndex(1));
            let roster = [contact(0, &here), contact(1, &[]), contact(FORMER, &[])];
            let epoch = claimed;
            let old = Config {
                epoch,
                ..config(transport)
            };
            let mut former = spawn(old, FORMER, &roster).await;
            assert_eq!(wait(&mut former, up).await, MemberIndex(0));
            send(&former, 0, "its frame").await;
            let (from, frame) = wait(&mut host, received).await;
            assert_eq!((from, &frame[..]), (GUEST, &b"its frame"[..]));

            // By gossip, directly, and repeated.
            let small = Bytes::from(vec![1; 100]);
            let large = Bytes::from(vec![2; 200_000]);
            for frame in [&small, &large, &small] {
                publish(&host, frame).await;
            }
            let mut left = vec![small, large];
            while !left.is_empty() {
                let (_, frame) = wait(&mut member, received).await;
                left.retain(|other| *other != frame);
            }
            publish(&former, &Bytes::from_static(b"its gossip")).await;
            assert!(!fetch(&mut former, 0).await);
            send(&host, GUEST.0, "the proof").await;
            let (_, frame) = wait(&mut former, received).await;
            assert_eq!(frame, "the proof");
            while let Ok(event) = former.events.try_recv() {
                assert!(received(event).is_none());
            }
            // It is no peer: nothing says so, and what it published is none of gossip.
            send(&member, 0, "the end").await;
            loop {
                match host.events.recv().await.unwrap() {
                    Event::Up { peer, .. } | Event::Down { peer } => assert_ne!(peer, GUEST),
                    Event::Wanted { .. } => panic!("it asked for a blob"),
                    Event::Received { from, ticket, .. } => {
                        assert!(from != GUEST || ticket.is_none());
                        if from != GUEST {
                            break;
                        }
                    }
                    _ => {}
                }
            }
            let known: Vec<_> = host.peers.list().iter().map(|peer| peer.member).collect();
            assert_eq!(known, [MemberIndex(1)]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_in_different_epochs_exchange_frames_and_no_blobs() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let members = [contact(0, &[]), contact(1, &[])];
        let mut host = spawn(present(transport), 0, &members).await;
        let roster = [contact(0, &host.addresses), contact(1, &[])];
        let mut behind = spawn(config(transport), 1, &roster).await;
        assert_eq!(wait(&mut behind, up).await, MemberIndex(0));
        send(&behind, 0, "of the former epoch").await;
        let (from, frame) = wait(&mut host, received).await;
        assert_eq!(
            (from, &frame[..]),
            (MemberIndex(1), &b"of the former epoch"[..])
        );
        send(&host, 1, "the proof").await;
        assert_eq!(wait(&mut behind, received).await.1, "the proof");
        assert!(!fetch(&mut behind, 0).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_member_stays_for_a_while_and_is_refused_then() {
    let short = Config {
        stay: Duration::from_secs(1),
        ..present(Transport::Tcp)
    };
    let mut host = spawn(short, 0, &[contact(0, &[])]).await;
    let roster = [contact(0, &host.addresses), contact(FORMER, &[])];
    let mut former = spawn(config(Transport::Tcp), FORMER, &roster).await;
    assert_eq!(wait(&mut former, up).await, MemberIndex(0));
    assert_eq!(wait(&mut former, down).await, MemberIndex(0));
    let again = timeout(Duration::from_secs(2), wait(&mut former, up)).await;
    assert!(again.is_err(), "it is refused");
    let attempts = former.peers.list()[0].attempts;
    assert!(attempts > 0, "it tried");
    assert!(host.notices.try_recv().is_err(), "it is no stranger");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_with_awaited_keys_are_reported_others_are_strangers() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let mut host = spawn(present(transport), 0, &[contact(0, &[])]).await;
        let keys = vec![public(8), public(FORMER)];
        command(&host, Command::Await { keys }).await;
        let here = host.addresses.clone();
        let roster = |me: u16| [contact(0, &here), contact(me, &[])];
        let arrived = |event| match event {
            Event::Arrived { key } => Some(key),
            _ => None,
        };
        let new = spawn(config(transport), 8, &roster(8)).await;
        assert_eq!(wait(&mut host, arrived).await, public(8));
        // Again, as long as it tries.
        assert_eq!(wait(&mut host, arrived).await, public(8));
        assert!(host.notices.try_recv().is_err());
        drop(new);
        // A former member that is to be admitted again is connected, and reported all the same.
        let former = spawn(config(transport), FORMER, &roster(FORMER)).await;
        while wait(&mut host, arrived).await != public(FORMER) {}
        drop(former);
        let _stranger = spawn(config(transport), 9, &roster(9)).await;
        let notice = timeout(PATIENCE, host.notices.recv()).await.unwrap();
        assert!(
            matches!(notice, Some(mesh::Notice::Stranger { .. })),
            "{notice:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_member_is_read_slowly_after_a_burst() {
    let mut host = spawn(present(Transport::Tcp), 0, &[contact(0, &[])]).await;
    let roster = [contact(0, &host.addresses), contact(FORMER, &[])];
    let mut former = spawn(config(Transport::Tcp), FORMER, &roster).await;
    assert_eq!(wait(&mut former, up).await, MemberIndex(0));
    for number in 0..120u8 {
        send(&former, 0, vec![number]).await;
    }
    // A hundred at once, and ten a second from then on.
    let began = Instant::now();
    for number in 0..120u8 {
        let (from, frame) = wait(&mut host, received).await;
        // It stands behind the only member.
        assert_eq!((from, &frame[..]), (MemberIndex(1), &[number][..]));
    }
    let took = began.elapsed();
    assert!(took > Duration::from_secs(1), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_member_is_not_relayed_to_members() {
    let transport = Transport::Tcp;
    let shut = |config: Config| Config {
        listen: Vec::new(),
        dials_only: true,
        ..config
    };
    let host = spawn(present(transport), 0, &[contact(0, &[]), contact(1, &[])]).await;
    let here = contact(0, &host.addresses);
    // It can be reached through the host only, and would let the former member in.
    let roster = [here.clone(), contact(1, &[])];
    let mut member = spawn(shut(present(transport)), 1, &roster).await;
    assert_eq!(wait(&mut member, up).await, MemberIndex(0));
    let roster = [here, contact(1, &[]), contact(FORMER, &[])];
    let mut former = spawn(shut(config(transport)), FORMER, &roster).await;
    assert_eq!(wait(&mut former, up).await, MemberIndex(0));
    let mut look = interval(Duration::from_millis(20));
    let refused = async {
        loop {
            let states = former.peers.list();
            let one = states.iter().find(|state| state.member == MemberIndex(1));
            let one = one.unwrap();
            assert!(one.connected.is_none(), "{one:?}");
            if one.attempts > 4 {
                break;
            }
            look.tick().await;
        }
    };
    timeout(PATIENCE, refused).await.unwrap();
}
