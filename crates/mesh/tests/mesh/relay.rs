//! Members that no other node can dial: reached through members that are connected to both sides, and
//! directly where that is possible.

use std::time::Duration;

use bytes::Bytes;
use mesh::{BlobRequest, Command, Config, Event, Handle, PeerState, Transport};
use protocol::{Hash, MemberIndex};
use tokio::time::{interval, timeout};

use super::common::{PATIENCE, config, contact, end, spawn, wait};

/// Blobs far larger than what libp2p relays without being told otherwise (128 KiB), and than what may
/// arrive in one burst.
const BLOB: usize = 6 << 20;

/// Of a node that others can dial.
fn open(transport: Transport) -> Config {
    Config {
        last_retry: Duration::from_secs(1),
        ..config(transport)
    }
}

/// Of a node that accepts no connection at all.
fn shut(transport: Transport) -> Config {
    Config {
        listen: Vec::new(),
        dials_only: true,
        ..open(transport)
    }
}

async fn up(mesh: &mut Handle, member: u16) {
    wait(mesh, |event| match event {
        Event::Up { peer, .. } if peer.0 == member => Some(()),
        _ => None,
    })
    .await;
}

async fn down(mesh: &mut Handle, member: u16) {
    wait(mesh, |event| match event {
        Event::Down { peer } if peer.0 == member => Some(()),
        _ => None,
    })
    .await;
}

fn state(mesh: &Handle, member: u16) -> PeerState {
    let mut all = mesh.peers.list().into_iter();
    all.find(|state| state.member.0 == member).unwrap()
}

/// Waits until what is known of a member is so.
async fn becomes(mesh: &Handle, member: u16, is: impl Fn(&PeerState) -> bool) {
    let look = async {
        let mut look = interval(Duration::from_millis(5));
        while !is(&state(mesh, member)) {
            look.tick().await;
        }
    };
    let came = timeout(PATIENCE, look).await;
    assert!(came.is_ok(), "{:?}", state(mesh, member));
}

/// Sends a frame to a member, and waits until it arrives from this one.
async fn say(from: (&Handle, u16), to: (&mut Handle, u16), word: &'static str) {
    let send = Command::Send {
        to: MemberIndex(to.1),
        frame: word.into(),
    };
    from.0.commands.send(send).await.unwrap();
    wait(to.0, |event| match event {
        Event::Received {
            from: of, frame, ..
        } if frame == word => {
            assert_eq!(of.0, from.1);
            Some(())
        }
        _ => None,
    })
    .await;
}

/// Fetches a blob from a member.
async fn fetch(asker: &mut Handle, from: (&mut Handle, u16), byte: u8) {
    let blob = Bytes::from(vec![byte; BLOB]);
    let hash = Hash::of(&blob);
    let limit = BLOB as u64;
    let fetch = Command::Fetch {
        blobs: vec![BlobRequest { hash, limit }],
        from: vec![MemberIndex(from.1)],
    };
    asker.commands.send(fetch).await.unwrap();
    let serve = async {
        loop {
            let ticket = wait(from.0, |event| match event {
                Event::Wanted { ticket, .. } => Some(ticket),
                _ => None,
            })
            .await;
            let blobs = vec![Some(blob.clone())];
            let serve = Command::Serve { ticket, blobs };
            from.0.commands.send(serve).await.unwrap();
        }
    };
    let came = wait(asker, |event| match event {
        Event::Fetched { blobs } => Some(blobs),
        Event::Missing { .. } => panic!("the fetch ended without the blob"),
        _ => None,
    });
    tokio::select! {
        () = serve => unreachable!("it serves until the blob is there"),
        came = came => assert_eq!(came, [(hash, blob.clone())]),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_nobody_can_dial_exchange_data_over_relays_that_die() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let roster = [0, 1, 2, 3].map(|member| contact(member, &[]));
        let mut relays = [
            Some(spawn(open(transport), 0, &roster).await),
            Some(spawn(open(transport), 1, &roster).await),
        ];
        let mut roster = roster;
        for (relay, contact) in relays.iter().flatten().zip(&mut roster) {
            contact.addresses = relay.addresses.clone();
        }
        let mut a = spawn(shut(transport), 2, &roster).await;
        let mut b = spawn(shut(transport), 3, &roster).await;
        up(&mut a, 3).await;
        up(&mut b, 2).await;
        becomes(&a, 3, |state| state.through.is_some()).await;
        let first = state(&a, 3).through.unwrap();
        becomes(&b, 2, |state| state.through == Some(first)).await;
        assert_eq!(state(&a, 0).through, None);
        say((&a, 2), (&mut b, 3), "there").await;
        say((&b, 3), (&mut a, 2), "and back").await;
        fetch(&mut a, (&mut b, 3), 1).await;
        fetch(&mut b, (&mut a, 2), 2).await;

        // What a member sends is charged to it, not to the member that passes it on.
        let (peer, span) = (MemberIndex(3), Duration::from_secs(600));
        let mute = Command::Mute { peer, span };
        a.commands.send(mute).await.unwrap();
        let relay = relays[first.at()].as_mut().unwrap();
        // Commands are obeyed in order: once this one has arrived, the member is mute.
        say((&a, 2), (relay, first.0), "it is mute").await;
        let to = MemberIndex(2);
        let frame = "of the muted one".into();
        let send = Command::Send { to, frame };
        b.commands.send(send).await.unwrap();
        let word = "of the relay";
        let frame = word.into();
        let send = Command::Send { to, frame };
        relay.commands.send(send).await.unwrap();
        let came = wait(&mut a, |event| match event {
            Event::Received { frame, .. } => Some(frame),
            _ => None,
        });
        assert_eq!(came.await, word);

        // The relay dies: the other one takes its place.
        end(relays[first.at()].take().unwrap()).await;
        down(&mut b, 2).await;
        up(&mut b, 2).await;
        let other = MemberIndex(1 - first.0);
        becomes(&b, 2, |state| state.through == Some(other)).await;
        say((&a, 2), (&mut b, 3), "once more").await;
        fetch(&mut a, (&mut b, 3), 3).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_may_not_relay_is_passed_over() {
    let transport = Transport::Quic;
    let roster = [0, 1, 2, 3].map(|member| contact(member, &[]));
    let unwilling = Config {
        relay: false,
        ..open(transport)
    };
    let one = spawn(unwilling.clone(), 0, &roster).await;
    let other = spawn(unwilling, 1, &roster).await;
    let mut roster = roster;
    roster[0].addresses = one.addresses.clone();
    roster[1].addresses = other.addresses.clone();
    let mut a = spawn(shut(transport), 2, &roster).await;
    let mut b = spawn(shut(transport), 3, &roster).await;
    let refused = |state: &PeerState| {
        let problem = state.problem.as_ref();
        state.attempts > 2 && problem.is_some_and(|problem| problem.why.contains("another member"))
    };
    becomes(&a, 3, refused).await;
    // With one that is willing at the same place they meet.
    end(other).await;
    let at = roster[1].addresses.clone();
    let willing = Config {
        listen: at,
        ..open(transport)
    };
    let _other = spawn(willing, 1, &roster).await;
    up(&mut a, 3).await;
    up(&mut b, 2).await;
    assert_eq!(state(&a, 3).through, Some(MemberIndex(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_blocked_from_another_is_reached_through_a_third() {
    let transport = Transport::Tcp;
    let roster = [0, 1, 2].map(|member| contact(member, &[]));
    let relay = spawn(open(transport), 1, &roster).await;
    let mut roster = roster;
    roster[1].addresses = relay.addresses.clone();
    let mut one = spawn(open(transport), 0, &roster).await;
    // Nothing listens there: this member cannot dial the first one.
    roster[0].addresses = transport.addresses("127.0.0.1", 9);
    let mut shut_off = spawn(shut(transport), 2, &roster).await;
    up(&mut one, 2).await;
    assert_eq!(state(&one, 2).through, Some(MemberIndex(1)));
    up(&mut shut_off, 0).await;
    assert_eq!(state(&shut_off, 0).through, Some(MemberIndex(1)));
    say((&shut_off, 2), (&mut one, 0), "there").await;
    say((&one, 0), (&mut shut_off, 2), "and back").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_behind_permissive_nats_get_a_direct_connection() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let roster = [0, 1, 2].map(|member| contact(member, &[]));
        let relay = spawn(open(transport), 0, &roster).await;
        let mut roster = roster;
        roster[0].addresses = relay.addresses.clone();
        // Nobody knows where they listen; the relay sees it.
        let inside = || Config {
            dials_only: true,
            ..open(transport)
        };
        let mut a = spawn(inside(), 1, &roster).await;
        let mut b = spawn(inside(), 2, &roster).await;
        up(&mut a, 2).await;
        up(&mut b, 1).await;
        let direct = |state: &PeerState| state.connected.is_some() && state.through.is_none();
        becomes(&a, 2, direct).await;
        becomes(&b, 1, direct).await;
        // They need the relay no more.
        end(relay).await;
        down(&mut a, 0).await;
        say((&a, 1), (&mut b, 2), "there").await;
        say((&b, 2), (&mut a, 1), "and back").await;
    }
}
