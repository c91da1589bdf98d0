//! What every network between silos promises. Each promise is a function over a [`Lab`], which
//! makes small networks of one kind; `main.rs` runs all of them on every kind.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use mesh::{Acceptance, BlobRequest, Command, Event};
use protocol::{Hash, MemberIndex};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// Nothing that is promised takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A member's ends of the network.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) events: mpsc::Receiver<Event>,
}

/// Makes and changes one small network.
pub(crate) trait Lab: Sized {
    /// Whether frames of one member to another arrive in the order in which they were sent.
    const ORDERED: bool;

    /// Whether every frame arrives, once, while nobody goes.
    const FAITHFUL: bool;

    /// Runs a test on the clock of this kind of network.
    fn run(test: impl Future<Output = ()>);

    /// A network of that many members, none of them there yet.
    async fn new(members: u16) -> Self;

    /// Member `member` comes, or comes again, with room for so many events.
    async fn start(&mut self, member: u16, events: usize) -> Ends;

    /// Three members, there and up, of whom the first and the last have no link.
    async fn line() -> (Self, Vec<Ends>);

    /// It goes. Ends when it is gone.
    async fn stop(&mut self, member: u16, ends: Ends);
}

const ROOM: usize = 256;

impl Ends {
    /// The next event for which `pick` gives something. Others are passed over.
    pub(crate) async fn next<T>(&mut self, mut pick: impl FnMut(Event) -> Option<T>) -> T {
        let found = async {
            loop {
                let event = self.events.recv().await.expect("the network lives");
                if let Some(found) = pick(event) {
                    return found;
                }
            }
        };
        timeout(PATIENCE, found)
            .await
            .expect("what was promised comes in time")
    }

    pub(crate) async fn say(&self, command: Command) {
        self.commands.send(command).await.unwrap();
    }

    pub(crate) async fn up(&mut self, peer: u16) -> Duration {
        self.next(|event| match event {
            Event::Up {
                peer: up,
                round_trip,
            } if up.0 == peer => Some(round_trip),
            _ => None,
        })
        .await
    }

    /// Until all of these can be reached.
    pub(crate) async fn all_up(&mut self, members: impl IntoIterator<Item = u16>) {
        let mut missing: BTreeSet<u16> = members.into_iter().collect();
        while !missing.is_empty() {
            let up = self.next(|event| match event {
                Event::Up { peer, .. } => Some(peer.0),
                _ => None,
            });
            missing.remove(&up.await);
        }
    }

    /// The next frame. It is accepted, so that others may have it.
    pub(crate) async fn frame(&mut self) -> (u16, Bytes) {
        let (from, frame, ticket) = self.unjudged().await;
        self.judge(ticket, Acceptance::Accept).await;
        (from, frame)
    }

    /// The next frame, with its ticket.
    async fn unjudged(&mut self) -> (u16, Bytes, Option<u64>) {
        self.next(|event| match event {
            Event::Received {
                from,
                frame,
                ticket,
            } => Some((from.0, frame, ticket)),
            _ => None,
        })
        .await
    }

    async fn judge(&self, ticket: Option<u64>, verdict: Acceptance) {
        if let Some(ticket) = ticket {
            // A full way back only means that others get the frame from somebody else.
            let _ = self.commands.try_send(Command::Judge { ticket, verdict });
        }
    }

    /// Asks these members for a blob.
    async fn fetch(&self, hash: Hash, limit: u64, from: &[u16]) {
        let from = from.iter().map(|&member| MemberIndex(member)).collect();
        let blobs = vec![BlobRequest { hash, limit }];
        self.say(Command::Fetch { blobs, from }).await;
    }

    /// Answers the next question for blobs, and says whose it was.
    async fn serve_once(&mut self, give: impl Fn(u16, Hash) -> Option<Bytes>) -> u16 {
        let (by, blobs, ticket) = self
            .next(|event| match event {
                Event::Wanted { by, blobs, ticket } => Some((by, blobs, ticket)),
                _ => None,
            })
            .await;
        let blobs = blobs.into_iter().map(|hash| give(by.0, hash)).collect();
        self.say(Command::Serve { ticket, blobs }).await;
        by.0
    }

    /// Answers questions for blobs, without end.
    async fn serve(&mut self, give: impl Fn(u16, Hash) -> Option<Bytes>) -> Infallible {
        loop {
            self.serve_once(&give).await;
        }
    }

    /// The answers to a fetch of so many blobs: those that came, by hash.
    async fn fetched(&mut self, blobs: usize) -> BTreeMap<Hash, Bytes> {
        let (mut came, mut answers) = (BTreeMap::new(), 0);
        while answers < blobs {
            let (here, missing) = self
                .next(|event| match event {
                    Event::Fetched { blobs } => Some((blobs, 0)),
                    Event::Missing { blobs } => Some((Vec::new(), blobs.len())),
                    _ => None,
                })
                .await;
            answers += here.len() + missing;
            came.extend(here);
        }
        assert_eq!(answers, blobs, "every blob is answered once");
        came
    }

    /// The answer to a fetch of one blob.
    async fn fetched_one(&mut self) -> Option<Bytes> {
        self.fetched(1).await.pop_first().map(|(_, blob)| blob)
    }
}

/// A network whose members all reach each other.
pub(crate) async fn whole<L: Lab>(members: u16, events: usize) -> (L, Vec<Ends>) {
    let mut lab = L::new(members).await;
    let mut all = Vec::new();
    for member in 0..members {
        all.push(lab.start(member, events).await);
    }
    for (me, ends) in (0..).zip(&mut all) {
        ends.all_up((0..members).filter(|&other| other != me)).await;
    }
    (lab, all)
}

fn bytes(length: usize, seed: u64) -> Bytes {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    let mut bytes = vec![0; length];
    hasher.finalize_xof().fill(&mut bytes);
    bytes.into()
}

fn numbered(number: u32, length: usize) -> Bytes {
    let mut frame = number.to_be_bytes().to_vec();
    frame.resize(length.max(4), number as u8);
    frame.into()
}

/// Round trips are measured, and said once a member can be reached.
pub(crate) async fn members_come_up_with_a_round_trip<L: Lab>() {
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

/// Frames arrive unchanged at the member they are for, and nowhere else.
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
    // What was not for it did not come to member 1 before what was.
    all[2]
        .say(Command::Send {
            to: MemberIndex(1),
            frame: numbered(7, 4),
        })
        .await;
    assert_eq!(all[1].frame().await, (2, numbered(7, 4)));
}

/// A frame larger than anything that the protocol encodes is lost; those after it arrive.
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

/// Many frames of several members keep the order of each.
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

/// Whatever comes was said, to whom it came; where messages are lost and doubled too. A published
/// frame never comes twice.
pub(crate) async fn nothing_comes_that_was_not_said<L: Lab>() {
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
    // The end is said until it is heard: it may be lost like anything else.
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
            // Not faithful indeed: otherwise this shows nothing.
            assert!(came.len() < said.len() && came.values().any(|&times| times > 1));
        }
    }
}

/// Published frames of every size reach all others, once, however often and by whomever they are
/// published.
pub(crate) async fn published_frames_arrive_at_most_once<L: Lab>() {
    let (_lab, mut all) = whole::<L>(4, ROOM).await;
    // Around every limit that gossip may have, and well beyond.
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
                "{} bytes came twice",
                frame.len()
            );
            // As a member does that passes on what it learned.
            ends.say(Command::Publish { frame }).await;
        }
        assert_eq!(came, expected);
    }
    // Whatever came a second time came before this.
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

/// What was published is passed on by a member only when its silo accepted it.
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
    // The first that comes to the end is the one that was accepted, by way of the middle.
    let (from, frame, ticket) = end.unjudged().await;
    assert_eq!((from, frame), (1, numbered(2, 40)));
    assert!(ticket.is_some());
}

/// Nothing is heard from a muted member, by others everything, and from it again afterwards.
pub(crate) async fn a_muted_member_is_not_heard_until_its_mute_ends<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    let span = Duration::from_secs(3);
    let mute = Command::Mute {
        peer: MemberIndex(0),
        span,
    };
    all[2].say(mute).await;
    // What is said after this answer is said to somebody who has muted.
    let hash = Hash::of(b"nobody has this");
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
    // Its stream may have been closed meanwhile, and a frame or two are lost with it.
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

/// A silo that does not read for a while finds everything afterwards.
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

/// A member that does not read keeps nobody else from speaking and hearing.
pub(crate) async fn one_that_does_not_read_holds_up_nobody<L: Lab>() {
    const FRAMES: u32 = 200;
    let mut lab = L::new(3).await;
    let mut speaker = lab.start(0, ROOM).await;
    let mut reader = lab.start(1, ROOM).await;
    let deaf = lab.start(2, 1).await;
    speaker.all_up([1, 2]).await;
    reader.all_up([0, 2]).await;
    for number in 0..FRAMES {
        // Many times what the deaf one and everything on the way to it can hold.
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

/// A member that goes is down, and one that comes again is up and can be spoken to.
pub(crate) async fn a_member_that_returns_is_reached_again<L: Lab>() {
    let (mut lab, mut all) = whole::<L>(3, ROOM).await;
    for round in 0..2 {
        let gone = all.remove(2);
        lab.stop(2, gone).await;
        for ends in &mut all {
            let down = |event| matches!(event, Event::Down { peer } if peer.0 == 2).then_some(());
            ends.next(down).await;
        }
        // Nobody is there: what is sent now is lost, and what is asked is answered.
        let hash = Hash::of(b"nobody has this");
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

/// A blob comes whole, from whoever has it.
pub(crate) async fn a_blob_comes_from_whoever_has_it<L: Lab>() {
    let (_lab, mut all) = whole::<L>(4, ROOM).await;
    for (seed, size) in (0..).zip([0, 1, 1000, 262_144, 262_145, 5_000_000]) {
        let blob = bytes(size, seed);
        let hash = Hash::of(&blob);
        let [asker, without, holder, other] = &mut all[..] else {
            unreachable!()
        };
        asker.fetch(hash, size as u64, &[1, 2, 0, 3]).await;
        let give = |by, of| (by == 0 && of == hash).then(|| blob.clone());
        let came = tokio::select! {
            came = asker.fetched_one() => came,
            never = without.serve(|_, _| None) => match never {},
            never = holder.serve(give) => match never {},
            never = other.serve(give) => match never {},
        };
        assert_eq!(came, Some(blob.clone()), "{size} bytes");
    }
}

/// Many blobs that are asked for together are answered one by one, some from one holder and some
/// from another, and those that nobody has are missing.
pub(crate) async fn each_blob_of_a_batch_is_answered_once<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    let sizes = (0..60).map(|number| {
        if number % 20 == 7 {
            700_000
        } else {
            100 * number
        }
    });
    let blobs: Vec<_> = (0..)
        .zip(sizes)
        .map(|(seed, size)| bytes(size, seed))
        .collect();
    let wish = |blob: &Bytes| BlobRequest {
        hash: Hash::of(blob),
        limit: 1 << 20,
    };
    let [asker, first, second] = &mut all[..] else {
        unreachable!()
    };
    let from = vec![MemberIndex(1), MemberIndex(2)];
    asker
        .say(Command::Fetch {
            blobs: blobs.iter().map(wish).collect(),
            from,
        })
        .await;
    let place = |hash| {
        blobs
            .iter()
            .position(|blob| Hash::of(blob) == hash)
            .unwrap()
    };
    let give = |part: usize, hash| {
        let place = place(hash);
        (place % 3 == part).then(|| blobs[place].clone())
    };
    let came = tokio::select! {
        came = asker.fetched(blobs.len()) => came,
        never = first.serve(|_, hash| give(0, hash)) => match never {},
        never = second.serve(|_, hash| give(1, hash)) => match never {},
    };
    for (hash, blob) in &came {
        assert_eq!(*blob, blobs[place(*hash)]);
    }
    let expected: BTreeSet<_> = (0..60).filter(|place| place % 3 < 2).collect();
    assert_eq!(
        came.into_keys().map(place).collect::<BTreeSet<_>>(),
        expected
    );
}

/// What nobody has is missing.
pub(crate) async fn an_unknown_hash_is_missing<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    let hash = Hash::of(b"nobody has this");
    let [asker, first, second] = &mut all[..] else {
        unreachable!()
    };
    // Not from oneself, nor from a position that nobody has.
    asker.fetch(hash, 1000, &[0, 1, 2, 77]).await;
    assert_eq!(first.serve_once(|_, _| None).await, 0);
    assert_eq!(second.serve_once(|_, _| None).await, 0);
    assert_eq!(asker.fetched_one().await, None);
    asker.fetch(hash, 1000, &[]).await;
    assert_eq!(asker.fetched_one().await, None);
}

/// A blob of one byte more than the limit is missing; at the limit it comes.
pub(crate) async fn a_blob_over_its_limit_is_refused<L: Lab>() {
    let (_lab, mut all) = whole::<L>(2, ROOM).await;
    let blob = bytes(600_000, 1);
    let [asker, holder] = &mut all[..] else {
        unreachable!()
    };
    for (limit, comes) in [(599_999, false), (0, false), (600_000, true)] {
        asker.fetch(Hash::of(&blob), limit, &[1]).await;
        let came = tokio::select! {
            came = asker.fetched_one() => came,
            never = holder.serve(|_, _| Some(blob.clone())) => match never {},
        };
        assert_eq!(came, comes.then(|| blob.clone()), "limit {limit}");
    }
}

/// Bytes that do not have the hash never arrive; another holder is asked.
pub(crate) async fn wrong_bytes_never_arrive<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    for size in [1_000_000, 1000] {
        let blob = bytes(size, 1);
        let mut wrong = blob.to_vec();
        wrong[size * 7 / 10] ^= 1;
        let wrong = Bytes::from(wrong);
        let [asker, liar, holder] = &mut all[..] else {
            unreachable!()
        };
        for honest in [false, true] {
            asker.fetch(Hash::of(&blob), 1 << 20, &[1, 2]).await;
            let came = tokio::select! {
                came = asker.fetched_one() => came,
                never = liar.serve(|_, _| Some(wrong.clone())) => match never {},
                never = holder.serve(|_, _| honest.then(|| blob.clone())) => match never {},
            };
            assert_eq!(came, honest.then(|| blob.clone()));
        }
    }
}

/// A fetch goes on where its holder ends in the middle of a blob: from another holder, or from the
/// same when it returns.
pub(crate) async fn a_blob_survives_the_end_of_its_holder<L: Lab>() {
    let (mut lab, mut all) = whole::<L>(3, ROOM).await;
    let blob = bytes(20_000_000, 1);
    let hash = Hash::of(&blob);
    let give = |_, of| (of == hash).then(|| blob.clone());
    all[0].fetch(hash, blob.len() as u64, &[2, 1]).await;
    // The first holder ends as soon as it has said yes, the second brings the rest.
    assert_eq!(all[2].serve_once(give).await, 0);
    let gone = all.remove(2);
    lab.stop(2, gone).await;
    let [asker, other] = &mut all[..] else {
        unreachable!()
    };
    let came = tokio::select! {
        came = asker.fetched_one() => came,
        never = other.serve(give) => match never {},
    };
    assert_eq!(came, Some(blob.clone()));
    // What is asked anew after a holder ended comes from the holder that is back.
    let mut back = lab.start(2, ROOM).await;
    asker.up(2).await;
    back.up(0).await;
    asker.fetch(hash, blob.len() as u64, &[2]).await;
    let came = tokio::select! {
        came = asker.fetched_one() => came,
        never = back.serve(give) => match never {},
    };
    assert_eq!(came, Some(blob.clone()));
}

/// An author decides for every question who may have its blob: the lead alone, until it may be
/// known.
pub(crate) async fn the_author_decides_who_may_have_its_blob<L: Lab>() {
    let (_lab, mut all) = whole::<L>(3, ROOM).await;
    let blob = bytes(300_000, 1);
    let [lead, curious, author] = &mut all[..] else {
        unreachable!()
    };
    lead.fetch(Hash::of(&blob), 1 << 20, &[2]).await;
    curious.fetch(Hash::of(&blob), 1 << 20, &[2]).await;
    let (to_lead, to_curious) = tokio::select! {
        came = async { (lead.fetched_one().await, curious.fetched_one().await) } => came,
        never = author.serve(|by, _| (by == 0).then(|| blob.clone())) => match never {},
    };
    assert_eq!(to_lead, Some(blob));
    assert_eq!(to_curious, None);
}
