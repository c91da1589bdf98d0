//! Writes a backup.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use protocol::{Epochs, Hash, codec};
use silo::JournalRecord;
use task::file;

use super::archive::{
    AGREEMENT, ANSWERED, Archive, BESIDE_AGREEMENT, BESIDE_CONSENT, CONFIG, FORMAT, KEY, MODEL,
    Manifest, PASSAGES, SPLIT, START_MODEL, STATE, hash_of,
};
use crate::audit::AUDIT;
use crate::clock;
use crate::institution::{
    Configured, IN_FORCE, Institution, Membership, Places, SetupError, place, protocol_records,
};
use crate::model::{PERSONAL, START};
use crate::split_key;
use crate::store::{self, StoreOpenError};
use crate::verify::EVIDENCE;

/// Why no backup was written.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The configuration, the agreement or the key cannot be used.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The state folder cannot be read.
    #[error(transparent)]
    Store(#[from] StoreOpenError),
    /// A change in the journal.
    #[error(transparent)]
    Change(#[from] protocol::change::ChangeError),
    /// A file cannot be read.
    #[error("cannot read {}: {why}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// There is a file of that name.
    #[error("{} exists, and a backup is not overwritten: choose another name", .0.display())]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error("cannot write the backup {}: {why}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

/// A backup that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Manifest of the backup.
    pub manifest: Manifest,
    /// Size of the backup in bytes.
    pub size: u64,
}

/// Files under the names that they have in a backup.
struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    /// Adds a file; `false` where there is none.
    fn add(&mut self, name: &str, from: &Path) -> Result<bool, BackupError> {
        match file::read(from, file::MODEL) {
            Ok(bytes) => {
                self.0.insert(name.to_owned(), bytes);
                Ok(true)
            }
            // A running node may remove the oldest file of its audit log.
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(why) => Err(BackupError::Read {
                file: from.to_owned(),
                why,
            }),
        }
    }

    /// Adds the regular files of a folder for which `wanted` is true of the name; none where there is
    /// no such folder.
    fn add_folder(
        &mut self,
        name: &str,
        folder: &Path,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), BackupError> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.path().is_file());
        let names = files.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| wanted(name)).collect();
        names.sort();
        for found in names {
            self.add(&format!("{name}{found}"), &folder.join(&found))?;
        }
        Ok(())
    }
}

/// Writes a backup of the institution whose `node.toml` is `config` into the file `to`, which must not
/// exist. Its node may run meanwhile. `model` is an exported model of the institution, if it has one.
///
/// # Errors
/// [`BackupError`].
pub fn save(config: &Path, model: Option<Vec<u8>>, to: &Path) -> Result<Saved, BackupError> {
    if to.exists() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let institution = Configured::load(config)
        .map_err(SetupError::from)?
        .with_any_key()?;
    let mut files = Files(BTreeMap::new());
    files.add(CONFIG, config)?;
    let text = String::from_utf8_lossy(&files.0[CONFIG]).into_owned();
    let folder = config.parent().unwrap_or(Path::new(""));
    let name = config.display().to_string();
    let places = Places::read(&name, &text, folder).map_err(SetupError::from)?;
    files.add(KEY, &places.identity)?;
    files.add(SPLIT, &split_key::beside(&places.identity))?;
    files.add(ANSWERED, &places.identity.with_file_name(ANSWERED))?;
    files.add(AGREEMENT, &places.federation)?;
    let is_consent = |name: &str| name.contains("consent") && name.ends_with(".toml");
    let beside = |file: &Path| file.parent().unwrap_or(Path::new("")).to_owned();
    let (agreed, consented) = (beside(&places.federation), beside(&places.consent));
    files.add_folder(BESIDE_AGREEMENT, &agreed, |name| {
        name == START || is_consent(name)
    })?;
    if consented != agreed {
        files.add_folder(BESIDE_CONSENT, &consented, is_consent)?;
    }
    if let Some(start) = places.start_model.filter(|start| start.is_file()) {
        files.add(START_MODEL, &start)?;
    }
    let (epoch, silo, round) = state(&institution, &mut files)?;
    if let Some(model) = model {
        files.0.insert(MODEL.to_owned(), model);
    }
    let hashes = files.0.iter();
    let hashes = hashes.map(|(name, bytes)| (name.clone(), hash_of(bytes)));
    let agreed = &institution.agreement.epoch;
    let manifest = Manifest {
        format: FORMAT,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        made: clock::to_second(SystemTime::now()),
        name: agreed.protocol.name.clone(),
        federation: format!("{:#}", agreed.federation),
        silo,
        key: institution.key.public().to_string(),
        epoch,
        round,
        files: hashes.collect(),
        signature: None,
    };
    let written = |why| BackupError::Write {
        file: to.to_owned(),
        why,
    };
    let manifest = manifest.signed(&institution.key).map_err(written)?;
    let archive = Archive {
        manifest,
        files: files.0,
    };
    let size = archive.write(to).map_err(|why| match why.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists(to.to_owned()),
        _ => written(why),
    })?;
    let manifest = archive.manifest;
    Ok(Saved { manifest, size })
}

/// Adds what a backup has of the state folder. Gives the number of changes of the agreement, the name of
/// the silo, and the last round that it adopted.
fn state(institution: &Institution, files: &mut Files) -> Result<(u64, String, u64), BackupError> {
    let state = &institution.state;
    let records = if store::has_journal(state) {
        store::snapshot(state)?.records
    } else {
        // A node that has not run yet.
        Vec::new()
    };
    let adopted = records.iter().rev().find_map(|record| match record {
        JournalRecord::Adopted(adopted) => Some(adopted.clone()),
        _ => None,
    });
    let first = institution.agreement.epoch.clone();
    let epochs = Epochs::replay(first, protocol_records(records.clone()))?;
    for (nth, (_, passage)) in epochs.former.iter().enumerate() {
        let record = JournalRecord::Protocol(protocol::Record::Final {
            blocks: passage.blocks.clone(),
            proof: passage.proof.clone(),
        });
        let name = format!("{PASSAGES}{nth:06}");
        files.0.insert(name, codec::encode(&record));
    }
    let personal = adopted.as_ref().map(|adopted| Hash(adopted.personal));
    if let Some(hash) = personal {
        // The initial personal state follows from the agreement, and is in no file.
        let blob = store::blob(state, &hash).map(|blob| blob.to_vec());
        let kept = || store::kept_file(state, PERSONAL).ok().flatten();
        let kept = || kept().filter(|kept| Hash::of(kept) == hash);
        if let Some(bytes) = blob.or_else(kept) {
            files.0.insert(format!("{STATE}{PERSONAL}"), bytes);
        }
    }
    for name in [IN_FORCE, START] {
        files.add(&format!("{STATE}{name}"), &state.join(name))?;
    }
    // The head before the lines: it signs for none that is not there yet.
    let audit = state.join(AUDIT);
    for wanted in [".json", ".jsonl"] {
        let of = format!("{STATE}{AUDIT}/");
        files.add_folder(&of, &audit, |name| name.ends_with(wanted))?;
    }
    let of = format!("{STATE}{EVIDENCE}/");
    files.add_folder(&of, &state.join(EVIDENCE), |_| true)?;
    let name = |epoch: &protocol::Epoch, me| epoch.roster.name(me).to_owned();
    let silo = match place(institution, &epochs, &records) {
        Membership::Member(present) => {
            let present = &present.institution;
            name(&present.agreement.epoch, present.me)
        }
        Membership::Left | Membership::Outside if institution.is_first_member() => {
            name(&institution.agreement.epoch, institution.me)
        }
        Membership::Left | Membership::Outside => "an institution that is no member".to_owned(),
    };
    let round = adopted.map_or(0, |adopted| adopted.round);
    Ok((epochs.now.number, silo, round))
}
