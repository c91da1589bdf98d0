#![allow(clippy::unwrap_used)]

use protocol::certificate::{Certificate, Checked, Verdict, Vote};
use protocol::message::{Amendment, Approval, Block, Body, Change, Content, Passage};
use protocol::{Epochs, MemberIndex, SecretKey};

use super::*;
use crate::fixture;

pub(super) fn key(member: u8) -> SecretKey {
    fixture::key(member + 1)
}

/// The first epoch of a federation of four, as the only one.
pub(super) fn epochs(name: &str) -> Epochs {
    let protocol = protocol::ProtocolParameters {
        name: name.into(),
        ..fixture::protocol()
    };
    let first = fixture::epoch(fixture::silos(4, 1), protocol);
    Epochs {
        former: Vec::new(),
        now: first.into(),
        records: Vec::new(),
    }
}

fn evidence(epochs: &Epochs, of: u8) -> EvidenceFile {
    let vote = |body| {
        let me = MemberIndex(of.into());
        envelope::sign(&epochs.now, &key(of), 0, 7, me, body).0
    };
    let block = Hash([3; 32]);
    let (one, other) = (vote(Body::Nullify), vote(Body::Finalize { block }));
    let evidence = Evidence::of(&one, &other).unwrap();
    EvidenceFile::of(&Lineage::of(epochs), &epochs.now, &evidence)
}

#[test]
fn evidence_is_read_back_and_proves_its_charge_with_and_without_the_agreement() {
    let epochs = epochs("north");
    let folder = tempfile::tempdir().unwrap();
    let written = evidence(&epochs, 2);
    let path = written.keep(folder.path()).unwrap();
    let name = format!("evidence/{}-nullify-and-finalize.json", key(2).public());
    assert_eq!(path, folder.path().join(name));
    let read = EvidenceFile::read(&path).unwrap();
    assert_eq!(read, written);
    let proof = read.check(&path, Some(&epochs.now)).unwrap();
    let said = proof.sentence();
    let expected = "silo 2 broke the rules of the federation north (";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.contains("Nullify and Finalize in view 7"), "{said}");
    assert!(said.contains("the one of the agreement at hand"), "{said}");
    let alone = read.check(&path, None).unwrap().sentence();
    assert!(alone.contains("give it with --federation"), "{alone}");
    assert!(alone.contains(&written.federation), "{alone}");
    // A second piece of this kind against the same member is not needed.
    let mut more = written.clone();
    more.charge.clear();
    more.keep(folder.path()).unwrap();
    assert_eq!(EvidenceFile::read(&path).unwrap(), written);
    // Another kind, and another member at any position, have files of their own.
    more.kind = "two-proposals".into();
    let other = evidence(&epochs, 1);
    assert_ne!(more.keep(folder.path()).unwrap(), path);
    assert_ne!(other.keep(folder.path()).unwrap(), path);
}

#[test]
fn changed_evidence_proves_nothing() {
    let of = epochs("north");
    let path = Path::new("x.json");
    let why = |file: EvidenceFile, of: &Epochs| {
        let error = file.check(path, Some(&of.now)).unwrap_err();
        error.to_string()
    };
    let good = evidence(&of, 2);
    // Every byte of a message and of the genesis counts.
    for (which, length) in [(0, good.messages[1].len()), (1, good.genesis.len())] {
        for at in 0..length / 2 {
            let mut bad = good.clone();
            let text = match which {
                0 => &mut bad.messages[1],
                _ => &mut bad.genesis,
            };
            let mut changed = bytes("it", text).unwrap();
            changed[at] ^= 1;
            *text = hex(&changed);
            why(bad, &of);
        }
    }
    let mut twice = good.clone();
    twice.messages[1] = twice.messages[0].clone();
    assert!(why(twice, &of).contains("may sign both"));
    // Another member, another name, a key that is not in the roster, another federation.
    let mut other = good.clone();
    other.member.position = 1;
    assert!(why(other, &of).contains("and its messages are of silo 2"));
    let mut named = good.clone();
    named.member.name = "silo 3".into();
    let said = why(named, &of);
    assert!(said.contains("it accuses silo 3 with the key"), "{said}");
    let mut stranger = good.clone();
    stranger.member.key = format!("{}", key(9).public());
    assert!(why(stranger, &of).contains("and its messages are of silo 2"));
    assert!(why(good.clone(), &epochs("south")).contains("the agreement is that of"));
    let mut elsewhere = good.clone();
    elsewhere.federation = format!("{:#}", epochs("south").now.federation);
    let said = elsewhere.check(path, None).unwrap_err().to_string();
    assert!(said.contains("its genesis is that of"), "{said}");
    // A change of the agreement that nobody agreed on.
    let mut changed = good;
    changed.changes.push(changed.messages[0].clone());
    assert!(why(changed, &of).contains("change 1 of the agreement is not proven"));
}

/// The federation of `first` after its first three members admitted a fifth.
fn admitted(first: &Epochs) -> Epochs {
    let epoch = &first.now;
    let mut silos = epoch.roster.silos().to_vec();
    silos.push(protocol::roster::Silo {
        name: "silo 4".into(),
        key: key(4).public(),
        rows: None,
    });
    let amendment = Amendment {
        protocol: epoch.protocol.for_members(4, 5),
        silos,
        text: b"text".to_vec(),
        ..Amendment::leaving(epoch, MemberIndex(0))
    };
    let signature = |by: u16, view, body| {
        let me = MemberIndex(by);
        envelope::sign(epoch, &key(by as u8), 0, view, me, body)
            .0
            .signature
    };
    let approval = |by: u16| Approval {
        by: MemberIndex(by),
        number: 1,
        signature: signature(
            by,
            0,
            Body::Approval {
                amendment: amendment.hash(),
                number: 1,
                stands: true,
            },
        ),
    };
    let block = Block {
        epoch: epoch.id,
        view: 3,
        parent: epoch.id,
        content: Content::Change(Box::new(Change {
            after: epoch.began,
            approvals: [0, 1, 2].map(approval).into(),
            amendment: amendment.clone(),
        })),
    };
    let verdict = Verdict::Final(block.hash());
    let checked = Checked::Structure;
    let vote = |by: u16| Vote {
        member: MemberIndex(by),
        checked,
        signature: signature(by, 3, Body::vote(verdict, checked)),
    };
    let proof = Certificate {
        view: 3,
        verdict,
        votes: [0, 1, 2].map(vote).into(),
    };
    let passage = Passage {
        blocks: vec![block],
        proof,
    };
    let next = passage.verify(epoch, &Strict).unwrap();
    Epochs {
        former: vec![(epoch.clone(), passage)],
        now: next.into(),
        records: Vec::new(),
    }
}

#[test]
fn evidence_against_a_member_that_was_admitted_later_needs_no_other_agreement() {
    let first = epochs("north");
    let later = admitted(&first);
    let path = Path::new("x.json");
    let file = evidence(&later, 4);
    // With the first agreement, which does not name it, and to a stranger.
    for agreed in [Some(&*first.now), None] {
        let proof = file.check(path, agreed).unwrap();
        assert_eq!((&*proof.member, proof.epoch), ("silo 4", 1));
        assert_eq!(proof.key, key(4).public().to_string());
        let said = proof.sentence();
        assert!(said.contains("after one change of the agreement"), "{said}");
    }
    let why = |file: &EvidenceFile| file.check(path, None).unwrap_err().to_string();
    // Without the change, or with one that other members approved.
    let mut without = file.clone();
    without.changes.clear();
    let said = why(&without);
    assert!(said.contains("do not lead to"), "{said}");
    let mut other = file.clone();
    let south = admitted(&epochs("south"));
    other.changes = evidence(&south, 4).changes;
    assert!(why(&other).contains("change 1 of the agreement is not proven"));
    // Every byte of the proof of a change counts.
    let length = file.changes[0].len() / 2;
    for at in (0..length).step_by(7) {
        let mut changed = bytes("it", &file.changes[0]).unwrap();
        changed[at] ^= 1;
        let mut bad = file.clone();
        bad.changes[0] = hex(&changed);
        why(&bad);
    }
    // A member of both epochs that signed one message in each.
    let (before, after) = (evidence(&first, 2), evidence(&later, 2));
    let mut two = after.clone();
    two.messages[0] = before.messages[0].clone();
    let said = why(&two);
    assert!(said.contains("are of different epochs"), "{said}");
    // Both of the earlier one are evidence, in a file that says so.
    two.messages = before.messages.clone();
    let proof = two.check(path, None).unwrap();
    assert_eq!((&*proof.member, proof.epoch), ("silo 2", 0));
}

#[test]
fn messages_of_two_federations_accuse_nobody() {
    let (north, south) = (epochs("north"), epochs("south"));
    let mut mixed = evidence(&north, 2);
    mixed.messages[1] = evidence(&south, 2).messages[1].clone();
    let said = mixed.check(Path::new("x.json"), None).unwrap_err();
    let said = said.to_string();
    assert!(
        said.contains("message 2 belongs to another federation"),
        "{said}"
    );
}

#[test]
fn a_file_of_another_format_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    let said = |text: &str| {
        std::fs::write(&path, text).unwrap();
        EvidenceFile::read(&path).unwrap_err().to_string()
    };
    let other = said("{\"format\": \"rota evidence 1\"}");
    assert!(other.contains("found \"rota evidence 1\""), "{other}");
    assert!(said("{}").contains("names no format"));
    assert!(said("[]").contains("names no format"));
}

#[test]
fn a_receipt_proves_what_a_lead_said_and_no_fault() {
    let epochs = epochs("north");
    let folder = tempfile::tempdir().unwrap();
    let entry = Hash([5; 32]);
    let lead = MemberIndex(2);
    let sealed = |body, view| envelope::sign(&epochs.now, &key(2), 0, view, lead, body).0;
    let receipt = sealed(Body::Receipt { entry }, 7);
    let lineage = Lineage::of(&epochs);
    let file = EvidenceFile::of_receipt(&lineage, &epochs.now, &receipt);
    let path = file.keep(folder.path()).unwrap();
    let read = EvidenceFile::read(&path).unwrap();
    let said = read.check(&path, Some(&epochs.now)).unwrap().sentence();
    for part in [
        "silo 2 said",
        "lead of view 7",
        "0505",
        "no proof of a fault",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("broke the rules"), "{said}");
    // Another message alone, and another member's word, prove nothing.
    let other = sealed(Body::Nullify, 7);
    let other = EvidenceFile::of_receipt(&lineage, &epochs.now, &other);
    assert!(other.check(&path, None).is_err());
    let mut forged = read;
    forged.member.name = "silo 1".into();
    assert!(forged.check(&path, None).is_err());
}
