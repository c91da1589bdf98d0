//! What a silo keeps on disk: its journal and its blobs, in one folder.
//!
//! ```text
//! FOLDER/lock           held by the one process that uses the folder
//! FOLDER/journal.redb   what must never be forgotten: votes, nonces, certificates, adoptions
//! FOLDER/federation.toml   the agreement, for whoever looks into the journal
//! FOLDER/blobs/         models and outcomes, each in a file named by its hash
//! ```
//!
//! Whatever cannot be used and is not to be lost is renamed: `journal.redb.damaged-1`. Folder and files
//! are their owner's alone (0700 and 0600 where rights are those of Unix).
//!
//! Both keep the promises of [`silo::Journal`] and [`silo::Blobs`]: what was handed over is durable
//! when the call returns, and what is read is what was written, or refused.

mod blobs;
mod cache;
mod error;
mod folder;
mod frame;
mod journal;
mod note;
mod snapshot;

use std::fs;
use std::io::Write;
use std::path::Path;

use learn::file;

pub use blobs::DiskBlobs;
pub use error::OpenError;
pub use frame::Owner;
pub use journal::DiskJournal;
pub use note::Note;
use note::Notes;
pub use snapshot::{Snapshot, snapshot};

/// The agreement, as it was when the folder was last used.
pub(crate) const AGREEMENT: &str = "federation.toml";

/// A folder in use.
pub struct Opened {
    /// Its journal, which holds the folder's lock.
    pub journal: DiskJournal,
    /// Its blobs.
    pub blobs: DiskBlobs,
    /// What was found that the operator should know.
    pub notes: Vec<Note>,
}

/// Opens what is kept in `folder`, or begins it: the folder, an empty journal, no blobs. `cache` is
/// the number of bytes of blobs that stay in memory. The folder and everything in it are closed to
/// everybody but their owner.
///
/// # Errors
/// [`OpenError`].
pub fn open(folder: &Path, owner: &Owner, cache: usize) -> Result<Opened, OpenError> {
    opened(folder, owner, cache, false)
}

/// Keeps the text of the agreement beside the journal, so that what is in the journal can be shown
/// with names.
///
/// # Errors
/// [`OpenError`]: the system says no.
pub fn keep_agreement(folder: &Path, text: &str) -> Result<(), OpenError> {
    let (path, new) = (folder.join(AGREEMENT), folder.join("federation.toml.new"));
    let error = |error| error::io_error(&path, error);
    if file::read(&path, file::CONFIGURATION).is_ok_and(|kept| kept == text.as_bytes()) {
        return Ok(());
    }
    // A crash may have left it.
    let _ = fs::remove_file(&new);
    let mut out = folder::create(&new).map_err(error)?;
    out.write_all(text.as_bytes()).map_err(error)?;
    out.sync_all().map_err(error)?;
    fs::rename(&new, &path).map_err(error)?;
    folder::sync(folder).map_err(error)
}

/// The same with the journal declared lost: what is there is kept under another name that says what
/// it is, whatever its state, and a new journal begins with [`silo::Record::Lost`]. A journal that is
/// another federation's, member's or key's is refused all the same: that is no loss, but the wrong
/// folder.
///
/// # Errors
/// [`OpenError`].
pub fn open_lost(folder: &Path, owner: &Owner, cache: usize) -> Result<Opened, OpenError> {
    opened(folder, owner, cache, true)
}

fn opened(folder: &Path, owner: &Owner, cache: usize, lost: bool) -> Result<Opened, OpenError> {
    let mut notes = Notes::new();
    // The journal first: it holds the lock.
    let journal = DiskJournal::open_noting(folder, owner, lost, &mut notes)?;
    let blobs = DiskBlobs::open_noting(folder, cache, &mut notes)?;
    Ok(Opened {
        journal,
        blobs,
        notes,
    })
}
