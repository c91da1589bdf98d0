#![allow(clippy::unwrap_used)]

use crate::envelope::OVERHEAD;
use proptest::prelude::*;

use super::*;
use crate::envelope::sign;
use crate::evidence::{Evidence, Signed};
use crate::hash::Hash;
use crate::identity::{SecretKey, Signature};
use crate::message::{Message, Phase};
use crate::parameters::{Genesis, ProtocolParameters};
use crate::roster::Silo;

const HEARTBEAT: Duration = Duration::from_secs(5);

fn key(i: u16) -> SecretKey {
    SecretKey::from_bytes(blake3::hash(&i.to_le_bytes()).as_bytes())
}

fn epoch(n: u16) -> Epoch {
    let silo = |i| Silo {
        name: format!("silo {i}"),
        key: key(i).public(),
        rows: None,
    };
    let protocol = ProtocolParameters {
        work: "toy".into(),
        heartbeat_ms: HEARTBEAT.as_millis() as u64,
        view_timeout: 200,
        min_contributions: n,
        ..ProtocolParameters::small("budget")
    };
    let silos = (0..n).map(silo).collect();
    Epoch::first(&Genesis { silos, protocol }).unwrap()
}

fn at(elapsed: Duration) -> Time {
    Time::since_start(elapsed)
}

/// A header, and this many bytes after it.
fn frame(signer: u16, view: u64, kind: Kind, body: usize) -> Vec<u8> {
    let mut bytes = vec![0; OVERHEAD + body];
    bytes[73..81].copy_from_slice(&view.to_le_bytes());
    bytes[81..83].copy_from_slice(&signer.to_le_bytes());
    bytes[83] = kind as u8;
    bytes
}

fn alone(view: u64, kind: Kind) -> Vec<u8> {
    frame(u16::MAX, view, kind, 300)
}

fn message(signer: u16, view: u64, body: Body) -> Opened {
    Opened::Message(Message {
        round: 0,
        view,
        sender: MemberIndex(signer),
        body,
        signature: Signature::from_bytes(&[0; 64]),
    })
}

fn question(after: u64) -> Body {
    let (from, nonce) = (after + 1, 7);
    Body::SyncRequest {
        after,
        from,
        missing: None,
        nonce,
    }
}

fn progress(signer: u16, view: u64) -> Opened {
    let (phase, counter) = (Phase::Collecting, 0);
    message(signer, view, Body::Progress { phase, counter })
}

/// Admits a message and opens it, after this many checks.
fn hear(
    budget: &mut Budget,
    now: Time,
    (from, path): (u16, Path),
    bytes: &[u8],
    (checked, opened): (u64, &Opened),
) -> Result<(), Denied> {
    let admitted = budget.admit(now, MemberIndex(from), path, bytes)?;
    budget.opened(now, &admitted, checked, opened)
}

/// A vote sent directly.
fn vote(budget: &mut Budget, now: Time, signer: u16, view: u64, kind: Kind) -> Result<(), Denied> {
    let body = match kind {
        Kind::Finalize => Body::Finalize {
            block: Hash::of(b"block"),
        },
        _ => Body::Nullify,
    };
    let bytes = frame(signer, view, kind, 0);
    let admitted = budget.admit(now, MemberIndex(signer), Path::Direct, &bytes)?;
    budget.opened(now, &admitted, 1, &message(signer, view, body))
}

#[test]
fn the_header_read_from_a_frame_equals_the_sealed_one() {
    let epoch = epoch(4);
    for signer in 0..4 {
        let body = question(3);
        let (_, bytes) = sign(&epoch, &key(signer), 3, 77, MemberIndex(signer), body);
        let frame = Frame::from(&bytes);
        let header = frame.header().unwrap();
        assert_eq!((header.round, header.view), (3, 77));
        assert_eq!(frame.kind(), Some(Kind::SyncRequest));
        let mut budget = Budget::new(&epoch, Time::ZERO);
        assert_eq!(budget.signer(header), Some(MemberIndex(signer)));
        budget.members = usize::from(signer);
        assert_eq!(budget.signer(header), None);
    }
    assert_eq!(Frame::from(&b"garbage"[..]).kind(), None);
}

#[test]
fn a_neighbour_gets_no_more_checks_than_its_rate_and_others_keep_theirs() {
    let mut budget = Budget::new(&epoch(4), Time::ZERO);
    let certificate = alone(1, Kind::Certificate);
    let (mut checks, seconds) = (0, 60);
    for milli in 0..seconds * 1000 {
        let now = at(Duration::from_millis(milli));
        for _ in 0..10 {
            let admitted = budget.admit(now, MemberIndex(3), Path::Direct, &certificate);
            if let Ok(admitted) = admitted {
                checks += 4;
                let known = budget.opened(now, &admitted, 0, &Opened::Known);
                known.unwrap();
            }
        }
    }
    let most = 4 * CHECKS + 160 + CHECKS * seconds;
    assert!((most * 9 / 10..=most + 4).contains(&checks), "{checks}");
    let now = at(Duration::from_secs(60));
    let other = budget.admit(now, MemberIndex(2), Path::Direct, &certificate);
    assert!(other.is_ok());
}

#[test]
fn hundreds_of_views_in_one_beat_are_not_throttled() {
    for n in [4, 10, 100] {
        let epoch = epoch(n);
        let (q, all) = (epoch.roster.quorum() as u64, u64::from(n));
        let mut budget = Budget::new(&epoch, Time::ZERO);
        // A view every 10 ms: 500 in a heartbeat. All gossip comes over one neighbour, all the time.
        for view in 1..2000 {
            let now = at(Duration::from_millis(10 * view));
            budget.at(view, view - 1);
            let lead = (view % all) as u16;
            let gossip = (0, Path::Gossip);
            for kind in [Kind::Progress, Kind::ContributionList, Kind::Manifest] {
                let bytes = frame(lead, view, kind, 100 * usize::from(n));
                let opened = progress(lead, view);
                hear(&mut budget, now, gossip, &bytes, (1, &opened)).unwrap();
            }
            let bytes = frame(lead, view, Kind::Proposal, 64 * usize::from(2 * n));
            let opened = progress(lead, view);
            hear(&mut budget, now, gossip, &bytes, (1 + all + q, &opened)).unwrap();
            for collector in 0..4 {
                let bytes = frame(u16::MAX, view, Kind::Certificate, 66 * usize::from(n));
                let checked = if collector < 2 { q } else { 0 };
                hear(&mut budget, now, gossip, &bytes, (checked, &Opened::Known)).unwrap();
            }
            // This member collects the votes of every second view, and receives as lead.
            for signer in (0..n).filter(|_| view % 2 == 0) {
                vote(&mut budget, now, signer, view, Kind::Notarize).unwrap();
                vote(&mut budget, now, signer, view, Kind::Finalize).unwrap();
                for kind in [Kind::Contribution, Kind::Scores, Kind::Inclusion] {
                    let bytes = frame(signer, view, kind, 500);
                    let from = (signer, Path::Direct);
                    let opened = progress(signer, view);
                    hear(&mut budget, now, from, &bytes, (1, &opened)).unwrap();
                }
            }
        }
    }
}

#[test]
fn an_hour_of_failing_views_is_not_throttled() {
    for n in [4, 100] {
        let mut budget = Budget::new(&epoch(n), Time::ZERO);
        // A view every heartbeat, none of which gets a certificate of finality: at worst every vote of
        // every one of them is sent again with every heartbeat, all at once.
        let hour = 3600 / HEARTBEAT.as_secs();
        for view in 1..=hour {
            let now = at(HEARTBEAT * view as u32);
            budget.at(view, 0);
            let last = view == hour;
            // All of them in the last heartbeat, where there are most; before that those of one member.
            for signer in 0..if last { n } else { 1 } {
                for of in 1..=view {
                    vote(&mut budget, now, signer, of, Kind::Nullify).unwrap();
                    vote(&mut budget, now, signer, of, Kind::Finalize).unwrap();
                }
            }
            // The n certificates that n members made of the votes against the view.
            for other in 0..n {
                let bytes = frame(u16::MAX, view, Kind::Certificate, 66 * usize::from(n));
                let checked = if other == 0 { u64::from(n) } else { 0 };
                let gossip = (1, Path::Gossip);
                hear(&mut budget, now, gossip, &bytes, (checked, &Opened::Known)).unwrap();
            }
        }
    }
}

#[test]
fn only_a_member_that_advances_may_send_sync_requests_faster_than_beats() {
    let ask = |budget: &mut Budget, now, after| {
        let bytes = frame(2, 0, Kind::SyncRequest, 8);
        let opened = message(2, 0, question(after));
        hear(budget, now, (2, Path::Direct), &bytes, (1, &opened)).is_ok()
    };
    let mut budget = Budget::new(&epoch(4), Time::ZERO);
    budget.at(20_000, 19_999);
    // 19,200 blocks in a second.
    let honest = (0..300).all(|asked| {
        let now = at(Duration::from_millis(3 * asked));
        ask(&mut budget, now, 64 * asked)
    });
    assert!(honest);
    // The same question again and again, jumping to and fro, everything again and again, and ever
    // further beyond the end: the burst and two a heartbeat, and everything once at most.
    type Question = fn(u64) -> u64;
    let questions: [(Question, u32); 4] = [
        (|_| 0, 30),
        (|number| 64 * (number % 2), 31),
        (|number| 16 * number % 1600, 130),
        (|number| 2000 + 16 * number, 31),
    ];
    for (which, (question, most)) in (0..).zip(questions) {
        let mut budget = Budget::new(&epoch(4), Time::ZERO);
        budget.at(1600, 1599);
        let mut answered = 0;
        for milli in 0..50_000 {
            let now = at(Duration::from_millis(milli));
            answered += u32::from(ask(&mut budget, now, question(milli)));
        }
        assert!((20..=most).contains(&answered), "{which}: {answered}");
    }
}

#[test]
fn a_flood_of_one_kind_is_cut_to_the_rate_of_beats_and_views() {
    let mut budget = Budget::new(&epoch(4), Time::ZERO);
    let mut heard = 0;
    for milli in 0..50_000 {
        let now = at(Duration::from_millis(milli));
        budget.at(1 + milli / 1000, milli / 1000);
        let view = 1 + milli / 1000;
        let bytes = frame(3, view, Kind::Progress, 10);
        let opened = progress(3, view);
        for path in [Path::Direct, Path::Gossip] {
            let heard_one = hear(&mut budget, now, (3, path), &bytes, (1, &opened));
            heard += u32::from(heard_one.is_ok());
        }
    }
    // 32, 3 in each of ten heartbeats and 3 in each of 49 views; the checks that this saved are there.
    assert!((180..=210).contains(&heard), "{heard}");
    let now = at(Duration::from_secs(50));
    vote(&mut budget, now, 3, 50, Kind::Nullify).unwrap_or_else(|denied| {
        // Far beyond its budget it is muted, and the mute ends.
        assert_eq!(denied, Denied::Muted);
    });
}

#[test]
fn no_member_spends_the_budget_of_another() {
    let mut budget = Budget::new(&epoch(4), Time::ZERO);
    budget.at(10, 9);
    let now = at(Duration::from_secs(1));
    let error = OpenError::Signature(MemberIndex(1));
    // With member 1 as sender and no valid signature, until the neighbour is muted.
    let mut tried = 0;
    loop {
        let bytes = frame(1, 10, Kind::Progress, tried);
        match budget.admit(now, MemberIndex(3), Path::Gossip, &bytes) {
            Ok(admitted) => drop(budget.refused(now, &admitted, 1, &error)),
            Err(denied) => {
                assert_eq!(denied, Denied::Muted);
                break;
            }
        }
        tried += 1;
    }
    assert_eq!(tried as u64, OFFENCES + 1);
    // Another neighbour replays messages of member 1 of past views.
    for view in 1..9 {
        let bytes = frame(1, view, Kind::Progress, 0);
        let again = budget.admit(now, MemberIndex(2), Path::Gossip, &bytes);
        assert_eq!(again.unwrap_err(), Denied::Stale);
    }
    // Sent directly with member 1 as sender.
    let bytes = frame(1, 10, Kind::Progress, 0);
    let foreign = budget.admit(now, MemberIndex(2), Path::Direct, &bytes);
    assert_eq!(foreign.unwrap_err(), Denied::Foreign);
    // The budget of member 1 is still full.
    for number in 0..32 {
        let bytes = frame(1, 10, Kind::Progress, number);
        let opened = progress(1, 10);
        let gossip = (0, Path::Gossip);
        hear(&mut budget, now, gossip, &bytes, (1, &opened)).unwrap();
    }
}

#[test]
fn private_kinds_are_refused_by_gossip_and_answers_need_a_question() {
    let mut budget = Budget::new(&epoch(4), Time::ZERO);
    let now = Time::ZERO;
    let from = MemberIndex(1);
    for kind in Kind::ALL {
        let bytes = frame(2, 1, kind, 0);
        let passed_on = budget.admit(now, from, Path::Gossip, &bytes).map(drop);
        let expected = if kind.is_private() {
            Err(Denied::Private(kind))
        } else {
            Ok(())
        };
        assert_eq!(passed_on, expected, "{kind:?}");
    }
    let answer = frame(1, 0, Kind::SyncResponse, 1000);
    let unasked = budget.admit(now, from, Path::Direct, &answer);
    assert_eq!(unasked.unwrap_err(), Denied::Unasked);
    budget.asked(from);
    budget.asked(from);
    for expected in [Ok(()), Ok(()), Err(Denied::Unasked)] {
        let answered = budget.admit(now, from, Path::Direct, &answer);
        assert_eq!(answered.map(drop), expected);
    }
}

#[test]
fn evidence_against_an_accused_member_is_dropped() {
    let mut budget = Budget::new(&epoch(10), Time::ZERO);
    let evidence = |member, view| {
        let signed = |block: &[u8]| Signed {
            round: 0,
            view,
            body: Body::Finalize {
                block: Hash::of(block),
            },
            signature: Signature::from_bytes(&[0; 64]),
        };
        Opened::Evidence(Box::new(Evidence {
            member: MemberIndex(member),
            first: signed(b"a"),
            second: signed(b"b"),
        }))
    };
    let bytes = alone(0, Kind::Evidence);
    let mut heard = |from, member, view| {
        let opened = evidence(member, view);
        let gossip = (from, Path::Gossip);
        hear(&mut budget, Time::ZERO, gossip, &bytes, (2, &opened))
    };
    assert_eq!(heard(9, 9, 1), Ok(()));
    assert_eq!(heard(9, 9, 2), Err(Denied::Repeated));
    assert_eq!(heard(8, 7, 2), Ok(()));
    for view in 3..9 {
        assert_eq!(heard(9, 9, view), Err(Denied::Repeated));
    }
    assert_eq!(heard(9, 9, 9), Err(Denied::TooMany(Kind::Evidence)));
}

#[test]
fn frames_that_do_not_open_cost_a_multiple_and_lead_to_mutes_that_double() {
    let mut budget = Budget::new(&epoch(4), Time::ZERO);
    let from = MemberIndex(3);
    let error = OpenError::Signature(from);
    let bytes = frame(3, 1, Kind::Progress, 0);
    let (mut now, mut spans) = (Time::ZERO, Vec::new());
    while spans.len() < 11 {
        now = now + Duration::from_millis(1);
        match budget.admit(now, from, Path::Direct, &bytes) {
            Ok(admitted) => spans.extend(budget.refused(now, &admitted, 1, &error)),
            Err(Denied::Muted) => {}
            Err(Denied::TooMany(_) | Denied::Checks) => {
                // Not what is asked here; both come back.
                now = now + HEARTBEAT;
            }
            Err(denied) => panic!("{denied}"),
        }
    }
    let seconds: Vec<_> = spans.iter().map(Duration::as_secs).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256]);
    // It is heard again after that, and an hour later the first mute is short again.
    now = now + Duration::from_secs(3600);
    let mut offences = 0;
    let span = loop {
        let admitted = budget.admit(now, from, Path::Direct, &bytes).unwrap();
        offences += 1;
        if let Some(span) = budget.refused(now, &admitted, 1, &error) {
            break span;
        }
    };
    assert_eq!((offences, span.as_secs()), (OFFENCES + 1, 1));
}

#[test]
fn a_neighbour_that_passes_on_bad_inner_signatures_is_charged_and_not_muted() {
    let mut budget = Budget::new(&epoch(4), Time::ZERO);
    let error = OpenError::Inclusions;
    let bytes = frame(1, 1, Kind::Proposal, 64);
    for at_once in 0..1000 {
        let admitted = budget.admit(Time::ZERO, MemberIndex(3), Path::Gossip, &bytes);
        let Ok(admitted) = admitted else {
            assert_eq!(admitted.unwrap_err(), Denied::Checks);
            assert!((100..200).contains(&at_once), "{at_once}");
            return;
        };
        let muted = budget.refused(Time::ZERO, &admitted, 9, &error);
        assert_eq!(muted, None);
    }
    panic!("never out of checks");
}

#[test]
fn frames_of_other_epochs_have_a_budget_of_each_neighbour_and_a_flood_of_them_mutes() {
    let mut budget = Budget::new(&epoch(4), at(Duration::ZERO));
    let (one, other) = (MemberIndex(1), MemberIndex(2));
    // What a member repeats that is behind, for ten minutes.
    for heartbeat in 0..120u32 {
        let now = at(HEARTBEAT * heartbeat);
        for _ in 0..24 {
            assert_eq!(
                budget.admit_elsewhere(now, other),
                Ok(()),
                "beat {heartbeat}"
            );
        }
    }
    // A thousand a second.
    let (mut seen, mut muted) = (0, 0);
    for frame in 0..60_000u32 {
        let now = at(HEARTBEAT * 120 + Duration::from_millis(1) * frame);
        match budget.admit_elsewhere(now, one) {
            Ok(()) => seen += 1,
            Err(denied) => muted += u64::from(budget.denied(now, one, denied).is_some()),
        }
    }
    let heartbeats = 60 / HEARTBEAT.as_secs();
    assert!(
        (160..=161 + 32 * (heartbeats + 1)).contains(&seen),
        "{seen}"
    );
    assert!(muted >= 4, "{muted}");
    let now = at(HEARTBEAT * 120 + Duration::from_secs(60));
    assert_eq!(
        budget.admit(now, one, Path::Direct, &[][..]).err(),
        Some(Denied::Muted)
    );
    assert_eq!(budget.admit_elsewhere(now, other), Ok(()));
}

#[test]
fn answers_to_other_epochs_are_few_for_each_neighbour_and_for_all_former_members() {
    let n = 4;
    let mut budget = Budget::new(&epoch(n), at(Duration::ZERO));
    let mut answers = [0; 30];
    let heartbeats = 10;
    for tick in 0..heartbeats * 50u32 {
        let now = at(HEARTBEAT / 50 * tick);
        for (to, count) in answers.iter_mut().enumerate() {
            *count += u64::from(budget.may_answer(now, MemberIndex(to as u16)));
        }
    }
    let heartbeats = u64::from(heartbeats);
    let (members, guests) = answers.split_at(usize::from(n));
    assert!(
        members
            .iter()
            .all(|of| (heartbeats..=heartbeats + 2).contains(of)),
        "{members:?}"
    );
    let guests: u64 = guests.iter().sum();
    assert!(
        (4 * heartbeats..=4 * (heartbeats + 2)).contains(&guests),
        "{guests}"
    );
}

#[test]
fn what_a_former_member_sends_of_this_epoch_is_dropped_and_mutes_it() {
    let mut budget = Budget::new(&epoch(4), at(Duration::ZERO));
    let (now, guest) = (at(Duration::ZERO), MemberIndex(5));
    let mut mutes = 0;
    for kind in Kind::ALL.into_iter().cycle().take(1000) {
        for path in [Path::Direct, Path::Gossip] {
            let denied = budget.admit(now, guest, path, &frame(1, 1, kind, 300));
            let denied = denied.expect_err("it is no member");
            assert!(matches!(denied, Denied::Guest | Denied::Muted), "{kind:?}");
            mutes += u64::from(budget.denied(now, guest, denied).is_some());
        }
    }
    assert_eq!(mutes, 1);
    assert_eq!(budget.admit_elsewhere(now, guest), Err(Denied::Muted));
    assert!(!budget.admit_blob_request(now, guest, 1));
}

#[test]
fn the_budget_of_blob_requests_covers_every_round() {
    let epoch = epoch(100);
    let mut budget = Budget::new(&epoch, Time::ZERO);
    // Entries and outcome of a round, every 10 ms.
    for view in 1..1000 {
        let now = at(Duration::from_millis(10 * view));
        budget.at(view, view - 1);
        assert!(budget.admit_blob_request(now, MemberIndex(1), 100));
        assert!(budget.admit_blob_request(now, MemberIndex(1), 100));
    }
    let now = at(Duration::from_secs(10));
    let asked = (0..100).filter(|_| budget.admit_blob_request(now, MemberIndex(2), 1024));
    assert_eq!(asked.count(), 4);
    assert!(budget.admit_blob_request(now, MemberIndex(3), 1024));
}

proptest! {
    /// However tokens are taken and given back, no more than burst, rate and debt are spent.
    #[test]
    fn a_bucket_gives_no_more_than_its_rate(
        steps in prop::collection::vec((0u64..2_000_000, 0u64..500, 0u64..3), 1..200),
        burst in 1u64..300,
        tokens in 0u64..2000,
        per_view in 0u64..50,
    ) {
        let rate = Rate { burst, tokens, span: Duration::from_millis(700), per_view };
        let mut bucket = Bucket::full(&rate, Time::ZERO);
        let (mut micros, mut views, mut spent) = (0, 0, 0);
        for (pause, wanted, more) in steps {
            micros += pause;
            views += more;
            let now = at(Duration::from_micros(micros));
            bucket.refill(&rate, now, views);
            prop_assert_eq!(bucket.is_open(), bucket.wait(&rate) == Duration::ZERO);
            if bucket.is_open() {
                let taken = bucket.take(&rate, wanted);
                prop_assert!(taken <= wanted);
                bucket.give_back(&rate, taken / 3);
                spent += taken - taken / 3;
            }
            let gained = micros * tokens / 700_000 + views * per_view;
            prop_assert!(spent <= 2 * burst + gained + 1, "{} of {}", spent, gained);
        }
    }

    /// After the wait there is a token.
    #[test]
    fn the_wait_of_a_bucket_is_the_time_until_it_opens(
        wanted in 1u64..1_000_000,
        burst in 1u64..100_000,
        tokens in 1u64..100_000,
    ) {
        let rate = Rate::per_second(tokens, burst);
        let mut bucket = Bucket::full(&rate, Time::ZERO);
        bucket.take(&rate, wanted);
        let wait = bucket.wait(&rate);
        bucket.refill(&rate, at(wait), 0);
        prop_assert!(bucket.is_open());
    }

    /// No bytes make a budget panic, and no neighbour is charged for another.
    #[test]
    fn no_bytes_make_a_budget_panic(
        frames in prop::collection::vec((0u16..6, any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)), 0..100),
    ) {
        let mut budget = Budget::new(&epoch(4), Time::ZERO);
        for (from, direct, bytes) in frames {
            let path = if direct { Path::Direct } else { Path::Gossip };
            let from = MemberIndex(from);
            match budget.admit(Time::ZERO, from, path, &bytes) {
                Ok(admitted) => {
                    let error = OpenError::Unspoken(0);
                    let _ = budget.refused(Time::ZERO, &admitted, 0, &error);
                }
                Err(denied) => drop(budget.denied(Time::ZERO, from, denied)),
            }
        }
    }
}
