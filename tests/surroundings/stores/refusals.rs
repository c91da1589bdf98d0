//! Journals that are not this silo's to use.

use std::fs;

use redb::{Database, TableDefinition};
use store::StoreOpenError;

use super::*;
use crate::stores::child::RunningChild;

/// Returns what opening the journal as another owner says.
fn refused(place: &TempDir, change: impl FnOnce(&mut Owner)) -> StoreOpenError {
    let mut other = owner();
    change(&mut other);
    DiskJournal::open(place.path(), &other).err().unwrap()
}

#[test]
fn the_journal_of_another_federation_member_or_key_is_refused() {
    let place = tempfile::tempdir().unwrap();
    place.journal().commit(vec![record(1)]).unwrap();
    let error = refused(&place, |owner| owner.federation = Hash([8; 32]));
    assert!(
        matches!(error, StoreOpenError::Federation { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("07070707"), "{error}");
    let error = refused(&place, |owner| owner.me = MemberIndex(3));
    assert!(matches!(error, StoreOpenError::Member { .. }), "{error}");
    let error = refused(&place, |owner| owner.key = SecretKey::from_bytes(&[1; 32]));
    assert!(matches!(error, StoreOpenError::Key { .. }), "{error}");
    // None of it changed anything.
    assert_eq!(place.journal().load().unwrap(), [record(1)]);
}

#[test]
fn a_journal_of_a_newer_program_is_refused() {
    let place = tempfile::tempdir().unwrap();
    drop(place.journal());
    let database = Database::open(place.path().join("journal.redb")).unwrap();
    let transaction = database.begin_write().unwrap();
    let head: TableDefinition<(), &[u8]> = TableDefinition::new("head");
    let mut newer = 3u32.to_le_bytes().to_vec();
    newer.extend(b"fields of a newer format");
    transaction
        .open_table(head)
        .unwrap()
        .insert((), &newer[..])
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refused(&place, |_| ());
    let StoreOpenError::Newer {
        found: 3, ours: 2, ..
    } = error
    else {
        panic!("{error}")
    };
    let hint = "journal format 3, this program reads format 2: use the program that wrote it";
    assert!(error.to_string().contains(hint), "{error}");
}

#[test]
fn a_folder_in_use_is_refused_until_its_process_ends() {
    let place = tempfile::tempdir().unwrap();
    let mut child = RunningChild::start("hold", place.path(), 0, None);
    assert_eq!(child.says().as_deref(), Some("open"));
    let error = refused(&place, |_| ());
    assert!(matches!(error, StoreOpenError::Locked(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("in use") && text.contains(place.path().to_str().unwrap()));
    child.kill();
    let journal = place.journal();
    // By this process too.
    assert!(matches!(refused(&place, |_| ()), StoreOpenError::Locked(_)));
    drop(journal);
    drop(place.journal());
}

#[test]
fn a_folder_that_cannot_be_one_is_named() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = store::open(&file.join("silo"), &owner(), CACHE)
        .err()
        .unwrap();
    assert!(matches!(error, StoreOpenError::Io { .. }), "{error}");
    assert!(error.to_string().contains("file/silo"), "{error}");
}
