//! A process is killed at arbitrary moments. A kill loses no data that the system already has, so
//! these tests show that writes are in the right order, not that the disk keeps them.

use std::time::{Duration, Instant};

use super::*;
use crate::stores::child::{RunningChild, after};

/// Names of files that are not blobs.
fn leftovers(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder.join("blobs")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.len() != 64).collect()
}

#[test]
fn durable_records_survive_a_kill_and_others_wholly_or_not() {
    let place = tempfile::tempdir().unwrap();
    let mut done = 0;
    for life in 0..12 {
        let mut child = RunningChild::start("write", place.path(), done, None);
        for _ in 0..random(life) % 24 {
            done = child.says().unwrap().parse().unwrap();
        }
        // At a random moment within the next write, which takes some milliseconds.
        let wait = Duration::from_micros(random(1000 + life) % 4000);
        let since = Instant::now();
        while since.elapsed() < wait {
            std::hint::spin_loop();
        }
        if let Some(last) = child.kill().last() {
            done = last.parse().unwrap();
        }
        let (records, blobs) = reopened(place.path());
        if records != after(done) {
            done += 1;
            assert_eq!(records, after(done), "life {life}, deed {done}");
        }
        for record in &records {
            let JournalRecord::Trained { round, .. } = record else {
                panic!("{record:?} was never written")
            };
            assert_eq!(blobs.get(&blob(*round).0), Some(blob(*round).1));
        }
        assert_eq!(leftovers(place.path()), [""; 0]);
    }
    assert!(done > 50, "{done} deeds");
}

#[test]
fn a_copy_taken_during_a_write_is_complete_or_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut child = RunningChild::start("write", place.path(), 0, None);
    let mut whole = 0;
    for _ in 0..15 {
        let before: u64 = child.says().unwrap().parse().unwrap();
        let copy = tempfile::tempdir().unwrap();
        let name = "journal.redb";
        std::fs::copy(place.path().join(name), copy.path().join(name)).unwrap();
        match DiskJournal::open(copy.path(), &owner()) {
            Ok(mut journal) => {
                let records = journal.load().unwrap();
                // The last record names its write; the child may have written more than it has printed.
                let Some(JournalRecord::Trained { round, .. }) = records.last() else {
                    panic!("{records:?}")
                };
                let deeds = round / 10 + 1;
                assert!(deeds >= before, "{deeds} {before}");
                assert!(records == after(deeds), "not what {deeds} deeds leave");
                whole += 1;
            }
            Err(store::StoreOpenError::Damaged { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    child.kill();
    println!("{whole} of 15 copies were complete");
}
