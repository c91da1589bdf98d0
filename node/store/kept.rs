//! Small files beside the journal: the agreement, and what the node notes about its models.
//!
//! A file is replaced in one piece, so that a reader sees the old one or the new one.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use protocol::Hash;
use task::file;

use super::error::{StoreOpenError, io_error};
use super::{folder, parts};

/// Writes a file of that name in a state folder, unless it has these bytes already.
///
/// # Errors
/// [`StoreOpenError`]: an error of the system.
pub fn keep_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), StoreOpenError> {
    let (path, new) = (folder.join(name), folder.join(format!("{name}.new")));
    let error = |error| io_error(&path, error);
    if parts::bytes_of(&path).is_ok_and(|kept| kept == bytes) {
        return folder::narrow(&path).map(drop);
    }
    // A crash may have left a temporary file.
    let _ = fs::remove_file(&new);
    let mut out = folder::create(&new).map_err(error)?;
    out.write_all(bytes).map_err(error)?;
    out.sync_all().map_err(error)?;
    fs::rename(&new, &path).map_err(error)?;
    folder::sync(folder).map_err(error)
}

/// Reads such a file; `None` where there is none.
///
/// # Errors
/// [`StoreOpenError`]: an error of the system.
pub fn kept_file(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, StoreOpenError> {
    let path = folder.join(name);
    match file::read(&path, file::MODEL) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(&path, error)),
    }
}

/// A blob in a state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredBlob {
    /// The bytes of the blob have its hash.
    Good(Bytes),
    /// The bytes of the blob have this other hash.
    Damaged(Hash),
    /// The blob is not here, or cannot be read.
    Missing,
}

/// The file of a blob in a state folder.
pub fn blob_path(folder: &Path, hash: &Hash) -> PathBuf {
    folder.join(super::blobs::BLOBS).join(format!("{hash:#}"))
}

/// Reads a blob from a state folder without changing anything, also while the node runs.
pub fn found(folder: &Path, hash: &Hash) -> StoredBlob {
    let Ok(bytes) = parts::bytes_of(&blob_path(folder, hash)) else {
        return StoredBlob::Missing;
    };
    match Hash::of(&bytes) {
        same if same == *hash => StoredBlob::Good(bytes),
        other => StoredBlob::Damaged(other),
    }
}

/// As [`found`]; `None` where the blob is missing or damaged.
pub fn blob(folder: &Path, hash: &Hash) -> Option<Bytes> {
    match found(folder, hash) {
        StoredBlob::Good(bytes) => Some(bytes),
        StoredBlob::Damaged(_) | StoredBlob::Missing => None,
    }
}

/// Returns when a blob in a state folder got its final name; `None` where it is not here.
pub fn blob_since(folder: &Path, hash: &Hash) -> Option<SystemTime> {
    fs::metadata(blob_path(folder, hash)).ok()?.modified().ok()
}

/// Removes the permissions of other users on a file.
///
/// # Errors
/// An error of the system.
pub fn close_file(path: &Path) -> std::io::Result<()> {
    folder::narrow(path)
        .map(|_| ())
        .map_err(|error| std::io::Error::other(error.to_string()))
}

/// Makes a state folder for its owner alone, if it is not there.
///
/// # Errors
/// [`StoreOpenError`]: an error of the system.
pub fn make_folder(folder: &Path) -> Result<(), StoreOpenError> {
    folder::make(folder, &mut super::Notes::new())
}

/// A folder of that name in a state folder. Both are made if they are not there, and both are for their
/// owner alone.
///
/// # Errors
/// [`StoreOpenError`]: an error of the system.
pub fn subfolder(folder: &Path, name: &str) -> Result<PathBuf, StoreOpenError> {
    folder::make(folder, &mut super::Notes::new())?;
    let path = folder.join(name);
    folder::make(&path, &mut super::Notes::new())?;
    Ok(path)
}
