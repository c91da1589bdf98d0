//! Journals: damaged files, and arbitrary records that a member restarts with.

use std::fs;
use std::sync::Arc;

use rota::node::store::{DiskJournal, Owner};
use rota::protocol::epochs::of_present;
use rota::protocol::member::{Config, Start};
use rota::protocol::{Epochs, Input, Member, MemberIndex, Record, Time, codec};
use rota::silo::{self, Journal};

use super::engine::{FuzzTarget, fuzz, gist};
use super::member::{MemberWorld, sequences};
use super::world::{epoch, file, golden, key};

fn owner() -> Owner {
    Owner {
        federation: epoch().federation,
        me: MemberIndex(0),
        key: key(0),
    }
}

/// Records, each after its length.
fn lined_up(records: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let one = |bytes: Vec<u8>| [&(bytes.len() as u16).to_le_bytes()[..], &bytes].concat();
    records.into_iter().flat_map(one).collect()
}

fn records(mut input: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some((length, rest)) = input.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (record, after) = rest.split_at(length);
        records.extend(codec::decode::<Record>(record, codec::LIMIT).ok());
        input = after;
    }
    records
}

#[test]
fn records_of_a_journal() {
    let pinned = golden(&file("crates/protocol/tests/golden/records.hex"));
    let mut examples: Vec<_> = pinned
        .iter()
        .map(|record| lined_up([record.clone()]))
        .collect();
    examples.push(lined_up(pinned));
    for sequence in sequences() {
        let mut world = MemberWorld::new();
        world.play(&sequence);
        examples.push(lined_up(world.journal.iter().map(codec::encode)));
    }
    let epoch = Arc::new(epoch());
    let mut run = |input: &[u8]| {
        let records = records(input);
        let found = records.len().min(9);
        let epochs = match Epochs::replay(epoch.clone(), records.clone()) {
            Ok(epochs) => epochs,
            Err(error) => return gist(&error.to_string()),
        };
        assert_eq!(of_present(records).len(), epochs.records.len());
        let Some(me) = epochs.now.roster.position(&key(0).public()) else {
            return "left".into();
        };
        let (number, begun) = (epochs.now.number, epochs.now.clone());
        let config = Config::new(begun, me, key(0), [1; 32]);
        let mut effects = Vec::new();
        let start = Start::Kept(epochs.records);
        let mut member = Member::new(config, start, Time::ZERO, &mut effects);
        for _ in 0..20 {
            if let Some(due) = member.deadline() {
                member.step(due, Input::Time, &mut effects);
            }
        }
        format!(
            "{found} {number} {} {}",
            member.view().min(9),
            member.round().min(9)
        )
    };
    fuzz(FuzzTarget {
        name: "records",
        examples,
        words: &[],
        inputs: 800,
        memory: |length| (16 << 20) + 256 * length,
        run: &mut run,
    });
}

/// The longest page of redb, in bytes. Where the length of a page is damaged, redb takes that much memory
/// before it reads, and then finds that the file is shorter. That can take seconds.
const LONGEST_PAGE: usize = 4 << 30;

#[test]
fn files_of_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.redb");
    let mut journal = DiskJournal::open(folder.path(), &owner()).unwrap();
    for record in records(&lined_up(golden(&file(
        "crates/protocol/tests/golden/records.hex",
    )))) {
        journal
            .commit(vec![silo::JournalRecord::Protocol(record)])
            .unwrap();
    }
    let written = journal.load().unwrap();
    drop(journal);
    let whole = fs::read(&path).unwrap();
    let mut run = |input: &[u8]| {
        // Places and the bytes that are put there; a piece of less than four bytes cuts the file off.
        let mut bytes = whole.clone();
        for piece in input.chunks(4) {
            let place = piece
                .iter()
                .take(3)
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            let at = place % bytes.len().max(1);
            match piece.get(3) {
                Some(value) if !bytes.is_empty() => bytes[at] = *value,
                _ => bytes.truncate(at),
            }
        }
        fs::write(&path, &bytes).unwrap();
        match DiskJournal::open(folder.path(), &owner()) {
            Err(error) => gist(&error.to_string()),
            Ok(mut journal) => {
                let read = journal.load().unwrap();
                assert_eq!(read, written, "damage that is not noticed changes nothing");
                "whole".into()
            }
        }
    };
    fuzz(FuzzTarget {
        name: "journal",
        examples: vec![vec![0, 0, 0, whole[0]], vec![0, 16, 0, 1], vec![255, 255]],
        words: &[],
        inputs: 40,
        memory: |_| (64 << 20) + LONGEST_PAGE,
        run: &mut run,
    });
}
