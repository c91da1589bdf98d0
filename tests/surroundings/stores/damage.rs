//! Damaged and changed files are refused.

use std::fs;

use redb::{Database, ReadableTable, Table, TableDefinition};
use store::StoreOpenError;

use super::*;

const RECORDS: TableDefinition<u64, &[u8]> = TableDefinition::new("records");
const HEAD: TableDefinition<(), &[u8]> = TableDefinition::new("head");

/// A journal of several transactions, and its file.
fn written() -> (TempDir, Vec<JournalRecord>, Vec<u8>) {
    let place = tempfile::tempdir().unwrap();
    let mut journal = place.journal();
    let records: Vec<_> = (0..60).map(record).collect();
    for few in records.chunks(10) {
        journal.commit(few.to_vec()).unwrap();
    }
    drop(journal);
    let bytes = fs::read(place.path().join("journal.redb")).unwrap();
    (place, records, bytes)
}

fn refused(place: &TempDir) -> String {
    match DiskJournal::open(place.path(), &owner()) {
        Err(error @ StoreOpenError::Damaged { .. }) => error.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was opened"),
    }
}

/// Changes the table of a journal through redb, without the key of the MACs.
fn tamper(place: &TempDir, change: impl FnOnce(&mut Table<u64, &'static [u8]>)) {
    let database = Database::open(place.path().join("journal.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    change(&mut transaction.open_table(RECORDS).unwrap());
    transaction.commit().unwrap();
}

fn bytes_of(table: &Table<u64, &'static [u8]>, at: u64) -> Vec<u8> {
    table.get(at).unwrap().unwrap().value().to_vec()
}

#[test]
fn a_changed_removed_swapped_or_added_record_is_refused() {
    type Change = fn(&mut Table<u64, &'static [u8]>);
    let changes: [(&str, Change); 6] = [
        ("record 7", |table| {
            let mut bytes = bytes_of(table, 7);
            bytes[20] ^= 1;
            table.insert(7, &bytes[..]).unwrap();
        }),
        ("record 7", |table| {
            let (one, other) = (bytes_of(table, 7), bytes_of(table, 8));
            table.insert(7, &other[..]).unwrap();
            table.insert(8, &one[..]).unwrap();
        }),
        ("record 7", |table| {
            table.remove(7).unwrap();
        }),
        // Removing the last record leaves no gap in the sequence.
        ("59 records where 60", |table| {
            table.remove(59).unwrap();
        }),
        ("record 60", |table| {
            let bytes = bytes_of(table, 59);
            table.insert(60, &bytes[..]).unwrap();
        }),
        ("record 59", |table| {
            table.insert(59, &b"short"[..]).unwrap();
        }),
    ];
    for (expected, change) in changes {
        let (place, ..) = written();
        tamper(&place, change);
        let why = refused(&place);
        assert!(why.contains(expected), "{why}");
        assert!(why.contains("start once with --journal-lost"), "{why}");
    }
}

#[test]
fn a_head_that_was_changed_is_refused() {
    let (place, ..) = written();
    let file = place.path().join("journal.redb");
    let database = Database::open(file).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(HEAD).unwrap();
        let mut bytes = table.get(()).unwrap().unwrap().value().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        table.insert((), &bytes[..]).unwrap();
    }
    transaction.commit().unwrap();
    drop(database);
    assert!(refused(&place).contains("head"));
}

#[test]
fn a_truncated_file_is_refused() {
    let (place, _, bytes) = written();
    let file = place.path().join("journal.redb");
    for cut in [0, 1, 9, 320, 4096, 4097, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&file, &bytes[..cut]).unwrap();
        refused(&place);
    }
    fs::write(
        &file,
        b"not a database, and long enough to be one".repeat(1000),
    )
    .unwrap();
    refused(&place);
    fs::write(&file, &bytes).unwrap();
    drop(place.journal());
}

#[test]
fn a_changed_bit_is_refused_or_changes_no_record() {
    let (place, records, bytes) = written();
    let file = place.path().join("journal.redb");
    // Samples the pages that are not all zero, and the front of the file more densely.
    let used = |at: &usize| {
        bytes[at / 4096 * 4096..]
            .iter()
            .take(4096)
            .any(|byte| *byte != 0)
    };
    let front = 0..320;
    let pages = (0..200)
        .map(|seed| random(seed) as usize % bytes.len())
        .filter(used);
    let random = |at| (at, random(at as u64) % 8);
    // Every bit of the byte that selects the newer of redb's two states.
    let choice = (0..8).map(|bit| (9, bit));
    let (mut refusals, mut same) = (0, 0);
    for (at, bit) in front.chain(pages).map(random).chain(choice) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << bit;
        // A new file each time, so that no lock is left from the previous one.
        fs::remove_file(&file).unwrap();
        fs::write(&file, &damaged).unwrap();
        match DiskJournal::open(place.path(), &owner()) {
            Ok(mut journal) => {
                assert_eq!(journal.load().unwrap(), records, "byte {at}");
                same += 1;
            }
            Err(StoreOpenError::Damaged { .. }) => refusals += 1,
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
    println!("{refusals} refused, {same} without a changed record");
    assert!(refusals > 80);
}

#[test]
fn a_damaged_blob_is_never_returned_and_may_be_put_again() {
    let place = tempfile::tempdir().unwrap();
    place.blobs().put_all((0..4).map(blob).collect()).unwrap();
    let file = |n| place.path().join("blobs").join(format!("{:#}", blob(n).0));
    let mut bytes = blob(0).1.to_vec();
    bytes[3] ^= 1;
    fs::write(file(0), &bytes).unwrap();
    fs::write(file(1), b"").unwrap();
    fs::write(file(2), blob(3).1).unwrap();
    let blobs = place.blobs();
    for n in 0..3 {
        assert_eq!(blobs.get(&blob(n).0), None);
        assert!(!file(n).exists(), "a damaged file is removed");
        blobs.put(blob(n).0, blob(n).1).unwrap();
        assert_eq!(place.blobs().get(&blob(n).0), Some(blob(n).1));
    }
    assert_eq!(blobs.get(&blob(3).0), Some(blob(3).1));
    // A missing file is a missing blob.
    fs::remove_file(file(3)).unwrap();
    assert_eq!(place.blobs().get(&blob(3).0), None);
}

#[test]
fn incomplete_files_of_a_crash_are_removed() {
    let place = tempfile::tempdir().unwrap();
    drop(place.journal());
    place.blobs().put(blob(1).0, blob(1).1).unwrap();
    let part = place.path().join("blobs").join("0.part");
    let foreign = place.path().join("blobs").join("README");
    fs::write(&part, b"half").unwrap();
    fs::write(&foreign, b"whose?").unwrap();
    let (records, blobs) = reopened(place.path());
    assert_eq!(records, []);
    assert!(!part.exists() && foreign.exists());
    blobs.put(blob(2).0, blob(2).1).unwrap();
    assert_eq!(blobs.get(&blob(1).0), Some(blob(1).1));
}

#[test]
fn a_journal_whose_creation_was_interrupted_is_created_again() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("journal.redb.new"), b"half").unwrap();
    assert_eq!(reopened(place.path()).0, []);
    assert!(!place.path().join("journal.redb.new").exists());
}
