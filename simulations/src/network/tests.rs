#![allow(clippy::unwrap_used)]

use std::time::Duration;

use agreement::Span;
use bytes::Bytes;
use protocol::Hash;
use protocol::net::{Acceptance, BlobRequest, Command, Event, JUDGED};
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use super::*;

const LATENCY: Duration = Duration::from_millis(10);

fn config() -> LinkConfig {
    LinkConfig {
        latency: [Span(LATENCY), Span(LATENCY)],
        jitter: Span::millis(0),
        bandwidth_mbit: 8.0,
        ..LinkConfig::default()
    }
}

/// Runs `test` with a network of three connected silos.
fn with<F: Future<Output = ()>>(
    config: LinkConfig,
    test: impl FnOnce(SimulatedNetwork, Vec<silo::Network>) -> F,
) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let network = SimulatedNetwork::alone(config, 3, 1);
        let mut silos: Vec<_> = (0..3)
            .map(|i| network.connect(MemberIndex(i), EVENTS))
            .collect();
        sleep(Duration::from_millis(100)).await;
        for silo in &mut silos {
            for _ in 0..2 {
                assert!(matches!(silo.events.recv().await, Some(Event::Up { .. })));
            }
        }
        test(network, silos).await;
    });
}

async fn issue(silo: &silo::Network, command: Command) {
    silo.commands.send(command).await.unwrap();
}

async fn next(silo: &mut silo::Network) -> Option<Event> {
    timeout(Duration::from_secs(60), silo.events.recv())
        .await
        .ok()
        .flatten()
}

fn fetch(hash: Hash, limit: u64, from: &[u16]) -> Command {
    Command::Fetch {
        blobs: vec![BlobRequest { hash, limit }],
        from: from.iter().copied().map(MemberIndex).collect(),
    }
}

#[test]
fn a_message_takes_the_latency_and_the_bandwidth() {
    with(config(), |network, mut silos| async move {
        let began = Instant::now();
        let frame = Bytes::from(vec![0; 100_000]);
        issue(
            &silos[0],
            Command::Send {
                to: MemberIndex(1),
                frame: frame.clone(),
            },
        )
        .await;
        let Some(Event::Received {
            from, frame: got, ..
        }) = next(&mut silos[1]).await
        else {
            panic!()
        };
        assert_eq!((from, got), (MemberIndex(0), frame));
        // 100 kB at a megabyte per second.
        assert_eq!(began.elapsed(), LATENCY + Duration::from_millis(100));
        assert_eq!(
            network.traffic()[0],
            Traffic {
                messages: 100_000,
                blobs: 0
            }
        );
    });
}

#[test]
fn gossip_is_delivered_once_and_around_a_cut_link() {
    with(config(), |network, mut silos| async move {
        network.cut(&[(0, 2)]);
        let frame = Bytes::from_static(b"news");
        for _ in 0..2 {
            let frame = frame.clone();
            issue(&silos[0], Command::Publish { frame }).await;
        }
        let ticket = gossiped(&mut silos[1], &frame).await;
        // It is not forwarded before the silo in between has accepted it.
        assert!(
            next(&mut silos[2]).await.is_none(),
            "forwarded before it was judged"
        );
        sleep(JUDGED).await;
        issue(&silos[1], judge(ticket, Acceptance::Accept)).await;
        assert!(
            next(&mut silos[2]).await.is_none(),
            "forwarded after a late verdict"
        );

        let frame = Bytes::from_static(b"more news");
        let publish = Command::Publish {
            frame: frame.clone(),
        };
        issue(&silos[0], publish).await;
        let ticket = gossiped(&mut silos[1], &frame).await;
        issue(&silos[1], judge(ticket, Acceptance::Accept)).await;
        let received = next(&mut silos[2]).await;
        assert!(
            matches!(
                received,
                Some(Event::Received {
                    from: MemberIndex(1),
                    ..
                })
            ),
            "{received:?}"
        );
        assert!(next(&mut silos[2]).await.is_none(), "delivered twice");
        assert!(
            next(&mut silos[0]).await.is_none(),
            "delivered to its author"
        );
    });
}

/// Expects that gossip delivers a frame to a silo next; returns its ticket.
async fn gossiped(silo: &mut silo::Network, expected: &Bytes) -> u64 {
    match next(silo).await {
        Some(Event::Received {
            frame,
            ticket: Some(ticket),
            ..
        }) if frame == *expected => ticket,
        other => panic!("{other:?}"),
    }
}

fn judge(ticket: u64, verdict: Acceptance) -> Command {
    Command::Judge { ticket, verdict }
}

#[test]
fn rejected_gossip_and_messages_of_muted_peers_are_not_relayed() {
    with(config(), |network, mut silos| async move {
        network.cut(&[(0, 2)]);
        for verdict in [Acceptance::Ignore, Acceptance::Reject] {
            let frame = Bytes::from(format!("{verdict:?}"));
            let publish = Command::Publish {
                frame: frame.clone(),
            };
            issue(&silos[0], publish).await;
            let ticket = gossiped(&mut silos[1], &frame).await;
            issue(&silos[1], judge(ticket, verdict)).await;
            assert!(next(&mut silos[2]).await.is_none(), "{verdict:?}");
        }
        let span = Duration::from_secs(100);
        let peer = MemberIndex(0);
        issue(&silos[1], Command::Mute { peer, span }).await;
        let send = |word: &'static str| Command::Send {
            to: MemberIndex(1),
            frame: Bytes::from_static(word.as_bytes()),
        };
        issue(&silos[0], send("muted")).await;
        assert!(next(&mut silos[1]).await.is_none());
        sleep(span).await;
        issue(&silos[0], send("heard")).await;
        let received = next(&mut silos[1]).await;
        assert!(
            matches!(&received, Some(Event::Received { frame, .. }) if frame == "heard"),
            "{received:?}"
        );
    });
}

#[test]
fn a_cut_link_loses_messages_and_a_cut_both_ways_is_reported() {
    with(config(), |network, mut silos| async move {
        network.cut(&[(0, 1)]);
        let send = || Command::Send {
            to: MemberIndex(1),
            frame: Bytes::from_static(b"x"),
        };
        issue(&silos[0], send()).await;
        assert!(next(&mut silos[1]).await.is_none());
        network.cut(&[(1, 0)]);
        assert!(matches!(
            next(&mut silos[1]).await,
            Some(Event::Down {
                peer: MemberIndex(0)
            })
        ));
        network.mend(&[(0, 1), (1, 0)]);
        let Some(Event::Up { round_trip, .. }) = next(&mut silos[1]).await else {
            panic!()
        };
        assert_eq!(round_trip, 2 * LATENCY);
        issue(&silos[0], send()).await;
        assert!(matches!(
            next(&mut silos[1]).await,
            Some(Event::Received { .. })
        ));
    });
}

/// Expects a request for one blob next and serves this one; returns who requested it.
async fn answer(silo: &mut silo::Network, blob: Option<Bytes>) -> MemberIndex {
    let Some(Event::Wanted { by, ticket, .. }) = next(silo).await else {
        panic!("no request")
    };
    let blobs = vec![blob];
    issue(silo, Command::Serve { ticket, blobs }).await;
    by
}

#[test]
fn blobs_are_requested_in_order_of_holders_and_verified() {
    with(config(), |network, mut silos| async move {
        let (blob, wrong) = (Bytes::from(vec![7; 100_000]), Bytes::from(vec![8; 100_000]));
        let hash = Hash::of(&blob);
        issue(&silos[0], fetch(hash, 1 << 20, &[1, 2])).await;
        let by = answer(&mut silos[1], Some(wrong)).await;
        assert_eq!(by, MemberIndex(0));
        answer(&mut silos[2], Some(blob.clone())).await;
        let Some(Event::Fetched { blobs: got }) = next(&mut silos[0]).await else {
            panic!()
        };
        assert_eq!(got, [(hash, blob)]);
        assert_eq!(network.traffic()[2].blobs, 100_000);
    });
}

#[test]
fn blobs_that_no_holder_serves_are_reported_missing() {
    with(config(), |network, mut silos| async move {
        let blob = Bytes::from(vec![7; 100_000]);
        let hash = Hash::of(&blob);
        // The first holder refuses, the second serves too much, and no other is left.
        issue(&silos[0], fetch(hash, 99_999, &[1, 2, 0])).await;
        answer(&mut silos[1], None).await;
        answer(&mut silos[2], Some(blob.clone())).await;
        assert!(matches!(
            next(&mut silos[0]).await,
            Some(Event::Missing { .. })
        ));
        // The first holder crashes while it sends, the second never answers.
        issue(&silos[0], fetch(hash, 1 << 20, &[1, 2])).await;
        answer(&mut silos[1], Some(blob)).await;
        sleep(Duration::from_millis(50)).await;
        network.disconnect(MemberIndex(1));
        assert!(matches!(
            next(&mut silos[0]).await,
            Some(Event::Down { .. })
        ));
        assert!(matches!(
            next(&mut silos[0]).await,
            Some(Event::Missing { .. })
        ));
    });
}

#[test]
fn a_slow_silo_loses_no_message_that_reached_it() {
    with(config(), |network, mut silos| async move {
        let _alive = network;
        for number in 0..3 * EVENTS {
            let frame = Bytes::from(number.to_le_bytes().to_vec());
            issue(
                &silos[0],
                Command::Send {
                    to: MemberIndex(1),
                    frame,
                },
            )
            .await;
        }
        for number in 0..3 * EVENTS {
            let Some(Event::Received { frame, .. }) = next(&mut silos[1]).await else {
                panic!()
            };
            assert_eq!(frame[..], number.to_le_bytes());
        }
    });
}

#[test]
fn loss_and_duplication_follow_their_probabilities() {
    let config = LinkConfig {
        loss: 0.5,
        duplication: 0.5,
        ..config()
    };
    with(config, |network, mut silos| async move {
        let _alive = network;
        for number in 0u32..400 {
            let frame = Bytes::from(number.to_le_bytes().to_vec());
            issue(
                &silos[0],
                Command::Send {
                    to: MemberIndex(1),
                    frame,
                },
            )
            .await;
        }
        let mut arrived = 0;
        while next(&mut silos[1]).await.is_some() {
            arrived += 1;
        }
        // Half of 400, each one and a half times.
        assert!((240..360).contains(&arrived), "{arrived}");
    });
}
