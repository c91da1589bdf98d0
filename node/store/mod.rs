//! The folder of a silo on disk: its journal and its blobs.
//!
//! ```text
//! FOLDER/lock           held by the one process that uses the folder
//! FOLDER/journal.redb   records that must not be lost: votes, nonces, certificates, adoptions
//! FOLDER/federation.toml   the first agreement, for commands that print the journal
//! FOLDER/in-force.toml   the agreement in force, once it has changed
//! FOLDER/amendments/    amendments that members approve, and what this institution says to them
//! FOLDER/personal.safetensors, personal.hash   the personal state of a backup, where one was put back
//! FOLDER/preparation.json, served.json, served.safetensors   notes for `rota model`
//! FOLDER/blobs/         models, outcomes and sheets, each in a file named by its hash
//! FOLDER/audit/         lines about everything that was sent
//! FOLDER/evidence/      evidence against members, each in a file that proves itself
//! ```
//!
//! A file that cannot be used is renamed and not deleted, for example to `journal.redb.damaged-1`.
//! All folders and files can be read by their owner only (0700 and 0600 on Unix), whoever wrote them.
//!
//! Both implement the guarantees of [`silo::Journal`] and [`silo::Blobs`]: data are durable when a
//! write returns, and a read returns exactly what was written, or an error.

mod blobs;
mod cache;
mod error;
mod folder;
mod frame;
mod journal;
mod kept;
mod note;
mod parts;
mod snapshot;

use std::path::Path;

pub use blobs::DiskBlobs;
pub use error::StoreOpenError;
pub use frame::Owner;
pub use journal::{DiskJournal, LogNote};
pub use kept::{
    StoredBlob, blob, blob_path, blob_since, close_file, found, keep_file, kept_file, make_folder,
    subfolder,
};
pub use note::Note;
use note::Notes;
pub use snapshot::{Snapshot, snapshot};

/// Name of the file with the agreement of the last run.
pub(crate) const AGREEMENT: &str = "federation.toml";

/// A folder in use.
pub struct OpenedStore {
    /// Journal of the silo, which holds the folder's lock.
    pub journal: DiskJournal,
    /// Blobs of the silo.
    pub blobs: DiskBlobs,
    /// Notes for the operator.
    pub notes: Vec<Note>,
}

/// Opens the journal and blobs in `folder`, or creates the folder with an empty journal. `cache` is
/// the number of bytes of blobs that stay in memory. Other users lose all permissions on the folder
/// and its files.
///
/// # Errors
/// [`StoreOpenError`].
pub fn open(folder: &Path, owner: &Owner, cache: usize) -> Result<OpenedStore, StoreOpenError> {
    opened(folder, owner, cache, false)
}

/// Returns whether there is a journal in `folder`.
pub fn has_journal(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder.join(journal::NAME)).is_ok()
}

/// Writes the text of the agreement beside the journal, so that the journal can be printed with the
/// members' names.
///
/// # Errors
/// [`StoreOpenError`]: an error of the system.
pub fn keep_agreement(folder: &Path, text: &str) -> Result<(), StoreOpenError> {
    keep_file(folder, AGREEMENT, text.as_bytes())
}

/// As [`open`], with the journal declared lost: an existing journal is kept under another name,
/// whatever its state, and the new one starts with [`silo::JournalRecord::Lost`]. A journal of another
/// federation, member or key is still refused, because then the folder is wrong.
///
/// # Errors
/// [`StoreOpenError`].
pub fn open_lost(
    folder: &Path,
    owner: &Owner,
    cache: usize,
) -> Result<OpenedStore, StoreOpenError> {
    opened(folder, owner, cache, true)
}

/// Begins the journal of a folder that has none, as one that was lost: the silo only listens until none of
/// the votes that it may have forgotten counts any more. `passages` are the final blocks that ended
/// epochs, so that the node knows the agreement in force.
///
/// # Errors
/// [`StoreOpenError`]: the folder is in use, or an error of the system.
pub fn begin_lost(
    folder: &Path,
    owner: &Owner,
    passages: &[silo::JournalRecord],
) -> Result<(), StoreOpenError> {
    let mut records = vec![silo::JournalRecord::Lost];
    records.extend_from_slice(passages);
    journal::begin_with(folder, owner, &records)
}

/// Returns what shows that a silo has used a folder: its journal, one that was set aside, or a model.
pub fn is_used(folder: &Path) -> bool {
    has_journal(folder) || journal::any_aside(folder).unwrap_or(false) || blobs::any(folder)
}

fn opened(
    folder: &Path,
    owner: &Owner,
    cache: usize,
    lost: bool,
) -> Result<OpenedStore, StoreOpenError> {
    let mut notes = Notes::new();
    // The journal is opened first, because it holds the lock.
    let journal = DiskJournal::open_noting(folder, owner, lost, &mut notes)?;
    let blobs = DiskBlobs::open_noting(folder, cache, &mut notes)?;
    folder::close_within(folder);
    Ok(OpenedStore {
        journal,
        blobs,
        notes,
    })
}
