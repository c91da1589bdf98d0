#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::certificate::{CertificateError, Checked, Verdict, Vote};
use crate::frame::HEADER;
use crate::hash::Hash;
use crate::identity::Strict;
use crate::message::{
    Amendment, Approval, Blob, Block, Change, Confirmation, Content, Contribution,
    ContributionList, EntryFields, KeyList, Keys, Learning, MaskedManifest, MaskedVector,
    MemberScores, Phase, Proposal, PublicKeys, Reminder, RoundManifest, Standing, SyncResponse,
    Unmasking,
};
use crate::parameters::{Genesis, ProtocolParameters, Verification};
use crate::roster::Silo;

mod charges;
mod contradictions;
mod unsigned;

pub(crate) fn key(i: u16) -> SecretKey {
    SecretKey::from_bytes(blake3::hash(&i.to_le_bytes()).as_bytes())
}

pub(crate) fn epoch(name: &str) -> Arc<Epoch> {
    let silo = |i| Silo {
        name: format!("silo {i}"),
        key: key(i).public(),
        rows: None,
    };
    let protocol = ProtocolParameters {
        work: "toy".into(),
        ..ProtocolParameters::small(name)
    };
    Arc::new(
        Epoch::first(&Genesis {
            silos: (0..4).map(silo).collect(),
            protocol,
        })
        .unwrap(),
    )
}

fn read(epoch: &Epoch, bytes: &[u8]) -> Result<Opened, OpenError> {
    open(epoch, &Strict, &Known::default(), bytes)
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
fn a_signed_message_opens_to_an_equal_message() {
    let epoch = epoch("a");
    let (message, bytes) = sign(&epoch, &key(2), 0, 4, MemberIndex(2), body());
    assert_eq!(read(&epoch, &bytes), Ok(Opened::Message(message.clone())));
    assert_eq!(reseal(&epoch, &message), bytes);
}

#[test]
fn every_check_of_open_has_its_own_error() {
    let (one, other) = (epoch("a"), epoch("b"));
    let (_, bytes) = sign(&one, &key(2), 0, 4, MemberIndex(2), body());
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
    let (found, agreed) = (9, VERSION);
    assert_eq!(changed(0, 9), OpenError::Format { found, agreed });
    assert_eq!(read(&other, &bytes), Err(OpenError::Federation));
    assert_eq!(changed(40, !bytes[40]), OpenError::Epoch);
    assert_eq!(changed(83, 99), OpenError::Kind(99));
    assert_eq!(changed(81, 9), OpenError::Stranger(MemberIndex(9)));
    // Another sender.
    assert_eq!(changed(81, 1), OpenError::Signature(MemberIndex(1)));
    // Another round, view, kind or body under the same signature.
    for at in [73, bytes.len() - 1] {
        assert_eq!(
            changed(at, bytes[at] ^ 1),
            OpenError::Signature(MemberIndex(2)),
            "byte {at}"
        );
    }
}

#[test]
fn a_message_of_another_format_than_the_agreed_one_is_refused() {
    let epoch = epoch("a");
    let (_, bytes) = sign(&epoch, &key(2), 0, 4, MemberIndex(2), body());
    let of_format = |version: u8| {
        let mut bytes = bytes.to_vec();
        bytes[0] = version;
        read(&epoch, &bytes).unwrap_err().to_string()
    };
    assert_eq!(
        of_format(VERSION + 1),
        "message format 3, the agreement in force has format 2"
    );
    assert_eq!(
        of_format(1),
        "message format 1, the agreement in force has format 2"
    );
    // One that was kept names no agreement.
    let mut kept = bytes.to_vec();
    kept[0] = Formats::SPOKEN.newest + 1;
    let why = super::read(&kept).unwrap_err().to_string();
    assert_eq!(why, "message format 4, this program reads formats 1 to 3");
}

/// An amendment by which the last member of the epoch leaves.
fn amendment(epoch: &Epoch) -> Amendment {
    Amendment {
        text: b"text".to_vec(),
        ..Amendment::leaving(epoch, MemberIndex(3))
    }
}

/// A change that members 0, 1 and 2 approve, and the proof that it is final.
pub(crate) fn passage(epoch: &Epoch) -> Passage {
    let amendment = amendment(epoch);
    let hash = amendment.hash();
    let sign = |member, view, body| {
        sign(epoch, &key(member), 0, view, MemberIndex(member), body)
            .0
            .signature
    };
    let approval = |member| {
        let body = Body::Approval {
            amendment: hash,
            number: 1,
            stands: true,
        };
        Approval {
            by: MemberIndex(member),
            number: 1,
            signature: sign(member, 0, body),
        }
    };
    let block = Block {
        epoch: epoch.id,
        view: 5,
        parent: epoch.id,
        content: Content::Change(Box::new(Change {
            amendment,
            after: epoch.began,
            approvals: [approval(0), approval(1), approval(2)].into(),
        })),
    };
    let verdict = Verdict::Final(block.hash());
    let vote = |member| Vote {
        member: MemberIndex(member),
        checked: Checked::Structure,
        signature: sign(member, 5, Body::vote(verdict, Checked::Structure)),
    };
    let proof = Certificate {
        view: 5,
        verdict,
        votes: [vote(0), vote(2), vote(3)].into(),
    };
    Passage {
        blocks: vec![block],
        proof,
    }
}

/// A body of every kind that is signed by its sender; with another hash another one.
fn bodies(epoch: &Epoch, hash: Hash) -> Vec<Body> {
    let block = Block {
        epoch: epoch.id,
        view: 5,
        parent: hash,
        content: Content::Empty,
    };
    let fields = EntryFields {
        blob: hash,
        size: 1,
        coalition: None,
        weight: None,
        member: None,
    };
    let mut all = vec![
        Body::Contribution(Contribution {
            plan: hash,
            fields,
            nonce: [1; 32],
            metrics: vec![],
        }),
        Body::Receipt { entry: hash },
        Body::ContributionList(ContributionList { entries: vec![] }),
        Body::Scores(MemberScores {
            entry: hash,
            losses: vec![],
        }),
        Body::Manifest(RoundManifest {
            entries: vec![],
            scores: None,
        }),
        Body::Inclusion { manifest: hash },
        Body::Proposal(Box::new(Proposal {
            block,
            parent: None,
            skipped: vec![],
        })),
        Body::Notarize {
            block: hash,
            checked: Checked::Structure,
        },
        Body::Finalize { block: hash },
        Body::Nullify,
        body(),
        Body::SyncRequest {
            after: 0,
            from: 1,
            missing: None,
            nonce: 7,
        },
        Body::SyncResponse(Box::new(SyncResponse::nothing(0, 7))),
        Body::Complete,
        Body::Amendment(Box::new(amendment(epoch))),
        Body::Approval {
            amendment: amendment(epoch).hash(),
            number: 1,
            stands: true,
        },
        Standing {
            number: 1,
            lost: vec![MemberIndex(1)],
            adopted: epoch.began,
            view: 0,
            block: epoch.id,
            notarised: 0,
        }
        .body(),
        Confirmation {
            number: 1,
            set: hash,
        }
        .body(),
        Body::Abstain,
    ];
    all.extend(masked(hash));
    all
}

/// A message of every kind, made with the round and the view of its header.
fn of_every_kind(epoch: &Epoch, round: u64, view: u64) -> Vec<(Kind, Bytes)> {
    let bodies = bodies(epoch, epoch.id).into_iter();
    let mut all: Vec<_> = bodies
        .map(|body| {
            let kind = body.kind();
            let (_, bytes) = sign(epoch, &key(2), round, view, MemberIndex(2), body);
            (kind, bytes)
        })
        .collect();
    let mut alone = |kind, bytes: Bytes| {
        let mut bytes = bytes.to_vec();
        bytes[65..73].copy_from_slice(&round.to_le_bytes());
        bytes[73..81].copy_from_slice(&view.to_le_bytes());
        all.push((kind, bytes.into()));
    };
    let mut proof = certificate(epoch, &[0, 2, 3]);
    proof.view = 5;
    alone(Kind::Certificate, sign_certificate(epoch, &proof));
    alone(Kind::Evidence, sign_evidence(epoch, &evidence(epoch)));
    alone(Kind::Passage, sign_passage(epoch, &passage(epoch)));
    all
}

/// The bodies of masked rounds.
fn masked(hash: Hash) -> Vec<Body> {
    let blob = Blob { hash, size: 1 };
    let public = PublicKeys {
        exchange: hash.0,
        share: hash.0,
    };
    let (block, list) = (Hash::of(b"block"), Hash::of(b"list"));
    let opening = vec![1];
    vec![
        Body::Keys(Keys { plan: hash, public }),
        Body::KeyList(KeyList { ready: vec![] }),
        Body::MaskedVector(MaskedVector {
            list,
            vector: blob,
            transcript: blob,
        }),
        Body::MaskedManifest(MaskedManifest {
            list,
            entries: vec![],
        }),
        Body::Unmasking(Box::new(Unmasking { block, opening })),
        Body::Outcome {
            block,
            outcome: hash,
        },
    ]
}

#[test]
fn a_header_with_a_round_or_view_that_its_kind_lacks_is_refused() {
    let mut epoch = (*epoch("a")).clone();
    epoch.format = Formats::SPOKEN.newest;
    let kinds: BTreeSet<_> = of_every_kind(&epoch, 1, 1)
        .into_iter()
        .map(|(k, _)| k)
        .collect();
    assert_eq!(kinds, BTreeSet::from(Kind::ALL));
    for (round, view) in [(0, 0), (0, 5), (2, 0), (2, 5)] {
        for (kind, bytes) in of_every_kind(&epoch, round, view) {
            let fits = kind.scope().allows(round, view);
            let expected = Err(OpenError::Header { kind, round, view });
            let opened = read(&epoch, &bytes);
            if fits {
                assert!(opened.is_ok(), "{kind:?} {round} {view}: {opened:?}")
            } else {
                assert_eq!(opened, expected)
            }
        }
    }
}

#[test]
fn messages_with_impossible_headers_make_no_evidence() {
    let epoch = epoch("a");
    let vote = |block: &[u8]| {
        let body = Body::Finalize {
            block: Hash::of(block),
        };
        sign(&epoch, &key(1), 3, 5, MemberIndex(1), body).0
    };
    assert_eq!(Evidence::of(&vote(b"a"), &vote(b"b")), None);
}

#[test]
fn a_certificate_of_another_view_than_its_header_is_refused() {
    let epoch = epoch("a");
    let mut bytes = sign_certificate(&epoch, &certificate(&epoch, &[0, 2, 3])).to_vec();
    bytes[73] = 6;
    assert_eq!(read(&epoch, &bytes), Err(OpenError::Mislabelled));
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
        let (message, _) = sign(
            epoch,
            &key(i),
            0,
            5,
            MemberIndex(i),
            Body::vote(verdict, checked),
        );
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
    let open = |certificate: &Certificate| read(&epoch, &sign_certificate(&epoch, certificate));
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
    // A vote with another check than was signed, or of another view.
    let mut bad = good.clone();
    votes(&mut bad)[1].checked = Checked::Structure;
    assert_eq!(open(&bad), Err(CertificateError::Signature(5).into()));
    bad = good.clone();
    bad.view = 6;
    assert_eq!(open(&bad), Err(CertificateError::Signature(6).into()));
    // A known verdict is not verified again, even if the votes are damaged.
    let said = (5, good.verdict);
    let known = Known {
        certificates: Arc::new(BTreeMap::from([(said, good.votes.clone())])),
        ..Known::default()
    };
    bad = good;
    let other = bad.votes[1].signature;
    votes(&mut bad)[0].signature = other;
    let bytes = sign_certificate(&epoch, &bad);
    assert_eq!(open_known(&epoch, &known, &bytes), Ok(Opened::Known));
}

fn open_known(epoch: &Epoch, known: &Known, bytes: &[u8]) -> Result<Opened, OpenError> {
    open(epoch, &Strict, known, bytes)
}

/// A known certificate, and a forged one of the same view and verdict.
fn known_and_forged(epoch: &Epoch) -> (Known, Certificate, Certificate) {
    let good = certificate(epoch, &[0, 2, 3]);
    let mut forged = good.clone();
    votes(&mut forged)[1].member = MemberIndex(1);
    votes(&mut forged)[2].member = MemberIndex(60_000);
    let said = (good.view, good.verdict);
    let known = Known {
        certificates: Arc::new(BTreeMap::from([(said, good.votes.clone())])),
        ..Known::default()
    };
    (known, good, forged)
}

#[test]
fn forged_inner_certificates_are_refused_for_known_verdicts_too() {
    let epoch = epoch("a");
    let (known, good, forged) = known_and_forged(&epoch);
    let stranger = OpenError::Certificate(CertificateError::Stranger(MemberIndex(60_000)));
    let response = |highest: &Certificate, proof: &Certificate, above: &Certificate| {
        let body = Body::SyncResponse(Box::new(SyncResponse {
            after: 0,
            nonce: 7,
            highest: Some(highest.clone()),
            blocks: vec![],
            proof: Some(proof.clone()),
            missing: vec![],
            more: false,
            certificates: vec![above.clone()],
            yours: None,
        }));
        let (_, bytes) = sign(&epoch, &key(1), 0, 0, MemberIndex(1), body);
        open_known(&epoch, &known, &bytes)
    };
    assert!(response(&good, &good, &good).is_ok());
    assert_eq!(response(&forged, &good, &good), Err(stranger.clone()));
    assert_eq!(response(&good, &forged, &good), Err(stranger.clone()));
    assert_eq!(response(&good, &good, &forged), Err(stranger.clone()));
    let proposal = |parent: &Certificate, skipped: &Certificate| {
        let proposal = Proposal {
            block: Block {
                epoch: epoch.id,
                view: 6,
                parent: epoch.id,
                content: Content::Empty,
            },
            parent: Some(parent.clone()),
            skipped: vec![skipped.clone()],
        };
        let body = Body::Proposal(Box::new(proposal));
        let (_, bytes) = super::sign(&epoch, &key(1), 0, 6, MemberIndex(1), body);
        open_known(&epoch, &known, &bytes)
    };
    assert!(proposal(&good, &good).is_ok());
    assert_eq!(proposal(&forged, &good), Err(stranger.clone()));
    assert_eq!(proposal(&good, &forged), Err(stranger));
}

#[test]
fn inclusions_not_of_distinct_members_in_order_are_refused() {
    let epoch = epoch("a");
    let manifest = Hash::of(b"sheet");
    let sign = |i: u16, round: u64| {
        let body = Body::Inclusion { manifest };
        let (message, _) = sign(&epoch, &key(i), round, 0, MemberIndex(i), body);
        (MemberIndex(i), message.signature)
    };
    let open = |inclusions: Vec<_>| {
        let learning = Learning {
            round: 2,
            plan: Hash::of(b"plan"),
            manifest,
            inclusions: inclusions.into(),
            decision: vec![],
            outcome: Hash::of(b"outcome"),
        };
        let block = Block {
            epoch: epoch.id,
            view: 6,
            parent: epoch.id,
            content: Content::Learning(learning),
        };
        let proposal = Proposal {
            block,
            parent: None,
            skipped: vec![],
        };
        let body = Body::Proposal(Box::new(proposal));
        let (_, bytes) = super::sign(&epoch, &key(1), 0, 6, MemberIndex(1), body);
        read(&epoch, &bytes).map(|_| ())
    };
    assert_eq!(open(vec![sign(0, 2), sign(1, 2), sign(3, 2)]), Ok(()));
    // The same member twice, out of order, another round, the signature of another member.
    let mut stolen = sign(2, 2);
    stolen.0 = MemberIndex(3);
    for inclusions in [
        vec![sign(0, 2), sign(1, 2), sign(1, 2)],
        vec![sign(1, 2), sign(0, 2), sign(3, 2)],
        vec![sign(0, 2), sign(1, 3), sign(3, 2)],
        vec![sign(0, 2), sign(1, 2), stolen],
    ] {
        assert_eq!(open(inclusions), Err(OpenError::Inclusions));
    }
}

#[test]
fn a_reminder_with_the_signature_of_another_member_is_refused() {
    let epoch = epoch("a");
    let (vote, _) = sign(&epoch, &key(3), 0, 9, MemberIndex(3), Body::Nullify);
    let open = |yours: Reminder| {
        let body = Body::SyncResponse(Box::new(SyncResponse {
            after: 0,
            nonce: 7,
            highest: None,
            blocks: vec![],
            proof: None,
            missing: vec![],
            more: false,
            certificates: vec![],
            yours: Some(yours),
        }));
        let (_, bytes) = sign(&epoch, &key(1), 0, 0, MemberIndex(1), body);
        read(&epoch, &bytes).map(|_| ())
    };
    let reminder = Reminder::of(&vote).unwrap();
    assert_eq!(reminder.message(), vote);
    assert_eq!(open(reminder.clone()), Ok(()));
    let mut invented = reminder;
    invented.member = MemberIndex(2);
    assert_eq!(open(invented), Err(OpenError::Signature(MemberIndex(2))));
}

fn evidence(epoch: &Epoch) -> Evidence {
    let vote = |block: &[u8]| {
        let checked = Checked::Structure;
        let body = Body::Notarize {
            block: Hash::of(block),
            checked,
        };
        sign(epoch, &key(1), 0, 5, MemberIndex(1), body).0
    };
    Evidence::of(&vote(b"a"), &vote(b"b")).unwrap()
}
