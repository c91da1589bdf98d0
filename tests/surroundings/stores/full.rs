//! Writing to a full disk. The child's shell sets a limit on the size of files instead: the system then
//! gives another error than for a full disk, which is handled in the same way.

#![cfg(unix)]

use super::*;
use crate::stores::child::RunningChild;

/// Limits files to 2 or 4 MiB, depending on the shell's unit, and ignores the signal for it.
const LIMIT: &str = "trap '' XFSZ; ulimit -f 4096";

#[test]
fn on_a_full_disk_a_blob_leaves_no_file_and_a_smaller_one_fits() {
    let place = tempfile::tempdir().unwrap();
    let mut child = RunningChild::start("fill blobs", place.path(), 0, Some(LIMIT));
    let why = child.says().unwrap();
    assert!(
        why.contains("the disk is full") && why.contains("make room"),
        "{why}"
    );
    assert!(child.end().success());
    let (_, blobs) = reopened(place.path());
    assert_eq!(blobs.get(&blob(1).0), Some(blob(1).1));
    // All earlier batches are complete, and no file has the name of another blob.
    let files: Vec<_> = std::fs::read_dir(place.path().join("blobs"))
        .unwrap()
        .collect();
    for file in &files {
        let path = file.as_ref().unwrap().path();
        let hash = Hash::of(&std::fs::read(&path).unwrap());
        assert_eq!(
            path.file_name().unwrap().to_str().unwrap(),
            format!("{hash:#}")
        );
    }
    assert!(files.len() > 10 && files.len() % 2 == 1, "{}", files.len());
}

#[test]
fn on_a_full_disk_a_journal_keeps_its_records() {
    let place = tempfile::tempdir().unwrap();
    // Created without the limit, because an empty journal is about as large.
    drop(place.journal());
    let size = std::fs::metadata(place.path().join("journal.redb"))
        .unwrap()
        .len();
    let limit = format!("trap '' XFSZ; ulimit -f {}", size / 512 + 8);
    let mut child = RunningChild::start("fill journal", place.path(), 0, Some(&limit));
    let mut done = 0;
    let why = loop {
        let said = child.says().unwrap();
        match said.parse() {
            Ok(number) => done = number,
            Err(_) => break said,
        }
    };
    assert!(
        why.contains("the disk is full") && why.contains("journal.redb"),
        "{why}"
    );
    assert!(child.end().success());
    let expected = |batches| {
        (0..batches)
            .flat_map(|n| vec![record(n); 50])
            .collect::<Vec<_>>()
    };
    let (records, _) = reopened(place.path());
    // The failed transaction may be durable nevertheless.
    assert!(
        records == expected(done) || records == expected(done + 1),
        "{} records after {done} batches",
        records.len()
    );
    assert!(done > 0);
}
