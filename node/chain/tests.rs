#![allow(clippy::unwrap_used)]

use protocol::certificate::{Certificate, Checked, Verdict, Vote};
use protocol::identity::Signature;
use protocol::message::{Amendment, Block, Change, Content, Passage};
use protocol::parameters::Checkpoint;
use protocol::{Epoch, MemberIndex};
use silo::JournalRecord;

use super::links::parts;
use super::*;
use crate::fixture;

fn epoch() -> Epoch {
    let protocol = protocol::ProtocolParameters {
        rounds: 9,
        ..fixture::protocol()
    };
    fixture::epoch(fixture::silos(5, 1), protocol)
}

fn proof(block: &Block, voters: &[u16]) -> Certificate {
    let vote = |member: &u16| Vote {
        member: MemberIndex(*member),
        checked: Checked::Structure,
        signature: Signature::from_bytes(&[0; 64]),
    };
    Certificate {
        view: block.view,
        verdict: Verdict::Final(block.hash()),
        votes: voters.iter().map(vote).collect(),
    }
}

fn block(epoch: Hash, view: u64, parent: Hash, content: Content) -> Block {
    Block {
        epoch,
        view,
        parent,
        content,
    }
}

/// A change of the agreement after a round.
fn change(epoch: &Epoch, round: u64, view: u64, parent: Hash) -> Block {
    let change = Change {
        amendment: Amendment::leaving(epoch, MemberIndex(4)),
        after: Checkpoint {
            round,
            block: parent,
            outcome: Hash([7; 32]),
        },
        approvals: [].into(),
    };
    block(epoch.id, view, parent, Content::Change(Box::new(change)))
}

fn passage(block: &Block) -> Passage {
    Passage {
        blocks: vec![block.clone()],
        proof: proof(block, &[0, 2, 3, 4]),
    }
}

fn name(by: MemberIndex) -> Who {
    Who::Name(format!("silo {}", by.0))
}

#[test]
fn rounds_that_a_journal_lacks_are_named_with_the_members_that_have_them() {
    let epoch = epoch();
    let tip = Hash([1; 32]);
    let end = change(&epoch, 6, 9, Hash([6; 32]));
    let found = before(&passage(&end), Some(tip), 3, name).unwrap();
    assert_eq!((found.from, found.to), (Some(4), Some(6)));
    assert_eq!(found.before, format!("{:#}", end.hash()));
    let said = found.sentence();
    assert!(
        said.starts_with("rounds 4 to 6 are not in this journal"),
        "{said}"
    );
    assert!(said.ends_with("silo 0, silo 2, silo 3, silo 4"), "{said}");
    // One that was admitted has none; without the agreement its first block is not known.
    let all = before(&passage(&end), None, 0, name).unwrap();
    assert_eq!((all.from, all.to), (Some(1), Some(6)));
    // One round, and blocks without a round.
    let one = before(&passage(&end), Some(tip), 5, name).unwrap();
    assert_eq!(one.what(), "round 6 is");
    let empty = before(&passage(&end), Some(tip), 6, name).unwrap();
    assert_eq!(
        (empty.from, empty.what()),
        (None, "blocks without a round are".into())
    );
    // Nothing is missing.
    assert_eq!(before(&passage(&end), Some(end.parent), 6, name), None);
    assert_eq!(before(&passage(&end), None, 6, name), None);
}

fn record(block: &Block) -> JournalRecord {
    JournalRecord::Protocol(protocol::Record::Final {
        blocks: vec![block.clone()],
        proof: proof(block, &[0, 1, 2, 3]),
    })
}

/// A journal that is lost may hold the blocks of its epoch again. What was before stays.
#[test]
fn a_lost_journal_begins_its_epoch_again_and_keeps_those_before() {
    let epoch = epoch();
    let first = block(epoch.id, 1, epoch.id, Content::Empty);
    let second = block(epoch.id, 2, first.hash(), Content::Empty);
    let end = change(&epoch, 0, 3, second.hash());
    let next = block(end.hash(), 1, end.hash(), Content::Empty);
    let after = block(end.hash(), 2, next.hash(), Content::Empty);
    let of = |records: &[&JournalRecord]| -> Vec<Hash> {
        let records = records.iter().map(|record| (*record).clone()).collect();
        let blocks = parts(records).into_iter().flat_map(|(blocks, _)| blocks);
        blocks.map(|block| block.hash()).collect()
    };
    let [one, two, over, three, four] = [&first, &second, &end, &next, &after].map(record);
    let lost = JournalRecord::Lost;
    let hashes = [&first, &second, &end, &next, &after].map(Block::hash);
    assert_eq!(of(&[&one, &two, &over, &three, &four]), hashes);
    // It is lost and goes on from where it was, or begins again.
    assert_eq!(of(&[&one, &lost, &two, &over]), hashes[..3]);
    assert_eq!(of(&[&one, &two, &lost, &one, &two]), hashes[..2]);
    assert_eq!(
        of(&[&one, &two, &over, &three, &lost, &three, &four]),
        hashes
    );
    assert_eq!(of(&[&one, &two, &over, &three, &lost, &four]), hashes);
    // Without a loss nothing is taken back: the check of the chain finds it.
    assert_eq!(of(&[&one, &one]), [hashes[0]; 2]);
}
