//! A folder that an earlier version of this program wrote: its configuration, consent and state are read as they
//! were meant.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;

use protocol::MemberIndex;
use tempfile::TempDir;

use super::{Configured, Data, Institution, Membership, SignatureState, fit, standing};
use crate::chain::FinalChain;
use crate::federation::{follows, with_names};
use crate::model::{HeldRounds, served};
use crate::store::{self, Owner};

/// A member of two after its two rounds, with rows that have other names.
const FOLDER: &[u8] = include_bytes!("../store/golden/earlier.tar.gz");
/// The federation's id.
const FEDERATION: &str = "880efe7834e7eacfc7333bbae1c5ceaef8178609e6f5daf237b716d5b3a143a4";

fn unpacked() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("earlier.tar.gz");
    fs::write(&packed, FOLDER).unwrap();
    let files = task::data::bytes(&packed).unwrap();
    tar::Archive::new(&files[..]).unpack(folder.path()).unwrap();
    let config = folder.path().join("silo.toml");
    // A file that people edit is refused with the names that its keys have now; what the node kept is read as it is.
    let agreed = folder.path().join("federation.toml");
    let text = fs::read_to_string(&agreed).unwrap();
    let refused = Configured::load(&config).err().unwrap().to_string();
    assert!(
        refused.contains("`charter` is called `protocol` now"),
        "{refused}"
    );
    fs::write(&agreed, ::agreement::current(&text).as_bytes()).unwrap();
    (folder, config)
}

#[test]
fn an_earlier_configuration_keeps_its_meaning_and_its_id() {
    let (_folder, config) = unpacked();
    let institution = Institution::load(&config).unwrap();
    let agreement = &institution.agreement;
    assert_eq!(format!("{:#}", agreement.epoch.federation), FEDERATION);
    assert!(follows(agreement).is_ok());
    institution.consented().unwrap();
    let Data::Rows(rows) = &institution.data else {
        panic!("it has rows")
    };
    assert_eq!(rows.names.column("age"), "Alter");
    assert_eq!(rows.names.value("ward", "ITS"), "intensive");
    let name = agreement.epoch.roster.name(institution.me);
    let found = fit(agreement, rows, name, &institution.folder, (0, None)).unwrap();
    assert_eq!((found.rows, found.missing), (40, 1));
    // A key that is written into it now leaves everything else alone.
    let text = fs::read_to_string(&config).unwrap();
    assert_eq!(with_names(&text, rows).unwrap(), text);
    let mut rows = (**rows).clone();
    rows.names.absent.push("pulse".into());
    rows.answers.add("age", Some("99"));
    fs::write(&config, with_names(&text, &rows).unwrap()).unwrap();
    let again = Institution::load(&config).unwrap();
    let Data::Rows(read) = &again.data else {
        panic!("it has rows")
    };
    assert_eq!(**read, rows);
}

#[test]
fn a_state_folder_of_an_earlier_version_continues() {
    let (_folder, config) = unpacked();
    let configured = Configured::load(&config).unwrap();
    let (state, federation) = (configured.state.clone(), configured.federation.clone());
    let (institution, place) = standing(configured).unwrap();
    let Membership::Member(present) = place else {
        panic!("it is a member")
    };
    assert!(matches!(present.signature, SignatureState::Signed(_)));
    let chain = FinalChain::read(&state, Some(&federation)).unwrap();
    assert_eq!((chain.rounds(), chain.missing.len()), (2, 0));
    let owner = Owner {
        federation: institution.agreement.epoch.federation,
        me: MemberIndex(0),
        key: institution.key.clone(),
    };
    let opened = store::open(&state, &owner, 1 << 20).unwrap();
    assert!(opened.notes.is_empty());
    drop(opened);
    let held = HeldRounds::read(&state, &institution.agreement).unwrap();
    assert_eq!(held.round(None).unwrap().round, 2);
    let noted = served(&state).unwrap().unwrap();
    assert!(noted.served.candidate.is_own() && noted.model.is_some());
}
