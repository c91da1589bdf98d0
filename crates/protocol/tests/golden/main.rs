//! The bytes of every message on the wire and of every record in a journal, compared with the
//! files in `tests/golden`.
//!
//! A line of such a file is a name and the bytes in hexadecimal digits. To change a format, run the
//! tests with `ROTA_GOLDEN=write`, look at the difference, and raise `Formats::SPOKEN` if
//! programs that read the old bytes have been released. Every kind is pinned in the format that it came
//! with; in later ones the first byte differs, and so the signature does.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use protocol::certificate::{Certificate, Checked, Verdict, Vote};
use protocol::effects::{Case, OwnConfirmation};
use protocol::envelope::{self, Known, OpenError, Opened};
use protocol::evidence::Evidence;
use protocol::forgotten::Forgotten;
use protocol::identity::Strict;
use protocol::message::{
    Amendment, Approval, Block, Body, Change, Confirmation, Confirmed, Content, Contribution,
    ContributionList, Entry, EntryFields, Kind, Learning, MemberScores, Passage, Phase, Proposal,
    Recovery, Reminder, RoundManifest, Standing, SyncResponse,
};
use protocol::parameters::{Privacy, ProtocolParameters, Verification};
use protocol::recovery::{resume_point, set};
use protocol::roster::Silo;
use protocol::{Checkpoint, Epoch, Genesis, Hash, MemberIndex, Message, Record, SecretKey, codec};

mod masked;

/// Lines of a golden file: names and bytes.
type GoldenBytes = Vec<(String, Vec<u8>)>;

fn key(member: u16) -> SecretKey {
    SecretKey::from_bytes(&[member as u8 + 1; 32])
}

/// Four members, in this format. The ids are fixed here, so that these files pin the messages and not the
/// encoding of a parameter set.
fn epoch(format: u8) -> Epoch {
    let silo = |member| Silo {
        name: format!("silo {member}"),
        key: key(member).public(),
        rows: None,
    };
    let protocol = ProtocolParameters {
        work: "none".into(),
        start: Hash([3; 32]),
        ..ProtocolParameters::small("golden")
    };
    let silos = (0..4).map(silo).collect();
    let mut epoch = Epoch::first_in(format, &Genesis { silos, protocol }).unwrap();
    (epoch.federation, epoch.id) = (Hash([1; 32]), Hash([2; 32]));
    epoch
}

/// A message of member `sender`. Its header has a round and a view where its kind has them.
fn message(epoch: &Epoch, sender: u16, body: Body) -> Message {
    let scope = body.kind().scope();
    let round = if scope.round { 300 } else { 0 };
    let view = if scope.view { 70_000 } else { 0 };
    let key = key(sender);
    envelope::sign(epoch, &key, round, view, MemberIndex(sender), body).0
}

fn fields(byte: u8) -> EntryFields {
    EntryFields {
        blob: Hash([byte; 32]),
        size: 1000,
        coalition: None,
        weight: None,
        member: None,
    }
}

fn entries() -> Vec<Entry> {
    let entry = |id, fields| Entry {
        id: Hash([id; 32]),
        fields,
    };
    let with_everything = EntryFields {
        coalition: Some(2),
        weight: Some(250),
        member: Some(MemberIndex(3)),
        ..fields(0xb1)
    };
    vec![entry(0xe0, fields(0xb0)), entry(0xe1, with_everything)]
}

fn manifest() -> RoundManifest {
    RoundManifest {
        entries: entries(),
        scores: Some(vec![vec![0.5, 1.25], vec![-0.0, 1e300]]),
    }
}

fn contribution() -> Contribution {
    Contribution {
        plan: Hash([4; 32]),
        fields: entries().remove(1).fields,
        nonce: [5; 32],
        metrics: vec![("loss".into(), 0.25), ("rows".into(), 250.0)],
    }
}

fn certificate(epoch: &Epoch, verdict: Verdict) -> Certificate {
    let checked = match verdict {
        Verdict::Notarised(_) => Checked::Outcome(Verification::Full),
        _ => Checked::Structure,
    };
    let vote = |member| Vote {
        member: MemberIndex(member),
        checked,
        signature: message(epoch, member, Body::vote(verdict, checked)).signature,
    };
    Certificate {
        view: 70_000,
        verdict,
        votes: (0..3).map(vote).collect(),
    }
}

fn block(epoch: &Epoch, content: Content) -> Block {
    Block {
        epoch: epoch.id,
        view: 70_000,
        parent: Hash([6; 32]),
        content,
    }
}

fn learning(epoch: &Epoch) -> Block {
    let manifest = manifest().root();
    let inclusion = |member| {
        let signed = message(epoch, member, Body::Inclusion { manifest });
        (MemberIndex(member), signed.signature)
    };
    let content = Content::Learning(Learning {
        round: 300,
        plan: Hash([4; 32]),
        manifest,
        inclusions: [inclusion(1), inclusion(3)].into(),
        decision: vec![7, 8, 9],
        outcome: Hash([10; 32]),
    });
    block(epoch, content)
}

/// The member with the key 3 leaves, and rounds go on.
fn amendment(epoch: &Epoch) -> Amendment {
    let mut amendment = Amendment::leaving(epoch, MemberIndex(3));
    amendment.protocol.rounds += 10;
    amendment.text = b"text".to_vec();
    amendment
}

fn change(epoch: &Epoch) -> Content {
    let amendment = amendment(epoch);
    let hash = amendment.hash();
    let approval = |member| {
        let signed = message(
            epoch,
            member,
            Body::Approval {
                amendment: hash,
                number: 1,
                stands: true,
            },
        );
        Approval {
            by: MemberIndex(member),
            number: 1,
            signature: signed.signature,
        }
    };
    Content::Change(Box::new(Change {
        amendment,
        after: Checkpoint {
            round: 12,
            block: Hash([6; 32]),
            outcome: Hash([10; 32]),
        },
        approvals: [approval(0), approval(1), approval(2)].into(),
    }))
}

/// What a member signs that goes on without member 3, before any block is final.
fn standing(epoch: &Epoch) -> Standing {
    Standing {
        number: 1,
        lost: vec![MemberIndex(3)],
        adopted: epoch.began,
        view: 0,
        block: epoch.id,
        notarised: 260,
    }
}

/// Members 0 to 2 go on without member 3.
fn recovered(epoch: &Epoch) -> Passage {
    let all = (0..3).map(MemberIndex);
    let standing = standing(epoch);
    let set = set(all.clone().map(|by| (by, &standing)));
    let number = 1;
    let confirmed = |by: MemberIndex| {
        let sign = |body| message(epoch, by.0, body).signature;
        Confirmed {
            by,
            standing: standing.clone(),
            signature: sign(Body::Standing(Box::new(standing.clone()))),
            number,
            confirmation: sign(Body::Confirmation(Box::new(Confirmation { number, set }))),
        }
    };
    let standings = all.map(confirmed).collect();
    let lost = [MemberIndex(3)];
    let ground = resume_point(epoch, [&standing]).unwrap();
    let block = Recovery::block(epoch, &lost, &ground, standings, Vec::new());
    Passage {
        blocks: vec![block],
        proof: Recovery::no_proof(epoch),
    }
}

fn passage(epoch: &Epoch) -> Passage {
    let change = block(epoch, change(epoch));
    Passage {
        proof: certificate(epoch, Verdict::Final(change.hash())),
        blocks: vec![change],
    }
}

fn proposal(epoch: &Epoch, block: Block) -> Body {
    Body::Proposal(Box::new(Proposal {
        block,
        parent: Some(certificate(epoch, Verdict::Final(Hash([6; 32])))),
        skipped: vec![certificate(epoch, Verdict::Nullified)],
    }))
}

/// An answer with everything in it; `reminder` is a message of the asker.
fn sync_response(epoch: &Epoch, reminder: &Message) -> Body {
    Body::SyncResponse(Box::new(SyncResponse {
        after: 69_000,
        nonce: 11,
        highest: Some(certificate(epoch, Verdict::Nullified)),
        blocks: vec![learning(epoch)],
        proof: Some(certificate(epoch, Verdict::Final(learning(epoch).hash()))),
        missing: vec![block(epoch, Content::Empty)],
        more: true,
        certificates: vec![certificate(epoch, Verdict::Notarised(Hash([6; 32])))],
        yours: Reminder::of(reminder),
    }))
}

/// Every body, with a name for each variant inside it that has bytes of its own.
fn bodies(epoch: &Epoch) -> Vec<(String, Body)> {
    let block_hash = Hash([6; 32]);
    let phases = [
        Phase::Waiting,
        Phase::Collecting,
        Phase::Scoring,
        Phase::Including,
        Phase::Deciding,
        Phase::Voting,
    ];
    let notarize = |checked| Body::Notarize {
        block: block_hash,
        checked,
    };
    let finalize = Body::Finalize { block: block_hash };
    let reminders = [
        ("contribution", Body::Contribution(contribution())),
        ("notarize", notarize(Checked::Outcome(Verification::Full))),
        ("finalize", finalize.clone()),
        ("nullify", Body::Nullify),
        ("proposal", proposal(epoch, block(epoch, Content::Empty))),
    ];
    let entry = entries()[0].id;
    let mut bodies = vec![
        ("contribution", Body::Contribution(contribution())),
        ("receipt", Body::Receipt { entry }),
        (
            "bundle",
            Body::ContributionList(ContributionList { entries: entries() }),
        ),
        (
            "scores",
            Body::Scores(MemberScores {
                entry,
                losses: vec![(Hash([0xb0; 32]), 0.5), (Hash([0xb1; 32]), 1.25)],
            }),
        ),
        ("sheet with scores", Body::Manifest(manifest())),
        (
            "sheet without scores",
            Body::Manifest(RoundManifest {
                scores: None,
                ..manifest()
            }),
        ),
        (
            "inclusion",
            Body::Inclusion {
                manifest: manifest().root(),
            },
        ),
        ("proposal of a round", proposal(epoch, learning(epoch))),
        (
            "proposal of a change",
            proposal(epoch, block(epoch, change(epoch))),
        ),
        (
            "proposal of an empty block",
            proposal(epoch, block(epoch, Content::Empty)),
        ),
        ("notarize structure", notarize(Checked::Structure)),
        (
            "notarize outcome",
            notarize(Checked::Outcome(Verification::Full)),
        ),
        ("finalize", finalize),
        ("nullify", Body::Nullify),
        (
            "sync request",
            Body::SyncRequest {
                after: 69_000,
                from: 69_001,
                missing: Some(block_hash),
                nonce: 11,
            },
        ),
        (
            "sync response, empty",
            Body::SyncResponse(Box::new(SyncResponse::nothing(69_000, 11))),
        ),
        ("complete", Body::Complete),
        ("amendment", Body::Amendment(Box::new(amendment(epoch)))),
        (
            "approval",
            Body::Approval {
                amendment: amendment(epoch).hash(),
                number: 1,
                stands: true,
            },
        ),
        ("standing", Body::Standing(Box::new(standing(epoch)))),
        (
            "confirmation",
            Body::Confirmation(Box::new(Confirmation {
                number: 1,
                set: block_hash,
            })),
        ),
    ]
    .into_iter()
    .map(|(name, body)| (name.to_owned(), body))
    .collect::<Vec<_>>();
    bodies.extend(phases.map(|phase| {
        let counter = 260;
        let name = format!("progress {phase:?}").to_lowercase();
        (name, Body::Progress { phase, counter })
    }));
    bodies.extend(reminders.map(|(name, body)| {
        let name = format!("sync response, reminder of {name}");
        (name, sync_response(epoch, &message(epoch, 2, body)))
    }));
    bodies
}

fn certificates(epoch: &Epoch) -> Vec<(String, Certificate)> {
    let block = Hash([6; 32]);
    let of = |name: &str, verdict| (name.to_owned(), certificate(epoch, verdict));
    vec![
        of("nullified", Verdict::Nullified),
        of("notarised", Verdict::Notarised(block)),
        of("final", Verdict::Final(block)),
    ]
}

fn evidence(epoch: &Epoch) -> Evidence {
    let finalize = Body::Finalize {
        block: Hash([6; 32]),
    };
    let (first, second) = (
        message(epoch, 2, Body::Nullify),
        message(epoch, 2, finalize),
    );
    Evidence::of(&first, &second).unwrap()
}

/// Compares `lines` with the golden file of that name, or writes it if `ROTA_GOLDEN=write`.
fn compare(file: &str, lines: &GoldenBytes) {
    let mut text = String::new();
    for (name, bytes) in lines {
        write!(text, "{name}: ").unwrap();
        for byte in bytes {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = folder.join(file).with_extension("hex");
    if std::env::var("ROTA_GOLDEN").is_ok_and(|value| value == "write") {
        return std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let (golden, lines): (Vec<_>, Vec<_>) = (golden.lines().collect(), text.lines().collect());
    let wrong: Vec<_> = (0..golden.len().max(lines.len()))
        .filter(|&at| golden.get(at) != lines.get(at))
        .map(|at| match (golden.get(at), lines.get(at)) {
            (Some(golden), line) => {
                format!("expected {golden}\n   found {}", line.unwrap_or(&"nothing"))
            }
            (None, line) => format!("expected nothing\n   found {}", line.unwrap_or(&"")),
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} lines differ from {}:\n{}\nIf the format was meant to change, run the tests again with \
         ROTA_GOLDEN=write, which writes the file anew, and say so in the changelog.",
        wrong.len(),
        path.display(),
        wrong.join("\n")
    );
}

/// The file of a kind: its name in lower case, words joined by hyphens.
fn file(kind: Kind) -> String {
    let mut name = String::new();
    for letter in format!("{kind:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

fn open(epoch: &Epoch, frame: &[u8]) -> Result<Opened, OpenError> {
    envelope::open(epoch, &Strict, &Known::default(), frame)
}

#[test]
fn envelopes_of_every_kind_equal_their_golden_bytes_and_open_again() {
    let epoch = epoch(1);
    let open_old = |name: &str, frame: &[u8]| {
        open(&epoch, frame).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let mut files: Vec<(Kind, GoldenBytes)> = Kind::ALL.map(|kind| (kind, Vec::new())).into();
    let mut add = |kind: Kind, name: String, frame: &[u8]| {
        let lines = &mut files.iter_mut().find(|(of, _)| *of == kind).unwrap().1;
        lines.push((name, frame.to_vec()));
    };
    for (name, body) in bodies(&epoch) {
        let kind = body.kind();
        assert_eq!(kind.since(), 1);
        let message = message(&epoch, 1, body);
        let frame = envelope::reseal(&epoch, &message);
        assert_eq!(open_old(&name, &frame), Opened::Message(message), "{name}");
        add(kind, name, &frame);
    }
    for (name, certificate) in certificates(&epoch) {
        let frame = envelope::sign_certificate(&epoch, &certificate);
        let opened = open_old(&name, &frame);
        assert_eq!(opened, Opened::Certificate(certificate), "{name}");
        add(Kind::Certificate, name, &frame);
    }
    let evidence = evidence(&epoch);
    let frame = envelope::sign_evidence(&epoch, &evidence);
    let opened = open_old("evidence", &frame);
    assert_eq!(opened, Opened::Evidence(Box::new(evidence)));
    add(Kind::Evidence, "nullify and finalize".into(), &frame);
    let passage = passage(&epoch);
    let frame = envelope::sign_passage(&epoch, &passage);
    let opened = open_old("passage", &frame);
    assert_eq!(opened, Opened::Passage(Box::new(passage)));
    add(Kind::Passage, "change".into(), &frame);
    let recovered = recovered(&epoch);
    let frame = envelope::sign_passage(&epoch, &recovered);
    let opened = open_old("recovery", &frame);
    assert_eq!(opened, Opened::Passage(Box::new(recovered)));
    add(Kind::Passage, "recovery".into(), &frame);
    let newer = self::epoch(2);
    let message = message(&newer, 1, Body::Abstain);
    let frame = envelope::reseal(&newer, &message);
    assert_eq!(open(&newer, &frame), Ok(Opened::Message(message.clone())));
    add(Kind::Abstain, "nothing".into(), &frame);
    // In the format before, nobody knows the kind.
    let older = envelope::reseal(&epoch, &message);
    assert_eq!(open(&epoch, &older), Err(OpenError::Kind(22)));
    files.retain(|(kind, _)| kind.since() < 3);
    for (kind, lines) in files {
        assert!(!lines.is_empty(), "no envelope of kind {kind:?} is pinned");
        compare(&file(kind), &lines);
    }
}

#[test]
fn journal_records_equal_their_golden_bytes_and_decode_again() {
    let epoch = epoch(1);
    let records = [
        ("block", Record::Block(learning(&epoch))),
        ("vote", Record::Vote(message(&epoch, 1, Body::Nullify))),
        (
            "proposed",
            Record::Proposed(message(
                &epoch,
                1,
                proposal(&epoch, block(&epoch, Content::Empty)),
            )),
        ),
        (
            "contributed",
            Record::Contributed(message(&epoch, 1, Body::Contribution(contribution()))),
        ),
        (
            "certified",
            Record::Certified(certificate(&epoch, Verdict::Nullified)),
        ),
        (
            "final",
            Record::Final {
                blocks: vec![learning(&epoch)],
                proof: certificate(&epoch, Verdict::Final(learning(&epoch).hash())),
            },
        ),
        ("applied", Record::Applied { round: 300 }),
        (
            "standing",
            Record::Standing(message(
                &epoch,
                1,
                Body::Standing(Box::new(standing(&epoch))),
            )),
        ),
        (
            "confirmed",
            Record::Confirmed(Box::new(OwnConfirmation {
                message: message(
                    &epoch,
                    1,
                    Body::Confirmation(Box::new(Confirmation {
                        number: 1,
                        set: Hash([6; 32]),
                    })),
                ),
                standings: vec![(
                    MemberIndex(1),
                    standing(&epoch),
                    message(&epoch, 1, Body::Standing(Box::new(standing(&epoch)))).signature,
                )],
            })),
        ),
        (
            "outdated",
            Record::Outdated(Forgotten {
                kind: Kind::Finalize,
                round: 0,
                view: 300,
            }),
        ),
    ];
    compare_records("records", records);
}

/// Records are read back as they were, and their bytes are those of a golden file.
fn compare_records<const N: usize>(file: &str, records: [(&str, Record); N]) {
    let mut lines = GoldenBytes::new();
    for (name, record) in records {
        let bytes = record.to_bytes();
        let decoded = codec::decode::<Record>(&bytes, codec::LIMIT);
        assert_eq!(decoded.as_ref(), Ok(&record), "{name}");
        lines.push((name.to_owned(), bytes));
    }
    compare(file, &lines);
}

#[test]
fn hashes_of_blocks_sheets_entries_and_cases_equal_their_golden_bytes() {
    let epoch = epoch(1);
    let entry = contribution().entry(&epoch.federation, 300);
    let root = manifest().root();
    let case = Case::new(300, root, Arc::new(manifest()), [7, 8, 9].into());
    let hashes = [
        ("block of a round", learning(&epoch).hash()),
        ("empty block", block(&epoch, Content::Empty).hash()),
        ("sheet", root),
        ("entry", entry.id),
        ("case", case.id()),
    ];
    let lines = hashes.map(|(name, hash)| (name.to_owned(), hash.0.to_vec()));
    compare("hashes", &lines.into());
}
