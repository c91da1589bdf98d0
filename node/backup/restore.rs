//! Puts a backup back.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agreement::{Agreement, ConfigError, current};
use protocol::{Epochs, Hash, codec};
use silo::JournalRecord;

use super::archive::{
    AGREEMENT, ANSWERED, AUDITED, Archive, ArchiveError, BESIDE_AGREEMENT, BESIDE_CONSENT, CONFIG,
    FORMER_CONFIG, KEY, MODEL, Manifest, PASSAGES, SPLIT, START_MODEL, STATE,
};
use super::confined::outside;
use crate::audit::{AuditLog, LogError};
use crate::identity::{self, IdentityError};
use crate::institution::{Places, protocol_records};
use crate::model::{PERSONAL, keep_personal_hash};
use crate::split_key;
use crate::store::{self, Owner, StoreOpenError};

/// Reason for which a backup was not put back.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The file is no whole backup.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The `node.toml` or the agreement in it cannot be used.
    #[error("the backup cannot be used: {0}")]
    Config(#[from] ConfigError),
    /// The key in the backup is no key.
    #[error(transparent)]
    Key(#[from] IdentityError),
    /// The parts of the backup do not belong together.
    #[error("the backup cannot be used: {0}")]
    Mixed(String),
    /// Nobody signed it.
    #[error(
        "{} has no signature of its institution: an earlier version of Rota made it, or somebody changed it. \
         Nothing was written", .0.display()
    )]
    Unsigned(PathBuf),
    /// Its signature is not one of the key in it.
    #[error(
        "the institution's signature under {} does not hold: somebody changed the backup. Nothing was written; use \
         another one", .0.display()
    )]
    Signature(PathBuf),
    /// Its `node.toml` puts files elsewhere.
    #[error(
        "the node.toml in the backup puts {} outside of {}, where a backup that somebody changed could overwrite what \
         is not its own. Nothing was written",
        paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "), folder.display()
    )]
    Outside {
        /// The folder that it is restored into.
        folder: PathBuf,
        /// Files that it would write elsewhere.
        paths: Vec<PathBuf>,
    },
    /// A state is there.
    #[error(
        "{} holds a state already, {what}: a backup never overwrites one, because what the silo has signed since \
         would be forgotten. Use that state (if its journal is damaged, start once with `rota run \
         --journal-lost`), or move the folder away first", state.display()
    )]
    Used {
        /// The state folder.
        state: PathBuf,
        /// Content of the state folder, as part of a sentence.
        what: String,
    },
    /// Another file is in the way.
    #[error(
        "{} exists with other contents than in the backup, and is not overwritten: move it away, or restore \
         into another folder", .0.display()
    )]
    InTheWay(PathBuf),
    /// The state folder cannot be written.
    #[error(transparent)]
    Store(#[from] StoreOpenError),
    /// The audit log cannot be continued.
    #[error(transparent)]
    Audit(#[from] LogError),
    /// A folder cannot be made.
    #[error("cannot make the folder {}: {why}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        why: io::Error,
    },
}

/// Permissions by whoever restores a backup, because it cannot be told whether somebody changed the backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreConsent {
    /// It may write outside of the folder, where its `node.toml` says so.
    pub outside: bool,
    /// It need not be signed.
    pub unsigned: bool,
}

/// A backup that was put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredBackup {
    /// Manifest of the backup.
    pub manifest: Manifest,
    /// The configuration.
    pub config: PathBuf,
    /// All files that were written, without those of the audit log and of evidence.
    pub written: Vec<PathBuf>,
    /// Members of the federation under the agreement in force at the time of the backup.
    pub members: usize,
    /// Votes of them that make a round final.
    pub quorum: usize,
}

/// Puts the backup in the file `from` back: `node.toml` into `folder`, everything else where that says, within
/// `folder` unless more is allowed. What exists already stays, if it has the same contents; nothing is
/// overwritten. The journal begins as one that was lost, so the node only listens at first.
///
/// If it is interrupted, it can be done again.
///
/// # Errors
/// [`RestoreError`]. Unless it is an error of the system, nothing has been written then.
pub fn restore(
    from: &Path,
    folder: &Path,
    consent: RestoreConsent,
) -> Result<RestoredBackup, RestoreError> {
    let Archive { manifest, files } = Archive::read(from)?;
    let files = with_present_names(files);
    let get = |name: &str| {
        let found = files.get(name);
        found.ok_or_else(|| RestoreError::Mixed(format!("it has no {name}")))
    };
    let text = |name: &str| {
        let text = std::str::from_utf8(get(name)?);
        text.map_err(|_| RestoreError::Mixed(format!("its {name} is not UTF-8")))
    };
    let places = Places::read(CONFIG, text(CONFIG)?, folder)?;
    let agreement = Agreement::parse(AGREEMENT, text(AGREEMENT)?)?;
    let key = identity::parse(text(KEY)?, &places.identity)?;
    let epoch = &agreement.epoch;
    if manifest.federation != format!("{:#}", epoch.federation)
        || manifest.key != key.public().to_string()
    {
        let what = "its key or agreement is not the one that it names";
        return Err(RestoreError::Mixed(what.into()));
    }
    match &manifest.signature {
        None if !consent.unsigned => return Err(RestoreError::Unsigned(from.to_owned())),
        Some(_) if !manifest.is_signed_by(&key.public()) => {
            return Err(RestoreError::Signature(from.to_owned()));
        }
        _ => {}
    }
    let passages = passages(&files)?;
    let epochs = Epochs::replay(epoch.clone(), protocol_records(passages.clone()));
    let epochs = epochs.map_err(|why| RestoreError::Mixed(why.to_string()))?;
    let behind = protocol::MemberIndex(epoch.roster.len() as u16);
    let owner = Owner {
        federation: epoch.federation,
        me: epoch.roster.position(&key.public()).unwrap_or(behind),
        key,
    };
    let begun = unused(&places.state, &manifest, epoch.federation, &passages)?;
    let mut wanted = Vec::new();
    for (name, bytes) in &files {
        if let Some(path) = target(name, &places, folder) {
            wanted.push((name, path, bytes));
        }
    }
    for (name, path, bytes) in &wanted {
        // The log of a restore that was interrupted may have a line more.
        let again = begun && name.starts_with(AUDITED);
        if is_there(path) && !again && fs::read(path).ok().as_ref() != Some(*bytes) {
            return Err(RestoreError::InTheWay(path.clone()));
        }
    }
    wanted.retain(|(_, path, _)| !is_there(path));
    if !consent.outside {
        let written = wanted.iter().map(|(_, path, _)| path.as_path());
        let state = (!begun).then_some(places.state.as_path());
        let paths = outside(folder, written.chain(state));
        let paths = paths.map_err(|why| RestoreError::Folder {
            folder: folder.to_owned(),
            why,
        })?;
        if !paths.is_empty() {
            let folder = folder.to_owned();
            return Err(RestoreError::Outside { folder, paths });
        }
    }
    // First what keeps the silo from signing, last what a node starts with.
    if !begun {
        make(&places.state)?;
        store::begin_lost(&places.state, &owner, &passages)?;
    }
    wanted.sort_by_key(|(name, ..)| name.as_str() == CONFIG);
    let mut written = Vec::new();
    for (name, path, bytes) in wanted {
        let (parent, own) = (path.parent(), path.file_name());
        let parent = parent.filter(|parent| *parent != Path::new(""));
        let parent = parent.unwrap_or(Path::new("."));
        make(parent)?;
        let own = own.unwrap_or_default().to_string_lossy();
        store::keep_file(parent, &own, bytes)?;
        if !name.starts_with(AUDITED) && !name.starts_with("state/evidence/") {
            written.push(path);
        }
    }
    if let Some(personal) = files.get(&format!("{STATE}{PERSONAL}")) {
        keep_personal_hash(&places.state, personal)?;
    }
    if files.keys().any(|name| name.starts_with(AUDITED)) {
        AuditLog::restored(&places.state, owner.federation, &owner.key, &manifest.made)?;
    }
    Ok(RestoredBackup {
        manifest,
        config: folder.join(CONFIG),
        written,
        members: epochs.now.roster.len(),
        quorum: epochs.now.roster.quorum(),
    })
}

/// The files of a backup with the names that files and keys have now.
fn with_present_names(mut files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<u8>> {
    if let Some(config) = files.remove(FORMER_CONFIG) {
        files.entry(CONFIG.into()).or_insert(config);
    }
    for name in [CONFIG, AGREEMENT] {
        if let Some(bytes) = files.get_mut(name)
            && let Ok(text) = std::str::from_utf8(bytes)
            && let Cow::Owned(present) = current(text)
        {
            *bytes = present.into_bytes();
        }
    }
    files
}

/// The records that led to the epoch of a backup.
///
/// # Errors
/// [`RestoreError::Mixed`]: a file that is no record.
fn passages(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<JournalRecord>, RestoreError> {
    let passages = files.iter().filter(|(name, _)| name.starts_with(PASSAGES));
    let passages = passages.map(|(name, bytes)| {
        let record: Result<JournalRecord, _> = codec::decode(bytes, codec::LIMIT);
        record.map_err(|why| RestoreError::Mixed(format!("{name}: {why}")))
    });
    passages.collect()
}

/// Refuses a state folder that a silo has used. `true` where this backup was being put back into it, and no
/// node has run since.
fn unused(
    state: &Path,
    manifest: &Manifest,
    federation: Hash,
    passages: &[JournalRecord],
) -> Result<bool, RestoreError> {
    if !store::is_used(state) {
        return Ok(false);
    }
    let used = |what: String| RestoreError::Used {
        state: state.to_owned(),
        what,
    };
    if !store::has_journal(state) {
        return Err(used("whose journal is gone".into()));
    }
    let journal = match store::snapshot(state) {
        Ok(journal) => journal,
        Err(why) => return Err(used(format!("which cannot be read ({why})"))),
    };
    if journal.federation != federation {
        return Err(used(format!("of the federation {}", journal.federation)));
    }
    let begun = [&[JournalRecord::Lost], passages].concat();
    if journal.records == begun && journal.key.to_string() == manifest.key {
        return Ok(true);
    }
    let round = journal
        .records
        .iter()
        .rev()
        .find_map(|record| match record {
            JournalRecord::Adopted(adopted) => Some(adopted.round),
            _ => None,
        });
    let (there, here) = (round.unwrap_or(0), manifest.round);
    Err(used(format!(
        "which has adopted round {there}, and the backup was made after round {here}"
    )))
}

/// Returns where a file of a backup belongs; `None` for those that become part of the journal.
fn target(name: &str, places: &Places, folder: &Path) -> Option<PathBuf> {
    let beside = |file: &Path, name: &str| Some(file.with_file_name(name));
    match name {
        CONFIG => Some(folder.join(CONFIG)),
        KEY => Some(places.identity.clone()),
        SPLIT => Some(split_key::beside(&places.identity)),
        ANSWERED => Some(places.identity.with_file_name(ANSWERED)),
        AGREEMENT => Some(places.federation.clone()),
        START_MODEL => places.start_model.clone(),
        MODEL => Some(folder.join(MODEL)),
        _ => {
            if let Some(name) = name.strip_prefix(BESIDE_AGREEMENT) {
                return beside(&places.federation, name);
            }
            if let Some(name) = name.strip_prefix(BESIDE_CONSENT) {
                return beside(&places.consent, name);
            }
            Some(places.state.join(name.strip_prefix(STATE)?))
        }
    }
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Makes a folder that only its owner can enter, unless it is there.
fn make(folder: &Path) -> Result<(), RestoreError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|why| RestoreError::Folder {
        folder: folder.to_owned(),
        why,
    })
}
