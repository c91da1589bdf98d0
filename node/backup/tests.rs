#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use super::archive::{Archive, FORMAT, hash_of};
use super::*;
use crate::fixture::{North, key};
use crate::institution::Institution;

/// A backup with these files.
fn archive(files: &[(&str, &[u8])]) -> Archive {
    let files: BTreeMap<String, Vec<u8>> = files
        .iter()
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
        .collect();
    let hashes = files.iter();
    let hashes = hashes.map(|(name, bytes)| (name.clone(), hash_of(bytes)));
    Archive {
        manifest: Manifest {
            format: FORMAT,
            program: "0.1.0".into(),
            made: "2026-03-01T10:00:00Z".into(),
            name: "stays".into(),
            federation: "06".repeat(32),
            silo: "north".into(),
            key: "81".repeat(32),
            epoch: 0,
            round: 3,
            files: hashes.collect(),
            signature: None,
        },
        files,
    }
}

/// Returns the reason for which a backup with these files, once written, is refused.
fn refused(archive: &Archive, folder: &Path) -> String {
    let file = folder.join("a.tar");
    let _ = fs::remove_file(&file);
    archive.write(&file).unwrap();
    Archive::read(&file).unwrap_err().to_string()
}

#[test]
fn an_archive_is_read_as_written_and_by_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.tar");
    let ours = archive(&[
        ("node.toml", b"x = 1\n"),
        ("split.key", b"secret"),
        ("answered.json", b"{\"answered\":[]}"),
        ("state/audit/000001.jsonl", b""),
    ]);
    ours.write(&file).unwrap();
    let read = Archive::read(&file).unwrap();
    assert_eq!(read.manifest, ours.manifest);
    assert_eq!(read.files, ours.files);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // Nothing is overwritten.
    let again = ours.write(&file).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
}

#[test]
fn a_file_that_leads_elsewhere_or_is_a_journal_voids_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "state/journal.redb",
        "state/journal.redb.lost-1",
        "state/served.json",
        "state/audit/.hidden",
        "state/audit/deeper/x",
        "consent/back\\slash",
        "other",
    ] {
        let said = refused(&archive(&[(name, b"x")]), folder.path());
        assert!(said.contains("which none has"), "{name}: {said}");
    }
    // No tar file of ours has such a name, so it is written by hand.
    let mut tar = tar::Builder::new(Vec::new());
    let manifest = serde_json::to_vec(&archive(&[]).manifest).unwrap();
    for (name, bytes) in [("backup.json", manifest), ("agreement/../x", vec![b'x'])] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        let raw = &mut header.as_gnu_mut().unwrap().name;
        raw[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        tar.append(&header, bytes.as_slice()).unwrap();
    }
    let file = folder.path().join("b.tar");
    fs::write(&file, tar.into_inner().unwrap()).unwrap();
    let said = Archive::read(&file).unwrap_err().to_string();
    assert!(
        said.contains("\"agreement/../x\", which none has"),
        "{said}"
    );
}

#[test]
fn a_changed_missing_or_added_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let good = || archive(&[("node.toml", b"one"), ("identity.key", b"two")]);
    let mut changed = good();
    changed.files.insert("node.toml".into(), b"One".to_vec());
    let said = refused(&changed, folder.path());
    assert!(
        said.contains("node.toml was changed, or is damaged"),
        "{said}"
    );
    let mut missing = good();
    missing.files.remove("identity.key");
    let said = refused(&missing, folder.path());
    assert!(said.contains("identity.key is missing"), "{said}");
    let mut added = good();
    added.files.insert("federation.toml".into(), Vec::new());
    let said = refused(&added, folder.path());
    assert!(said.contains("federation.toml was added"), "{said}");
    // Cut off at any place.
    let file = folder.path().join("whole.tar");
    good().write(&file).unwrap();
    let bytes = fs::read(&file).unwrap();
    let end = bytes.len() - 1024; // two blocks of zeros end a tar file
    for cut in [0, 100, 600, end / 2, end - 600] {
        let part = folder.path().join("part.tar");
        fs::File::create(&part)
            .unwrap()
            .write_all(&bytes[..cut])
            .unwrap();
        assert!(Archive::read(&part).is_err(), "{cut}");
    }
}

#[test]
fn a_newer_format_is_refused_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut newer = archive(&[]);
    newer.manifest.format = FORMAT + 1;
    let said = refused(&newer, folder.path());
    assert!(said.contains("is a backup of format 2"), "{said}");
}

/// The backup of north in a file, with this change, under a new signature of its key.
fn changed(north: &North, to: &Path, change: impl Fn(&mut Archive)) {
    let config = north.folder.path().join("node.toml");
    let whole = north.folder.path().join("whole.tar");
    if !whole.exists() {
        save(&config, None, &whole).unwrap();
    }
    let mut archive = Archive::read(&whole).unwrap();
    change(&mut archive);
    let hashes = archive.files.iter();
    let hashes = hashes.map(|(name, bytes)| (name.clone(), hash_of(bytes)));
    archive.manifest.files = hashes.collect();
    archive.write(to).unwrap();
}

/// Puts other text into the node.toml of a backup.
fn rewritten(archive: &mut Archive, from: &str, to: &str) {
    let text = String::from_utf8(archive.files["node.toml"].clone()).unwrap();
    assert!(text.contains(from), "{text}");
    let text = text.replacen(from, to, 1);
    archive.files.insert("node.toml".into(), text.into_bytes());
}

#[test]
fn a_changed_backup_writes_nothing_outside_of_its_folder() {
    let north = North::new();
    let place = tempfile::tempdir().unwrap();
    let elsewhere = place.path().join("elsewhere");
    let absolute = format!("state = {:?}", elsewhere.display().to_string());
    for (nth, (from, to)) in [
        ("state = \"state\"", "state = \"../elsewhere\""),
        ("state = \"state\"", &*absolute),
        ("state = \"state\"", "state = \"a/../../elsewhere/s\""),
        (
            "identity = \"identity.key\"",
            "identity = \"../elsewhere/identity.key\"",
        ),
        (
            "federation = \"federation.toml\"",
            "federation = \"../elsewhere/f.toml\"",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let file = place.path().join(format!("{nth}.tar"));
        changed(&north, &file, |archive| {
            rewritten(archive, from, to);
            archive.manifest = archive.manifest.clone().signed(&key(9)).unwrap();
        });
        // It was signed before the hashes were put right.
        let resigned = place.path().join(format!("{nth}-signed.tar"));
        let mut archive = Archive::read(&file).unwrap();
        archive.manifest = archive.manifest.signed(&key(9)).unwrap();
        archive.write(&resigned).unwrap();
        let into = place.path().join(format!("in-{nth}"));
        let why = restore(&file, &into, RestoreConsent::default()).unwrap_err();
        assert!(matches!(why, RestoreError::Signature(_)), "{to}: {why}");
        let why = restore(&resigned, &into, RestoreConsent::default()).unwrap_err();
        let RestoreError::Outside { paths, .. } = &why else {
            panic!("{to}: {why}");
        };
        assert!(
            !paths.is_empty() && why.to_string().contains("elsewhere"),
            "{why}"
        );
        assert!(
            !elsewhere.exists() && !into.exists(),
            "{to}: something was written"
        );
        let allowed = RestoreConsent {
            outside: true,
            ..RestoreConsent::default()
        };
        restore(&resigned, &into, allowed).unwrap();
        assert!(elsewhere.exists());
        fs::remove_dir_all(&elsewhere).unwrap();
    }
}

#[test]
fn a_backup_with_former_names_is_put_back_with_the_present() {
    let north = North::new();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("former.tar");
    changed(&north, &file, |archive| {
        let config = archive.files.remove("node.toml").unwrap();
        let former = [&config[..], b"[policy]\napprove = ['epochs']\n"].concat();
        archive.files.insert("silo.toml".into(), former);
        let text = String::from_utf8(archive.files["federation.toml"].clone()).unwrap();
        let former = text
            .replace("[protocol]", "[charter]")
            .replace("heartbeat = ", "beat = ")
            .replace("straggler-timeout = ", "patience = ")
            .replace("[[member]]", "[[silo]]");
        assert!(former.contains("\nbeat = "), "{former}");
        let bytes = former.into_bytes();
        archive.files.insert("federation.toml".into(), bytes);
    });
    let mut archive = Archive::read(&file).unwrap();
    archive.manifest = archive.manifest.signed(&key(9)).unwrap();
    let signed = place.path().join("signed.tar");
    archive.write(&signed).unwrap();
    let into = place.path().join("in");
    let restored = restore(&signed, &into, RestoreConsent::default()).unwrap();
    assert_eq!(restored.config, into.join("node.toml"));
    let read = Institution::load(&restored.config).unwrap();
    let federation = |of: &Institution| of.agreement.epoch.federation;
    assert_eq!(federation(&read), federation(&north.institution));
    assert!(!into.join("silo.toml").exists());
}

#[test]
fn a_backup_without_a_signature_is_taken_only_on_request() {
    let north = North::new();
    let place = tempfile::tempdir().unwrap();
    let (file, into) = (place.path().join("a.tar"), place.path().join("in"));
    changed(&north, &file, |archive| archive.manifest.signature = None);
    let why = restore(&file, &into, RestoreConsent::default()).unwrap_err();
    assert!(matches!(why, RestoreError::Unsigned(_)), "{why}");
    assert!(!into.exists());
    let allowed = RestoreConsent {
        unsigned: true,
        ..RestoreConsent::default()
    };
    restore(&file, &into, allowed).unwrap();
    // As it was made it needs no word of anybody; another key's signature, and odd texts, never count.
    let whole = north.folder.path().join("whole.tar");
    let again = place.path().join("again");
    restore(&whole, &again, RestoreConsent::default()).unwrap();
    let other = place.path().join("b.tar");
    changed(&north, &other, |archive| {
        archive.manifest = archive.manifest.clone().signed(&key(8)).unwrap();
    });
    let why = restore(&other, &place.path().join("c"), allowed).unwrap_err();
    assert!(matches!(why, RestoreError::Signature(_)), "{why}");
    for (nth, made) in ["", "yesterday", "10000-01-01T00:00:00Z", "\u{1b}[2J"]
        .into_iter()
        .enumerate()
    {
        let file = place.path().join(format!("odd-{nth}.tar"));
        changed(&north, &file, |archive| archive.manifest.made = made.into());
        let why = restore(&file, &place.path().join("d"), allowed).unwrap_err();
        assert!(matches!(why, RestoreError::Archive(_)), "{made}: {why}");
    }
}
