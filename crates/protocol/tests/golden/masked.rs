//! The bytes of masked rounds, which are new in format 3.

use protocol::message::{
    Blob, KeyList, Keys, MaskedEntry, MaskedManifest, MaskedRound, MaskedVector, PublicKeys, Ready,
    Unmasking,
};
use protocol::parameters::{Group, Masked, Noise, Real, Release, Sums, Unit};
use protocol::privacy::{Circle, Sum};

use super::*;

fn masked_manifest() -> MaskedManifest {
    let blob = |byte, size| Blob {
        hash: Hash([byte; 32]),
        size,
    };
    MaskedManifest {
        list: Hash([0xa0; 32]),
        entries: vec![MaskedEntry {
            member: MemberIndex(1),
            vector: blob(0xb0, 4000),
            transcript: blob(0xb1, 300),
        }],
    }
}

fn masked(epoch: &Epoch) -> Block {
    let manifest = masked_manifest().root();
    let inclusion = |member| {
        let signed = message(epoch, member, Body::Inclusion { manifest });
        (MemberIndex(member), signed.signature)
    };
    let content = Content::Masked(MaskedRound {
        round: 300,
        plan: Hash([4; 32]),
        state: Hash([11; 32]),
        list: Hash([0xa0; 32]),
        ready: vec![MemberIndex(0), MemberIndex(1), MemberIndex(3)],
        manifest,
        inclusions: [inclusion(1), inclusion(3)].into(),
    });
    block(epoch, content)
}

fn keys() -> Keys {
    Keys {
        plan: Hash([4; 32]),
        public: PublicKeys {
            exchange: [0xc0; 32],
            share: [0xc1; 32],
        },
    }
}

/// The amendment with which the members move to masked rounds.
fn masking(epoch: &Epoch) -> Amendment {
    let mut amendment = Amendment::leaving(epoch, MemberIndex(3));
    amendment.silos = epoch.roster.silos().to_vec();
    amendment.protocol = epoch.protocol.clone();
    amendment.format = 3;
    let authors = (0..4).map(|member| (format!("silo {member}"), 1));
    let authors = authors.collect();
    amendment.protocol.privacy = Privacy::Masked(Masked {
        colluders: 1,
        shows: Vec::new(),
        smallest_sum: 3,
        sums: Sums::Groups(vec![Group { authors }]),
    });
    amendment
}

/// The amendment with which they move to noised ones.
fn noising(epoch: &Epoch) -> Amendment {
    let mut amendment = masking(epoch);
    for silo in &mut amendment.silos {
        silo.rows = Some(300);
    }
    amendment.protocol.privacy = Privacy::Masked(Masked {
        colluders: 1,
        shows: Vec::new(),
        smallest_sum: 3,
        sums: Sums::Noised(Noise {
            release: Release::Steps,
            unit: Unit::Person("patient".into()),
            clip: Real::new(1.5),
            z: Real::new(23.625),
            delta: Real::new(1e-5),
        }),
    });
    amendment
}

/// Bodies that format 3 has beside those before.
fn masked_bodies(epoch: &Epoch) -> Vec<(String, Body)> {
    let signature = message(epoch, 1, Body::Keys(keys())).signature;
    let ready = vec![Ready {
        member: MemberIndex(1),
        keys: keys(),
        signature,
    }];
    let entry = masked_manifest().entries[0];
    let (block, outcome) = (Hash([6; 32]), Hash([10; 32]));
    let phase = Phase::Masking;
    let bodies = [
        ("keys", Body::Keys(keys())),
        ("key list", Body::KeyList(KeyList { ready })),
        (
            "masked vector",
            Body::MaskedVector(MaskedVector {
                list: Hash([0xa0; 32]),
                vector: entry.vector,
                transcript: entry.transcript,
            }),
        ),
        ("masked sheet", Body::MaskedManifest(masked_manifest())),
        (
            "unmasking",
            Body::Unmasking(Box::new(Unmasking {
                block,
                opening: vec![0xd0; 128],
            })),
        ),
        ("outcome", Body::Outcome { block, outcome }),
        ("masked: proposal", proposal(epoch, masked(epoch))),
        (
            "masked: progress",
            Body::Progress {
                phase,
                counter: 260,
            },
        ),
        (
            "masked: amendment",
            Body::Amendment(Box::new(masking(epoch))),
        ),
        (
            "noised: amendment",
            Body::Amendment(Box::new(noising(epoch))),
        ),
        (
            "masked: sync response, reminder of keys",
            sync_response(epoch, &message(epoch, 2, Body::Keys(keys()))),
        ),
        (
            "masked: sync response, reminder of an outcome",
            sync_response(epoch, &message(epoch, 2, Body::Outcome { block, outcome })),
        ),
    ];
    bodies.map(|(name, body)| (name.to_owned(), body)).into()
}

#[test]
fn envelopes_of_masked_rounds_equal_their_golden_bytes_and_open_again() {
    let newest = super::epoch(3);
    let mut masked = GoldenBytes::new();
    for (name, body) in masked_bodies(&newest) {
        let kind = body.kind();
        let message = super::message(&newest, 1, body);
        let frame = envelope::reseal(&newest, &message);
        let opened = open(&newest, &frame);
        assert_eq!(opened, Ok(Opened::Message(message)), "{name}");
        match kind.since() {
            3 => compare(&file(kind), &vec![(name, frame.to_vec())]),
            _ => masked.push((name, frame.to_vec())),
        }
    }
    let verdict = Verdict::Outcome {
        block: Hash([6; 32]),
        outcome: Hash([10; 32]),
    };
    let certified = certificate(&newest, verdict);
    let frame = envelope::sign_certificate(&newest, &certified);
    let opened = open(&newest, &frame);
    assert_eq!(opened, Ok(Opened::Certificate(certified)));
    masked.push(("masked: certificate of an outcome".into(), frame.to_vec()));
    compare("masked", &masked);
}

#[test]
fn records_of_masked_rounds_equal_their_golden_bytes_and_decode_again() {
    let epoch = super::epoch(3);
    let (block, outcome) = (Hash([6; 32]), Hash([10; 32]));
    let records = [
        ("block", Record::Block(masked(&epoch))),
        (
            "contributed",
            Record::Contributed(message(&epoch, 1, Body::Keys(keys()))),
        ),
        (
            "vote",
            Record::Vote(message(&epoch, 1, Body::Outcome { block, outcome })),
        ),
        (
            "certified",
            Record::Certified(certificate(&epoch, Verdict::Outcome { block, outcome })),
        ),
        (
            "circle",
            Record::Circle(Circle(vec![("silo 0".into(), 1), ("silo 1".into(), 2)])),
        ),
    ];
    compare_records("masked-records", records);
}

#[test]
fn hashes_of_masked_rounds_equal_their_golden_bytes() {
    let epoch = super::epoch(3);
    let list = KeyList { ready: Vec::new() };
    let sum = Sum {
        authors: vec![(MemberIndex(0), 1), (MemberIndex(1), 2)],
    };
    let (plan, state) = (Hash([4; 32]), Hash([11; 32]));
    let hashes = [
        ("block of a masked round", masked(&epoch).hash()),
        ("masked sheet", masked_manifest().root()),
        ("list", list.root(&epoch, 300, &plan, &state, &[sum])),
        ("keys", keys().id(&epoch.federation, 300, MemberIndex(1))),
    ];
    let lines = hashes.map(|(name, hash)| (name.to_owned(), hash.0.to_vec()));
    compare("masked-hashes", &lines.into());
}
