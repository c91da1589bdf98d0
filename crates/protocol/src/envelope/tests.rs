#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::certificate::Vote;
use crate::charter::{Charter, Genesis, Rotation, Verification};
use crate::hash::Hash;
use crate::identity::Strict;
use crate::message::{Checked, Phase};
use crate::roster::Silo;

fn key(i: u16) -> SecretKey {
    SecretKey::from_bytes(blake3::hash(&i.to_le_bytes()).as_bytes())
}

fn epoch(name: &str) -> Arc<Epoch> {
    let silo = |i| Silo {
        name: format!("silo {i}"),
        key: key(i).public(),
    };
    let charter = Charter {
        name: name.into(),
        work: "toy".into(),
        start: Hash::of(b"start"),
        rounds: 3,
        beat_ms: 1000,
        patience: 20,
        limit: 100,
        minimum: 3,
        rotation: Rotation::EveryRound,
        verification: Verification::Full,
        names_shown: false,
        blob_limit: 100,
        keep: 2,
        discovery: false,
    };
    Arc::new(
        Epoch::first(&Genesis {
            silos: (0..4).map(silo).collect(),
            charter,
        })
        .unwrap(),
    )
}

fn read(epoch: &Epoch, bytes: &[u8]) -> Result<Opened, OpenError> {
    open(epoch, &Strict, &Known::new(), bytes)
}

fn body() -> Body {
    Body::Progress {
        phase: Phase::Collecting,
        counter: 7,
    }
}

fn votes(certificate: &mut Certificate) -> &mut [Vote] {
    std::sync::Arc::make_mut(&mut certificate.votes)
}

#[test]
fn what_is_sealed_opens() {
    let epoch = epoch("a");
    let (message, bytes) = seal(&epoch, &key(2), 3, 4, MemberIndex(2), body());
    assert_eq!(read(&epoch, &bytes), Ok(Opened::Message(message.clone())));
    assert_eq!(reseal(&epoch, &message), bytes);
}

#[test]
fn each_check_has_its_refusal() {
    let (one, other) = (epoch("a"), epoch("b"));
    let (_, bytes) = seal(&one, &key(2), 3, 4, MemberIndex(2), body());
    let changed = |at: usize, to: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] = to;
        read(&one, &bytes).unwrap_err()
    };
    assert!(matches!(
        read(&one, &bytes[..100]),
        Err(OpenError::Size { got: 100, .. })
    ));
    assert!(matches!(
        read(&one, &vec![1; 4 << 20]),
        Err(OpenError::Size { .. })
    ));
    assert_eq!(changed(0, 9), OpenError::Version(9));
    assert_eq!(read(&other, &bytes), Err(OpenError::Federation));
    assert_eq!(changed(40, !bytes[40]), OpenError::Epoch);
    assert_eq!(changed(83, 99), OpenError::Kind(99));
    assert_eq!(changed(81, 9), OpenError::Stranger(MemberIndex(9)));
    // Somebody else's name on it.
    assert_eq!(changed(81, 1), OpenError::Signature(MemberIndex(1)));
    // Another round, view, kind or body under the same signature.
    for at in [65, 73, 83, bytes.len() - 1] {
        assert_eq!(
            changed(at, bytes[at] ^ 1),
            OpenError::Signature(MemberIndex(2)),
            "byte {at}"
        );
    }
}

#[test]
fn a_signed_body_of_another_kind_is_refused() {
    let epoch = epoch("a");
    let mut statement = statement(&epoch, 0, 1, MemberIndex(0), &body());
    statement[HEADER - 1] = Kind::Nullify as u8;
    let bytes = assemble(&statement, key(0).sign(&statement));
    assert_eq!(read(&epoch, &bytes), Err(OpenError::Mislabelled));
}

fn certificate(epoch: &Epoch, voters: &[u16]) -> Certificate {
    let verdict = Verdict::Notarised(Hash::of(b"block"));
    let checked = Checked::Outcome(Verification::Full);
    let vote = |&i: &u16| {
        let (message, _) = seal(epoch, &key(i), 0, 5, MemberIndex(i), verdict.vote(checked));
        Vote {
            member: MemberIndex(i),
            checked,
            signature: message.signature,
        }
    };
    Certificate {
        view: 5,
        verdict,
        votes: voters.iter().map(vote).collect(),
    }
}

#[test]
fn certificates_need_a_quorum_of_distinct_members() {
    let epoch = epoch("a");
    let open = |certificate: &Certificate| read(&epoch, &seal_certificate(&epoch, certificate));
    let good = certificate(&epoch, &[0, 2, 3]);
    assert_eq!(open(&good), Ok(Opened::Certificate(good.clone())));
    for voters in [&[0u16, 2][..], &[0, 2, 2], &[2, 0, 3], &[0, 1, 2, 3]] {
        let refused = open(&certificate(&epoch, voters));
        assert!(
            matches!(
                refused,
                Err(OpenError::Certificate(CertificateError::Votes { .. }))
            ),
            "{voters:?}"
        );
    }
    // A vote for less than it says, or for another view.
    let mut bad = good.clone();
    votes(&mut bad)[1].checked = Checked::Structure;
    assert_eq!(open(&bad), Err(CertificateError::Signature(5).into()));
    bad = good.clone();
    bad.view = 6;
    assert_eq!(open(&bad), Err(CertificateError::Signature(6).into()));
    // What is known is not verified again, not even when it is damaged.
    let known = Known::from([(5, good.verdict)]);
    bad = good;
    let other = bad.votes[1].signature;
    votes(&mut bad)[0].signature = other;
    let bytes = seal_certificate(&epoch, &bad);
    assert_eq!(open_known(&epoch, &known, &bytes), Ok(Opened::Known));
}

fn open_known(epoch: &Epoch, known: &Known, bytes: &[u8]) -> Result<Opened, OpenError> {
    open(epoch, &Strict, known, bytes)
}

#[test]
fn evidence_must_show_a_conflict() {
    let epoch = epoch("a");
    let vote = |block: &[u8]| {
        let checked = Checked::Structure;
        let body = Body::Notarize {
            block: Hash::of(block),
            checked,
        };
        seal(&epoch, &key(1), 0, 5, MemberIndex(1), body).0
    };
    let evidence = Evidence::of(&vote(b"a"), &vote(b"b")).unwrap();
    let open = |evidence: &Evidence| read(&epoch, &seal_evidence(&epoch, evidence));
    assert_eq!(
        open(&evidence),
        Ok(Opened::Evidence(Box::new(evidence.clone())))
    );
    assert_eq!(evidence.charge(), "two Notarize votes in view 5");
    assert_eq!(Evidence::of(&vote(b"a"), &vote(b"a")), None);
    // Blaming somebody else, or a vote against oneself that never was.
    let mut framed = evidence.clone();
    framed.member = MemberIndex(2);
    assert_eq!(
        open(&framed),
        Err(EvidenceError::Signature(MemberIndex(2)).into())
    );
    let mut harmless = evidence;
    harmless.second = harmless.first.clone();
    assert_eq!(
        open(&harmless),
        Err(EvidenceError::NoConflict(MemberIndex(1)).into())
    );
    // Notarize and Nullify of one view stand beside each other.
    let nullify = seal(&epoch, &key(1), 0, 5, MemberIndex(1), Body::Nullify).0;
    assert_eq!(Evidence::of(&vote(b"a"), &nullify), None);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let epoch = epoch("a");
        prop_assert!(read(&epoch, &bytes).is_err());
    }

    #[test]
    fn any_flipped_bit_is_refused(at in 0usize..10_000, bit in 0u8..8) {
        let epoch = epoch("a");
        let (_, bytes) = seal(&epoch, &key(2), 3, 4, MemberIndex(2), body());
        let mut bytes = bytes.to_vec();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(read(&epoch, &bytes).is_err());
    }
}
