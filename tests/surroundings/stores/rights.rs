//! Only its owner can read a silo's folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ::rota::agreement::Agreement;
use ::rota::node::institution::{AmendmentFolder, AmendmentWord, KnownAmendment};
use store::Note;

use super::*;

/// Every file and folder from `path` on, with the rights of others.
fn open_to_others(path: &Path) -> Vec<PathBuf> {
    let mut open = Vec::new();
    let found = fs::metadata(path).unwrap();
    if found.permissions().mode() & 0o077 != 0 {
        open.push(path.to_owned());
    }
    if found.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            open.extend(open_to_others(&entry.unwrap().path()));
        }
    }
    open
}

fn used(folder: &Path) {
    let mut opened = store::open(folder, &owner(), CACHE).unwrap();
    opened.journal.commit(vec![record(1)]).unwrap();
    opened.blobs.put(blob(1).0, blob(1).1).unwrap();
    store::keep_agreement(folder, "name = 'x'").unwrap();
}

#[test]
fn a_new_folder_is_its_owners_alone_with_all_that_is_in_it() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("deep").join("state");
    used(&folder);
    assert_eq!(open_to_others(&folder), [] as [PathBuf; 0]);
    assert!(folder.join("journal.redb").exists() && folder.join("federation.toml").exists());
}

#[test]
fn a_folder_that_was_open_is_closed_and_that_is_noted() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("state");
    used(&folder);
    let all = ["", "lock", "journal.redb", "blobs"].map(|name| match name {
        "" => folder.clone(),
        name => folder.join(name),
    });
    let blob = folder.join("blobs").join(format!("{:#}", blob(1).0));
    for path in all.iter().chain([&blob]) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let opened = store::open(&folder, &owner(), CACHE).unwrap();
    assert_eq!(opened.notes, all.map(Note::Closed));
    assert!(
        opened.notes[0]
            .to_string()
            .contains("could be read by other users")
    );
    drop(opened);
    assert_eq!(open_to_others(&folder), [] as [PathBuf; 0]);
    assert_eq!(store::open(&folder, &owner(), CACHE).unwrap().notes, []);
}

/// Writes the institution's words, as commands do before any node has run.
fn said(state: &Path) {
    let text = fs::read_to_string("examples/federation.toml").unwrap();
    let agreement = Agreement::parse("federation.toml", &text).unwrap();
    let epoch = agreement.epoch.id;
    let amendment = agreement.leaving(MemberIndex(0));
    let word = AmendmentWord::after(&[], (epoch, &amendment), true, std::time::SystemTime::now());
    let known = KnownAmendment {
        epoch,
        needed: 1,
        approved: Vec::new(),
        amendment,
    };
    let amendments = AmendmentFolder::of(state);
    amendments.keep(&known).unwrap();
    amendments.say(&word).unwrap();
}

#[test]
fn commands_before_the_node_make_an_owner_only_folder() {
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("deep").join("state");
    said(&state);
    assert!(state.join("amendments").is_dir());
    assert_eq!(open_to_others(&state), [] as [PathBuf; 0]);
}

#[test]
fn commands_narrow_a_folder_that_is_open_and_never_widen_it() {
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("state");
    said(&state);
    let open = [
        state.clone(),
        state.join("amendments"),
        fs::read_dir(state.join("amendments"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path(),
    ];
    for path in &open {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    // The same is written again.
    said(&state);
    assert_eq!(open_to_others(&state), [] as [PathBuf; 0]);
}

#[test]
fn a_start_closes_all_that_is_in_the_folder_whoever_wrote_it() {
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("state");
    used(&state);
    let deep = state.join("more").join("deep");
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("notes"), "x").unwrap();
    let outside = place.path().join("outside");
    fs::write(&outside, "x").unwrap();
    fs::set_permissions(&outside, Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink(&outside, state.join("link")).unwrap();
    // Nobody else could enter the folder, so there is nothing to say.
    assert_eq!(store::open(&state, &owner(), CACHE).unwrap().notes, []);
    fs::remove_file(state.join("link")).unwrap();
    assert_eq!(open_to_others(&state), [] as [PathBuf; 0]);
    assert_eq!(open_to_others(&outside), [outside]);
}
