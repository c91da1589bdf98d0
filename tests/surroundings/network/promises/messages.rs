//! The guarantees of a network for messages: frames, gossip, muting, connections.

use super::*;

/// A member that can be reached is reported with a measured round trip.
pub(crate) async fn members_are_reported_up_with_a_round_trip<L: Lab>() {
    let mut lab = L::new(2).await;
    let mut first = lab.start(0, ROOM).await;
    let mut second = lab.start(1, ROOM).await;
    for round_trip in [first.up(1).await, second.up(0).await] {
        assert!(
            round_trip > Duration::ZERO && round_trip < Duration::from_secs(5),
            "{round_trip:?}"
        );
    }
}

/// Frames arrive unchanged at their addressee, and at no other member.
pub(crate) async fn sent_frames_arrive_unchanged<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    let sizes = [1, 4, 16_383, 16_384, 16_385, 65_536, 300_000];
    for (number, &size) in (0..).zip(&sizes) {
        all[0]
            .say(Command::Send {
                to: MemberIndex(2),
                frame: bytes(size, number),
            })
            .await;
    }
    let mut came = Vec::new();
    for _ in sizes {
        came.push(all[2].frame().await);
    }
    let sent: Vec<_> = (0..)
        .zip(sizes)
        .map(|(number, size)| (0, bytes(size, number)))
        .collect();
    if !L::ORDERED {
        came.sort_by_key(|(_, frame)| frame.len());
    }
    assert_eq!(came, sent);
    // Member 1 received no frame of another addressee before its own.
    all[2]
        .say(Command::Send {
            to: MemberIndex(1),
            frame: numbered(7, 4),
        })
        .await;
    assert_eq!(all[1].frame().await, (2, numbered(7, 4)));
}

/// A frame over the limit is lost; frames after it arrive.
pub(crate) async fn a_frame_over_the_limit_is_lost<L: Lab>() {
    let (_lab, mut all) = whole::<L>(2, ROOM).await;
    let large = Bytes::from(vec![0; protocol::codec::LIMIT + 1]);
    let to = MemberIndex(1);
    for frame in [large.clone(), numbered(1, 4)] {
        all[0].say(Command::Send { to, frame }).await;
    }
    for frame in [large, numbered(2, 4)] {
        all[0].say(Command::Publish { frame }).await;
    }
    let mut came = [all[1].frame().await, all[1].frame().await];
    came.sort_by(|(_, a), (_, b)| a.cmp(b));
    assert_eq!(came, [(0, numbered(1, 4)), (0, numbered(2, 4))]);
}

/// Frames of each member arrive in the order in which it sent them.
pub(crate) async fn frames_of_one_member_stay_in_order<L: Lab>() {
    if !L::ORDERED {
        return;
    }
    const FRAMES: u32 = 300;
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    for number in 0..FRAMES {
        for from in [0, 1] {
            let size = if number % 50 == 0 { 200_000 } else { 40 };
            all[from]
                .say(Command::Send {
                    to: MemberIndex(2),
                    frame: numbered(number, size),
                })
                .await;
        }
    }
    let mut expected = [0; 2];
    while expected != [FRAMES; 2] {
        let (from, frame) = all[2].frame().await;
        let number = u32::from_be_bytes(frame[..4].try_into().unwrap());
        assert_eq!(number, expected[usize::from(from)], "of member {from}");
        expected[usize::from(from)] += 1;
    }
}

/// Every delivered frame was sent to that member, even if messages are lost and duplicated. A
/// published frame is never delivered twice.
pub(crate) async fn only_sent_frames_are_delivered<L: Lab>() {
    const FRAMES: u32 = 200;
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    let [speaker, first, second] = &mut all[..] else {
        unreachable!()
    };
    let sent = |to: u16, number| numbered(number * 4 + u32::from(to), 60);
    let published = |number| numbered(number * 4, 60);
    for number in 0..FRAMES {
        for to in [1, 2] {
            let (member, frame) = (MemberIndex(to), sent(to, number));
            speaker.say(Command::Send { to: member, frame }).await;
        }
        let frame = published(number);
        speaker.say(Command::Publish { frame }).await;
    }
    // The last frame is sent until it arrives, because it may be lost too.
    for (to, reader) in [(1, first), (2, second)] {
        let mut came = BTreeMap::<Bytes, u32>::new();
        let all = || (0..FRAMES).flat_map(|n| [sent(to, n), published(n)]);
        let end = numbered(u32::MAX, 60);
        let mut rest = 2 * FRAMES as usize;
        loop {
            let frame = if L::FAITHFUL {
                let (_, frame) = reader.frame().await;
                rest -= 1;
                frame
            } else {
                let again = async {
                    loop {
                        sleep(Duration::from_secs(1)).await;
                        let (to, frame) = (MemberIndex(to), end.clone());
                        speaker.say(Command::Send { to, frame }).await;
                    }
                };
                tokio::select! {
                    (_, frame) = reader.frame() => frame,
                    () = again => unreachable!(),
                }
            };
            if frame == end {
                break;
            }
            *came.entry(frame).or_default() += 1;
            if rest == 0 {
                break;
            }
        }
        let said: BTreeSet<_> = all().collect();
        assert!(came.keys().all(|frame| said.contains(frame)));
        for number in 0..FRAMES {
            assert!(came.get(&published(number)).is_none_or(|&times| times == 1));
        }
        if L::FAITHFUL {
            assert!(came.len() == said.len() && came.values().all(|&times| times == 1));
        } else {
            // Frames were lost or duplicated; otherwise this test shows nothing.
            assert!(came.len() < said.len() && came.values().any(|&times| times > 1));
        }
    }
}

/// Published frames of every size reach all other members once, even if several members publish
/// them, several times.
pub(crate) async fn published_frames_arrive_at_most_once<L: Lab>() {
    let (_lab, mut all) = whole::<L>(4, ROOM).await;
    // Sizes around every limit of gossip, and well beyond.
    let sizes = [
        1,
        53_247,
        53_248,
        53_249,
        53_000,
        53_001,
        61_440,
        65_535,
        65_536,
        65_537,
        1 << 20,
    ];
    for (number, &size) in (0..).zip(&sizes) {
        for _ in 0..2 {
            all[0]
                .say(Command::Publish {
                    frame: bytes(size, number),
                })
                .await;
        }
    }
    let expected: BTreeSet<Bytes> = (0..).zip(sizes).map(|(n, size)| bytes(size, n)).collect();
    for ends in &mut all[1..] {
        let mut came = BTreeSet::new();
        while came.len() < sizes.len() {
            let (_, frame) = ends.frame().await;
            assert!(
                came.insert(frame.clone()),
                "{} bytes arrived twice",
                frame.len()
            );
            // As a member that publishes a certificate that it received.
            ends.say(Command::Publish { frame }).await;
        }
        assert_eq!(came, expected);
    }
    // A second copy would have arrived before this frame.
    all[0]
        .say(Command::Publish {
            frame: numbered(1, 4),
        })
        .await;
    for member in 1..4 {
        all[member]
            .say(Command::Send {
                to: MemberIndex(0),
                frame: numbered(2, 4),
            })
            .await;
        assert_eq!(all[member].frame().await.1, numbered(1, 4));
        assert_eq!(all[0].frame().await, (member as u16, numbered(2, 4)));
    }
}

/// A member passes a published frame on only after its silo has accepted it.
pub(crate) async fn published_frames_are_passed_on_only_when_accepted<L: Lab>() {
    let (_lab, mut all) = L::line().await;
    let [author, between, end] = &mut all[..] else {
        unreachable!()
    };
    let verdicts = [Acceptance::Ignore, Acceptance::Reject, Acceptance::Accept];
    for (number, verdict) in (0..).zip(verdicts) {
        let frame = numbered(number, 40);
        let publish = Command::Publish {
            frame: frame.clone(),
        };
        author.say(publish).await;
        let (from, came, ticket) = between.unjudged().await;
        assert_eq!((from, came), (0, frame));
        assert!(ticket.is_some(), "{number} came directly");
        between.judge(ticket, verdict).await;
    }
    // The first frame at the other end of the line is the one that the middle accepted.
    let (from, frame, ticket) = end.unjudged().await;
    assert_eq!((from, frame), (1, numbered(2, 40)));
    assert!(ticket.is_some());
}

/// Frames of a muted member are dropped until its mute ends, and those of others are delivered.
pub(crate) async fn no_frame_of_a_muted_member_is_delivered<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    let span = Duration::from_secs(3);
    let mute = Command::Mute {
        peer: MemberIndex(0),
        span,
    };
    all[2].say(mute).await;
    // After this answer the mute is in force.
    let hash = Hash::of(b"no member has this");
    all[2].fetch(hash, 1, &[]).await;
    assert_eq!(all[2].fetched_one().await, None);
    let say = |number, to| Command::Send {
        to: MemberIndex(to),
        frame: numbered(number, 4),
    };
    all[0].say(say(1, 2)).await;
    all[0].say(say(2, 1)).await;
    assert_eq!(all[1].frame().await, (0, numbered(2, 4)));
    all[1].say(say(3, 2)).await;
    assert_eq!(all[2].frame().await, (1, numbered(3, 4)));
    sleep(span).await;
    let [muted, _, reader] = &mut all[..] else {
        unreachable!()
    };
    // Its stream may have been closed meanwhile, which loses a frame or two.
    let speak = async {
        loop {
            muted.say(say(4, 2)).await;
            sleep(Duration::from_millis(100)).await;
        }
    };
    let heard = tokio::select! {
        heard = reader.frame() => heard,
        () = speak => unreachable!(),
    };
    assert_eq!(heard, (0, numbered(4, 4)));
}

/// A silo that does not read for a while receives all frames afterwards.
pub(crate) async fn a_slow_reader_loses_nothing<L: Lab>() {
    const FRAMES: u32 = 500;
    let mut lab = L::new(2).await;
    let mut quick = lab.start(0, ROOM).await;
    let mut slow = lab.start(1, 2).await;
    quick.up(1).await;
    slow.up(0).await;
    for number in 0..FRAMES {
        quick
            .say(Command::Send {
                to: MemberIndex(1),
                frame: numbered(number, 1000),
            })
            .await;
        if number % 4 == 0 {
            quick
                .say(Command::Publish {
                    frame: numbered(FRAMES + number, 1000),
                })
                .await;
        }
    }
    let mut came = BTreeSet::new();
    while came.len() < (FRAMES + FRAMES / 4) as usize {
        came.insert(slow.frame().await.1);
    }
}

/// A member that does not read does not delay frames between the others.
pub(crate) async fn a_member_that_does_not_read_delays_no_other<L: Lab>() {
    const FRAMES: u32 = 200;
    let mut lab = L::new(3).await;
    let mut speaker = lab.start(0, ROOM).await;
    let mut reader = lab.start(1, ROOM).await;
    let deaf = lab.start(2, 1).await;
    speaker.all_up([1, 2]).await;
    reader.all_up([0, 2]).await;
    for number in 0..FRAMES {
        // Much more than the queues on the way to the member that does not read can hold.
        let (to, frame) = (MemberIndex(2), bytes(400_000, number.into()));
        speaker.say(Command::Send { to, frame }).await;
        let (to, frame) = (MemberIndex(1), numbered(number, 100));
        speaker.say(Command::Send { to, frame }).await;
        let frame = numbered(FRAMES + number, 100);
        speaker.say(Command::Publish { frame }).await;
    }
    let mut came = BTreeSet::new();
    while came.len() < 2 * FRAMES as usize {
        came.insert(reader.frame().await.1);
    }
    drop(deaf);
}

/// A member that stops is reported down, and one that restarts is reported up and receives frames.
pub(crate) async fn a_member_that_returns_is_reached_again<L: Lab>() {
    let (mut lab, mut all) = whole::<L>(3, ROOM).await;
    for round in 0..2 {
        let gone = all.remove(2);
        lab.stop(2, gone).await;
        for ends in &mut all {
            let down = |event| matches!(event, Event::Down { peer } if peer.0 == 2).then_some(());
            ends.next(down).await;
        }
        // While the member is down, frames to it are lost and fetches are answered.
        let hash = Hash::of(b"no member has this");
        all[0]
            .say(Command::Send {
                to: MemberIndex(2),
                frame: numbered(99, 4),
            })
            .await;
        all[0].fetch(hash, 10, &[2]).await;
        assert_eq!(all[0].fetched_one().await, None);

        let mut back = lab.start(2, ROOM).await;
        back.all_up([0, 1]).await;
        for (member, ends) in (0..).zip(&mut all) {
            ends.up(2).await;
            ends.say(Command::Send {
                to: MemberIndex(2),
                frame: numbered(round, 4),
            })
            .await;
            assert_eq!(back.frame().await, (member, numbered(round, 4)));
        }
        back.say(Command::Publish {
            frame: numbered(10 + round, 4),
        })
        .await;
        for ends in &mut all {
            assert_eq!(ends.frame().await.1, numbered(10 + round, 4));
        }
        all.push(back);
    }
}
