//! Checks of a member's address, and what a running node notices of them.

use std::time::Duration;

use mesh::{
    Config, Contact, Event, Handle, Met, Notice, ProbeError, Prober, Program, Rehearsal, Transport,
    probe_key,
};
use protocol::{Formats, Hash, MemberIndex};
use tokio::time::timeout;

use super::common::{self, PATIENCE, contact, notice, public, secret, up, wait};

/// How long an address is tried at which nobody answers.
const SHORT: Duration = Duration::from_secs(2);

fn ours() -> Hash {
    Hash::of(b"ours")
}

async fn spawn(federation: Hash, me: u16, transport: Transport, roster: &[Contact]) -> Handle {
    common::spawn(common::of(federation, transport), me, roster).await
}

/// A check of member `peer` at the first address of `host`.
async fn look(
    key: [u8; 32],
    federation: Hash,
    peer: u16,
    host: &Handle,
) -> Result<Met, ProbeError> {
    let prober = prober(key, federation);
    mesh::probe(&prober, &public(peer), &host.addresses[0], PATIENCE).await
}

fn prober(key: [u8; 32], federation: Hash) -> Prober {
    Prober {
        key,
        federation,
        challenge: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_met_with_its_federation_round_trip_and_clock() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let members = [contact(0, &[]), contact(1, &[])];
        let host = spawn(ours(), 0, transport, &members).await;
        let met = look(secret(1), ours(), 0, &host);
        let met = met.await.unwrap();
        assert_eq!(met.federation, ours());
        assert!(
            met.ahead.abs() < 2.0 && !met.program.version.is_empty(),
            "{met:?}"
        );
        assert!(
            met.round_trip > Duration::ZERO && met.round_trip < SHORT,
            "{met:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_agreement_is_named_to_the_check_and_to_the_checked_node() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let members = [contact(0, &[]), contact(1, &[])];
        let mut host = spawn(ours(), 0, transport, &members).await;
        let theirs = Hash::of(b"theirs");
        let met = look(secret(1), theirs, 0, &host);
        assert_eq!(met.await.unwrap().federation, ours());
        let expected = Notice::OtherAgreement {
            member: MemberIndex(1),
            federation: theirs,
            probing: true,
        };
        assert_eq!(notice(&mut host).await, expected);
        // It is named once, and not again at once.
        let again = look(secret(1), theirs, 0, &host);
        assert_eq!(again.await.unwrap().federation, ours());
        assert!(host.notices.try_recv().is_err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_running_nodes_with_different_agreements_both_name_it() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let mut host = spawn(ours(), 0, transport, &[contact(0, &[]), contact(1, &[])]).await;
        let theirs = Hash::of(b"theirs");
        let roster = [contact(0, &host.addresses), contact(1, &[])];
        let mut other = spawn(theirs, 1, transport, &roster).await;
        for (mesh, member, federation) in [(&mut host, 1, theirs), (&mut other, 0, ours())] {
            let expected = Notice::OtherAgreement {
                member: MemberIndex(member),
                federation,
                probing: false,
            };
            assert_eq!(notice(mesh).await, expected);
        }
    }
}

/// As `spawn`, with a program that says this of itself.
async fn spawn_program(program: &Program, me: u16, roster: &[Contact]) -> Handle {
    let config = Config {
        program: program.clone(),
        ..common::of(ours(), Transport::Quic)
    };
    common::spawn(config, me, roster).await
}

fn program(version: &str, newest: u8, in_force: u8) -> Program {
    Program {
        version: version.into(),
        formats: Formats { oldest: 1, newest },
        in_force: Some(in_force),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_of_which_one_does_not_speak_the_format_in_force_both_name_it() {
    let (new, old) = (program("0.2.0", 2, 2), program("0.1.0", 1, 1));
    let mut host = spawn_program(&new, 0, &[contact(0, &[]), contact(1, &[])]).await;
    let roster = [contact(0, &host.addresses), contact(1, &[])];
    let mut other = spawn_program(&old, 1, &roster).await;
    for (mesh, member, program) in [(&mut host, 1, &old), (&mut other, 0, &new)] {
        let expected = Notice::OtherFormat {
            member: MemberIndex(member),
            program: program.clone(),
        };
        assert_eq!(notice(mesh).await, expected);
        // They stay connected: the newer shows the older the way to the agreement in force.
        wait(mesh, up).await;
        assert_eq!(mesh.peers.list()[0].program.as_ref(), Some(program));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_different_versions_with_a_common_format_in_force_work_together() {
    let (new, old) = (program("0.2.0", 2, 1), program("0.1.0", 1, 1));
    let mut host = spawn_program(&new, 0, &[contact(0, &[]), contact(1, &[])]).await;
    let roster = [contact(0, &host.addresses), contact(1, &[])];
    let mut other = spawn_program(&old, 1, &roster).await;
    for mesh in [&mut host, &mut other] {
        wait(mesh, up).await;
    }
    // A check of the host shows its version. The handshake before it was answered, with no notice.
    let met = look(probe_key(&secret(1)), ours(), 0, &host).await.unwrap();
    assert_eq!(met.program, new);
    assert!(host.notices.try_recv().is_err() && other.notices.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_outside_the_roster_is_turned_away_and_named() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let mut host = spawn(ours(), 0, transport, &[contact(0, &[]), contact(1, &[])]).await;
        let met = look(secret(7), ours(), 0, &host);
        assert_eq!(met.await, Err(ProbeError::TurnedAway));
        let Notice::Stranger { key, address } = notice(&mut host).await else {
            panic!("another notice");
        };
        assert_eq!(key, Some(public(7)));
        assert!(address.starts_with("/ip4/127.0.0.1/"), "{address}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_beside_a_running_node_does_not_disturb_its_connection() {
    for transport in [Transport::Quic, Transport::Tcp] {
        let members = [contact(0, &[]), contact(1, &[])];
        let mut host = spawn(ours(), 0, transport, &members).await;
        let roster = [contact(0, &host.addresses), contact(1, &[])];
        let mut node = spawn(ours(), 1, transport, &roster).await;
        wait(&mut node, up).await;
        wait(&mut host, up).await;
        // The node has greeted before or just after; until then the other key is unknown.
        let met = async {
            loop {
                let key = probe_key(&secret(1));
                match look(key, ours(), 0, &host).await {
                    Err(ProbeError::TurnedAway) => continue,
                    other => break other,
                }
            }
        };
        let met = timeout(PATIENCE, met).await.unwrap().unwrap();
        assert_eq!(met.federation, ours());
        for mesh in [&mut host, &mut node] {
            let ended = std::iter::from_fn(|| mesh.events.try_recv().ok());
            let mut ended = ended.filter(|event| matches!(event, Event::Down { .. }));
            assert!(ended.next().is_none());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_other_failure_says_how_far_the_check_came() {
    let host = spawn(
        ours(),
        0,
        Transport::Both,
        &[contact(0, &[]), contact(1, &[])],
    )
    .await;
    // Another key than the member's.
    for address in &host.addresses {
        let met = mesh::probe(&prober(secret(1), ours()), &public(5), address, PATIENCE).await;
        assert_eq!(met, Err(ProbeError::OtherKey(Some(public(0)))), "{address}");
    }
    let tried = async |address: &str| {
        mesh::probe(&prober(secret(1), ours()), &public(0), address, SHORT)
            .await
            .unwrap_err()
    };
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    assert_eq!(
        tried(&format!("/ip4/127.0.0.1/tcp/{port}")).await,
        ProbeError::Refused
    );
    // A socket that reads and never answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let udp = format!("/ip4/127.0.0.1/udp/{port}/quic-v1");
    assert_eq!(tried(&udp).await, ProbeError::Silent(SHORT));
    let nowhere = tried("/dns/nowhere.invalid/tcp/4001").await;
    assert!(
        matches!(&nowhere, ProbeError::Unresolved(why) if why.contains("nowhere.invalid does not resolve")),
        "{nowhere:?}"
    );
    let wrong = tried("nowhere:4001").await;
    assert!(matches!(wrong, ProbeError::Unusable(_)), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_challenge_is_answered_to_a_check_and_only_where_there_is_an_answer() {
    let members = [contact(0, &[]), contact(1, &[])];
    for answers in [true, false] {
        let mut config = common::of(ours(), Transport::Quic);
        if answers {
            config.rehearsal = Rehearsal::new(|mut challenge| {
                challenge.reverse();
                Some(challenge)
            });
        }
        let host = common::spawn(config, 0, &members).await;
        let mut challenge = [1; 32];
        challenge[0] = 9;
        let prober = Prober {
            challenge: Some(challenge),
            ..prober(secret(1), ours())
        };
        let met = mesh::probe(&prober, &public(0), &host.addresses[0], PATIENCE).await;
        challenge.reverse();
        assert_eq!(met.unwrap().rehearsal, answers.then_some(challenge));
        // Without a challenge there is no answer.
        let met = look(secret(1), ours(), 0, &host).await;
        assert_eq!(met.unwrap().rehearsal, None);
    }
}
