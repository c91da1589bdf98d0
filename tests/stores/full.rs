//! A full disk: a limit on the size of files stands for it, which a child gets from its shell. What
//! the system says then is another word than on a full disk, and takes the same way.

#![cfg(unix)]

use super::*;
use crate::child::Running;

/// Nothing larger than 2 or 4 MiB, as the shell counts; the signal for it is ignored.
const LIMIT: &str = "trap '' XFSZ; ulimit -f 4096";

#[test]
fn a_blob_that_does_not_fit_leaves_nothing_and_the_next_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let mut child = Running::start("fill blobs", place.path(), 0, Some(LIMIT));
    let why = child.says().unwrap();
    assert!(
        why.contains("the disk is full") && why.contains("make room"),
        "{why}"
    );
    assert!(child.end().success());
    let (_, blobs) = reopened(place.path());
    assert_eq!(blobs.get(&blob(1).0), Some(blob(1).1));
    // All of every batch before, and nothing under a name that is not its own.
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
fn a_journal_that_cannot_grow_keeps_what_it_had() {
    let place = tempfile::tempdir().unwrap();
    // Made without the limit: an empty journal is about as large.
    drop(place.journal());
    let size = std::fs::metadata(place.path().join("journal.redb"))
        .unwrap()
        .len();
    let limit = format!("trap '' XFSZ; ulimit -f {}", size / 512 + 8);
    let mut child = Running::start("fill journal", place.path(), 0, Some(&limit));
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
    // The one that failed may have come through.
    assert!(
        records == expected(done) || records == expected(done + 1),
        "{} records after {done} batches",
        records.len()
    );
    assert!(done > 0);
}
