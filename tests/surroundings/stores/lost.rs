//! Journals that are declared lost, and journals that are missing.

use std::fs;
use std::path::PathBuf;

use store::{Note, StoreOpenError};

use super::*;

/// Journals that were set aside, by name, with their bytes.
fn aside(place: &TempDir) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(place.path()).unwrap();
    let mut aside: Vec<_> = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (name(&path), fs::read(&path).unwrap()))
        .filter(|(name, _)| name.starts_with("journal.redb."))
        .collect();
    aside.sort();
    aside
}

fn name(path: &std::path::Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn written() -> (TempDir, PathBuf, Vec<u8>) {
    let place = tempfile::tempdir().unwrap();
    let mut journal = place.journal();
    for few in (0..60).map(record).collect::<Vec<_>>().chunks(10) {
        journal.commit(few.to_vec()).unwrap();
    }
    drop(journal);
    let file = place.path().join("journal.redb");
    let bytes = fs::read(&file).unwrap();
    (place, file, bytes)
}

/// Opens the journal as declared lost. Returns its records and the notes.
fn declared(place: &TempDir) -> (Vec<JournalRecord>, Vec<Note>) {
    let mut opened = store::open_lost(place.path(), &owner(), CACHE).unwrap();
    (opened.journal.load().unwrap(), opened.notes)
}

#[test]
fn a_damaged_journal_is_set_aside_and_a_new_one_declared_lost() {
    let (_, _, bytes) = written();
    let mut cases: Vec<(String, Vec<u8>)> = [0, 1, 320, 4096, bytes.len() / 2, bytes.len() - 1]
        .map(|cut| (format!("cut at {cut}"), bytes[..cut].to_vec()))
        .into();
    // One bit in every page in use, and the front of the file more densely.
    let used = |page: &usize| bytes[page * 4096..][..4096].iter().any(|byte| *byte != 0);
    let pages = (0..bytes.len() / 4096).filter(used);
    let bits = pages.map(|page| page * 4096 + random(page as u64) as usize % 4096);
    for at in bits.chain(0..64) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (random(at as u64) % 8);
        cases.push((format!("a bit of byte {at}"), damaged));
    }
    cases.push(("all bits".into(), bytes.iter().map(|byte| !byte).collect()));
    cases.push(("another format".into(), vec![7; 100_000]));
    for (what, damaged) in cases {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("journal.redb"), &damaged).unwrap();
        let (records, notes) = declared(&place);
        assert_eq!(records, [JournalRecord::Lost], "{what}");
        let kept = aside(&place);
        assert_eq!(kept.len(), 1, "{what}");
        // redb may have repaired pages, but the file was not truncated.
        assert_eq!(kept[0].1.len(), damaged.len(), "{what}");
        assert!(
            kept[0].0 == "journal.redb.damaged-1" || kept[0].0 == "journal.redb.lost-1",
            "{what}: {}",
            kept[0].0
        );
        assert!(
            notes
                .iter()
                .any(|note| matches!(note, Note::SetAside { .. })),
            "{what}: {notes:?}"
        );
        // The next start needs no flag.
        assert_eq!(reopened(place.path()).0, [JournalRecord::Lost], "{what}");
    }
}

#[test]
fn journals_are_never_overwritten_and_whole_ones_not_set_aside() {
    let (place, file, bytes) = written();
    for nth in 1..=3 {
        fs::write(&file, &bytes[..5000]).unwrap();
        assert_eq!(declared(&place).0, [JournalRecord::Lost]);
        assert_eq!(aside(&place).len(), nth);
        // It is declared lost already, so it is not set aside again.
        assert_eq!(declared(&place), (vec![JournalRecord::Lost], Vec::new()));
        assert_eq!(aside(&place).len(), nth);
    }
    // An intact journal that is declared lost.
    fs::write(&file, &bytes).unwrap();
    assert_eq!(declared(&place).0, [JournalRecord::Lost]);
    assert!(
        aside(&place)
            .iter()
            .any(|(name, _)| name == "journal.redb.lost-1")
    );
}

#[test]
fn a_crash_after_setting_aside_the_journal_leaves_it_lost() {
    let (place, file, _) = written();
    fs::rename(&file, place.path().join("journal.redb.damaged-1")).unwrap();
    let mut opened = store::open(place.path(), &owner(), CACHE).unwrap();
    assert_eq!(opened.journal.load().unwrap(), [JournalRecord::Lost]);
    assert_eq!(opened.notes, [Note::Gone(file)]);
}

#[test]
fn a_missing_journal_beside_blobs_counts_as_lost() {
    let (place, file, _) = written();
    place.blobs().put(blob(1).0, blob(1).1).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(reopened(place.path()).0, [JournalRecord::Lost]);
}

#[test]
fn another_owners_journal_is_refused_even_if_declared_lost() {
    let (place, _, _) = written();
    let mut other = owner();
    other.federation = Hash([8; 32]);
    let refused = store::open_lost(place.path(), &other, CACHE).err().unwrap();
    assert!(
        matches!(refused, StoreOpenError::Federation { .. }),
        "{refused}"
    );
    assert_eq!(aside(&place), []);
}

#[test]
fn a_journal_of_a_newer_format_and_non_files_are_set_aside() {
    let place = tempfile::tempdir().unwrap();
    for name in ["journal.redb", "lock"] {
        fs::create_dir(place.path().join(name)).unwrap();
        fs::write(place.path().join(name).join("inside"), b"kept").unwrap();
    }
    let refused = store::open(place.path(), &owner(), CACHE).err().unwrap();
    assert!(refused.to_string().contains("--journal-lost"), "{refused}");
    assert_eq!(declared(&place).0, [JournalRecord::Lost]);
    for name in ["journal.redb.damaged-1", "lock.unreadable-1"] {
        assert!(place.path().join(name).join("inside").exists(), "{name}");
    }
}

#[test]
fn a_blob_path_that_is_no_file_is_set_aside_and_written_again() {
    let place = tempfile::tempdir().unwrap();
    drop(place.journal());
    place.blobs().put(blob(1).0, blob(1).1).unwrap();
    let file = place.path().join("blobs").join(format!("{:#}", blob(1).0));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let opened = store::open(place.path(), &owner(), CACHE).unwrap();
    assert!(matches!(opened.notes[..], [Note::SetAside { .. }]));
    assert_eq!(opened.blobs.get(&blob(1).0), None);
    opened.blobs.put(blob(1).0, blob(1).1).unwrap();
    drop(opened);
    assert_eq!(place.blobs().get(&blob(1).0), Some(blob(1).1));
}

#[test]
fn a_snapshot_reads_while_a_node_writes_and_after_a_kill() {
    let place = tempfile::tempdir().unwrap();
    let mut child = crate::stores::child::RunningChild::start("write", place.path(), 0, None);
    let mut deeds = 0;
    for _ in 0..20 {
        deeds = child.says().unwrap().parse().unwrap();
        let snapshot = store::snapshot(place.path()).unwrap();
        assert_eq!(snapshot.federation, owner().federation);
        // The complete state after some write, not older than the child's last output.
        let Some(JournalRecord::Trained { round, .. }) = snapshot.records.last() else {
            panic!("{:?}", snapshot.records)
        };
        let done = round / 10 + 1;
        assert!(done >= deeds, "{done} {deeds}");
        assert!(snapshot.records == crate::stores::child::after(done));
    }
    child.kill();
    let records = store::snapshot(place.path()).unwrap().records;
    assert!(deeds > 0);
    assert_eq!(reopened(place.path()).0, records);
}
