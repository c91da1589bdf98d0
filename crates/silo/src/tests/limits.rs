//! Limits on what one member may cost a silo: budgets, mutes and notices.

use std::time::Duration;

use bytes::Bytes;
use protocol::envelope::sign;
use protocol::message::{Body, Phase};
use protocol::net::{Acceptance, Command, Event};
use protocol::{Epoch, MemberIndex};
use tokio::time::sleep;

use crate::testing::*;
use crate::{Checks, Notice, spawn};

const FLOODER: u16 = 3;

/// Progress of the first view, by the flooder.
fn progress(epoch: &Epoch, signer: u16, counter: u64) -> Bytes {
    let phase = Phase::Collecting;
    let body = Body::Progress { phase, counter };
    sign(epoch, &key(signer), 0, 1, MemberIndex(FLOODER), body).1
}

/// Receives this many frames of the flooder, one a millisecond. Returns the commands and notices of
/// the silo.
fn flooded(
    frames: u64,
    ticket: impl Fn(u64) -> Option<u64>,
    frame: impl Fn(&Epoch, u64) -> Bytes,
) -> (Vec<Command>, Vec<Notice>, crate::Counts) {
    virtually(async {
        let (rig, epoch) = (Rig::new(Checks::new(false)), epoch(4, 1));
        let (environment, mut ends) = rig.environment();
        let silo = spawn(config(&epoch, 0), environment).unwrap();
        let mut sent = Vec::new();
        for number in 0..frames {
            let event = Event::Received {
                from: MemberIndex(FLOODER),
                frame: frame(&epoch, number),
                ticket: ticket(number),
            };
            ends.events.send(event).await.unwrap();
            sleep(Duration::from_millis(1)).await;
            while let Ok(command) = ends.commands.try_recv() {
                sent.push(command);
            }
        }
        let notices = rig.notices.borrow();
        let notices = notices.iter().map(|(_, notice)| notice.clone()).collect();
        (sent, notices, silo.counts())
    })
}

fn verdicts(sent: &[Command]) -> Vec<(u64, Acceptance)> {
    let verdict = |command: &Command| match command {
        Command::Judge { ticket, verdict } => Some((*ticket, *verdict)),
        _ => None,
    };
    sent.iter().filter_map(verdict).collect()
}

fn mutes(sent: &[Command]) -> Vec<u64> {
    let mute = |command: &Command| match command {
        Command::Mute { peer, span } => {
            assert_eq!(*peer, MemberIndex(FLOODER));
            Some(span.as_secs())
        }
        _ => None,
    };
    sent.iter().filter_map(mute).collect()
}

#[test]
fn gossip_receives_the_right_verdict_for_every_frame() {
    // Its own, another signature in its name, no message at all, and frames over its budget.
    let (sent, _, _) = flooded(60, Some, |epoch, number| match number {
        0 => progress(epoch, FLOODER, 0),
        1 => progress(epoch, 2, 1),
        2 => Bytes::from_static(b"garbage"),
        _ => progress(epoch, FLOODER, number),
    });
    let verdicts = verdicts(&sent);
    assert_eq!(verdicts.len(), 60);
    let first = [Acceptance::Accept, Acceptance::Reject, Acceptance::Reject];
    let expected: Vec<_> = (0..).zip(first).collect();
    assert_eq!(verdicts[..3], expected);
    assert_eq!(verdicts[3].1, Acceptance::Accept);
    assert_eq!(verdicts[59].1, Acceptance::Ignore);
}

#[test]
fn bad_signatures_mute_and_are_reported_once_a_minute() {
    let (sent, notices, counts) =
        flooded(5000, |_| None, |epoch, number| progress(epoch, 2, number));
    assert_eq!(mutes(&sent), [1, 2, 4]);
    assert_eq!((counts.mutes, counts.received), (3, 5000));
    assert!(counts.unopened < 30, "{}", counts.unopened);
    assert_eq!(counts.unopened + counts.dropped, 5000);
    let unopened = |notice: &&Notice| matches!(notice, Notice::Unopened { .. });
    assert_eq!(notices.iter().filter(unopened).count(), 1);
    let others = |notice: &&Notice| matches!(notice, Notice::Dropped { .. } | Notice::Muted { .. });
    assert_eq!(notices.iter().filter(others).count(), 3);
}

#[test]
fn frames_over_the_budget_are_dropped_unread_and_reported_once_a_minute() {
    let (sent, notices, counts) = flooded(
        5000,
        |_| None,
        |epoch, number| progress(epoch, FLOODER, number),
    );
    // 32 at once, and 3 a heartbeat.
    let heard = counts.received - counts.dropped;
    assert!((30..80).contains(&heard), "{heard}");
    assert!(!mutes(&sent).is_empty());
    assert_eq!(counts.unopened, 0);
    let dropped = |notice: &&Notice| matches!(notice, Notice::Dropped { .. });
    assert_eq!(notices.iter().filter(dropped).count(), 1);
}

#[test]
fn requests_for_too_many_blobs_are_refused_by_the_mesh_actor() {
    virtually(async {
        let (rig, epoch) = (Rig::new(Checks::new(false)), epoch(4, 1));
        let (environment, mut ends) = rig.environment();
        let silo = spawn(config(&epoch, 0), environment).unwrap();
        for ticket in 0..100 {
            let blobs = vec![protocol::Hash::of(b"no member has this"); 1000];
            let by = MemberIndex(FLOODER);
            let wanted = Event::Wanted { by, blobs, ticket };
            ends.events.send(wanted).await.unwrap();
        }
        sleep(Duration::from_millis(1)).await;
        let mut answered = 0;
        while let Ok(command) = ends.commands.try_recv() {
            if let Command::Serve { blobs, .. } = command {
                assert_eq!((blobs.len(), blobs.iter().flatten().count()), (1000, 0));
                answered += 1;
            }
        }
        assert_eq!(answered, 100);
        assert_eq!(silo.counts().unserved, 100_000);
    });
}

#[test]
fn a_former_member_is_no_peer_and_gets_no_blobs() {
    const GUEST: MemberIndex = MemberIndex(4);
    virtually(async {
        let (rig, epoch) = (Rig::new(Checks::new(false)), epoch(4, 1));
        let (environment, mut ends) = rig.environment();
        let _silo = spawn(config(&epoch, 0), environment).unwrap();
        let blob = Bytes::from_static(b"a model");
        let hash = protocol::Hash::of(&blob);
        crate::Blobs::put(&*rig.blobs, hash, blob).unwrap();
        let round_trip = Duration::from_millis(1);
        let ticket = 1;
        for event in [
            Event::Up {
                peer: GUEST,
                round_trip,
            },
            Event::Wanted {
                by: GUEST,
                blobs: vec![hash],
                ticket,
            },
        ] {
            ends.events.send(event).await.unwrap();
        }
        sleep(Duration::from_secs(30)).await;
        let sent = std::iter::from_fn(|| ends.commands.try_recv().ok());
        let mut served = None;
        for command in sent {
            match command {
                Command::Send { to, .. } => assert_ne!(to, GUEST),
                Command::Serve { blobs, .. } => served = Some(blobs),
                _ => {}
            }
        }
        assert_eq!(served, Some(vec![None]));
    });
}
