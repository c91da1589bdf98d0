//! Two processes with the key of one member.

use std::time::Duration;

use super::common::{config, contact, end, notice, spawn, up, wait};
use mesh::{Config, Event, Notice, Transport};
use protocol::MemberIndex;
use tokio::time::sleep;

/// A process with this number.
fn process(instance: u64, transport: Transport) -> Config {
    Config {
        instance,
        look: Duration::from_millis(200),
        ..config(transport)
    }
}

fn elsewhere(event: Event) -> Option<()> {
    matches!(event, Event::KeyElsewhere).then_some(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_and_its_original_meet_at_the_address_of_the_roster() {
    for transport in [Transport::Quic, Transport::Tcp] {
        // The original, first started to find a free port.
        let first = spawn(process(1, transport), 0, &[contact(0, &[])]).await;
        let listen = first.addresses.clone();
        end(first).await;
        let roster = [contact(0, &listen)];
        let original = Config {
            listen,
            ..process(1, transport)
        };
        let mut original = spawn(original, 0, &roster).await;
        let mut copy = spawn(process(2, transport), 0, &roster).await;
        for mesh in [&mut original, &mut copy] {
            wait(mesh, elsewhere).await;
            let notice = notice(mesh).await;
            let Notice::KeyElsewhere { address } = &notice else {
                panic!("{notice:?}");
            };
            assert!(address.is_some());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_member_informs_both_processes_with_one_key() {
    for transport in [Transport::Quic, Transport::Tcp] {
        for (other, shared) in [(0, 1), (1, 0)] {
            let members = [contact(0, &[]), contact(1, &[])];
            let mut host = spawn(process(1, transport), other, &members).await;
            let roster = [contact(other, &host.addresses), contact(shared, &[])];
            let mut original = spawn(process(2, transport), shared, &roster).await;
            wait(&mut original, up).await;
            let mut copy = spawn(process(3, transport), shared, &roster).await;
            wait(&mut original, elsewhere).await;
            wait(&mut copy, elsewhere).await;
            let notice = notice(&mut host).await;
            let Notice::Twins { member, addresses } = &notice else {
                panic!("{notice:?}");
            };
            assert_eq!(*member, MemberIndex(shared));
            assert_ne!(addresses[0], addresses[1]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_reconnections_and_two_transports_are_no_twin() {
    let members = [contact(0, &[]), contact(1, &[])];
    let mut host = spawn(process(1, Transport::Both), 0, &members).await;
    let mut listen = Transport::Both.addresses("127.0.0.1", 0);
    for instance in 2..6 {
        let roster = [contact(0, &host.addresses), contact(1, &listen)];
        // The process knows its own address, and looks there.
        let again = Config {
            listen: listen.clone(),
            ..process(instance, Transport::Both)
        };
        let mut member = spawn(again, 1, &roster).await;
        wait(&mut member, up).await;
        wait(&mut host, up).await;
        sleep(Duration::from_millis(500)).await;
        while let Ok(event) = member.events.try_recv() {
            assert!(elsewhere(event).is_none(), "process {instance}");
        }
        listen = member.addresses.clone();
        assert!(member.notices.try_recv().is_err(), "process {instance}");
        end(member).await;
    }
    assert!(host.notices.try_recv().is_err());
    while let Ok(event) = host.events.try_recv() {
        assert!(elsewhere(event).is_none());
    }
}
