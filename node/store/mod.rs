//! What a silo keeps on disk: its journal and its blobs, in one folder.
//!
//! ```text
//! FOLDER/lock           held by the one process that uses the folder
//! FOLDER/journal.redb   what must never be forgotten: votes, nonces, certificates, adoptions
//! FOLDER/blobs/         models and outcomes, each in a file named by its hash
//! ```
//!
//! Both keep the promises of [`silo::Journal`] and [`silo::Blobs`]: what was handed over is durable
//! when the call returns, and what is read is what was written, or refused.

mod blobs;
mod cache;
mod error;
mod folder;
mod frame;
mod journal;

use std::path::Path;

pub use blobs::DiskBlobs;
pub use error::OpenError;
pub use frame::Owner;
pub use journal::DiskJournal;

/// Opens what is kept in `folder`, or begins it: the folder, an empty journal, no blobs. `cache` is
/// the number of bytes of blobs that stay in memory.
///
/// # Errors
/// [`OpenError`].
pub fn open(
    folder: &Path,
    owner: &Owner,
    cache: usize,
) -> Result<(DiskJournal, DiskBlobs), OpenError> {
    // The journal first: it holds the lock.
    let journal = DiskJournal::open(folder, owner)?;
    let blobs = DiskBlobs::open(folder, cache)?;
    Ok((journal, blobs))
}
