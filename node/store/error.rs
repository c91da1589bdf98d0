//! Errors of opening a silo's folder.

use std::io;
use std::path::{Path, PathBuf};

use protocol::{Hash, MemberIndex, PublicKey};
use silo::StoreError;

/// Reason for which a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    /// Another process uses the folder.
    #[error(
        "{} is in use by another running process: stop that one first (two processes must never \
         run with one institution's key), or give each silo a folder of its own", .0.display()
    )]
    Locked(PathBuf),
    /// The journal belongs to another federation.
    #[error(
        "{} is the journal of federation {found}, but this silo belongs to federation {ours}: use \
         another folder for this federation", path.display()
    )]
    Federation {
        /// The file.
        path: PathBuf,
        /// The federation of the journal.
        found: Hash,
        /// The federation of this silo.
        ours: Hash,
    },
    /// The journal belongs to another member of this federation.
    #[error(
        "{} is the journal of member {found}, but this silo is member {ours}: use the folder of \
         this silo", path.display()
    )]
    Member {
        /// The file.
        path: PathBuf,
        /// The member of the journal.
        found: MemberIndex,
        /// This silo's member.
        ours: MemberIndex,
    },
    /// The journal of this member was written with another key.
    #[error(
        "{} was written with the key {found}, but the identity file holds {ours}: use the identity \
         with which the journal was started", path.display()
    )]
    Key {
        /// The file.
        path: PathBuf,
        /// The key that it was written with.
        found: PublicKey,
        /// The key in use.
        ours: PublicKey,
    },
    /// A newer version of the program wrote it.
    #[error(
        "{}: journal format {found}, this program reads format {ours}: use the program that wrote \
         it, or a newer one", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Format of the journal.
        found: u32,
        /// The newest format that this program reads.
        ours: u32,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged ({why}): start once with --journal-lost, which keeps it under another name, \
         starts a new journal and only listens until it is safe to vote again", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Fault of the file.
        why: String,
    },
    /// Other users can read it, and its permissions cannot be changed.
    #[error(
        "{} can be read by other users of this machine, and its permissions cannot be changed: \
         change its owner or its permissions (`chmod go-rwx`), or use a file system with permissions", .0.display()
    )]
    Exposed(PathBuf),
    /// The disk is full.
    #[error("the disk is full, {} cannot be written: make room and start again", .0.display())]
    Full(PathBuf),
    /// Another error of the system.
    #[error("{} cannot be read or written ({reason}): check the path, its permissions and the disk",
        path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
}

impl From<StoreOpenError> for StoreError {
    fn from(error: StoreOpenError) -> Self {
        Self {
            what: "the store".into(),
            why: error.to_string(),
        }
    }
}

/// An error of the system about `path`.
pub(super) fn io_error(path: &Path, reason: io::Error) -> StoreOpenError {
    let path = path.to_owned();
    match reason.kind() {
        // A limit on the size of files (`ulimit -f`) gives this error.
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            StoreOpenError::Full(path)
        }
        _ => StoreOpenError::Io { path, reason },
    }
}

/// The error that the file at `path` is damaged.
pub(super) fn damaged(path: &Path, why: impl ToString) -> StoreOpenError {
    StoreOpenError::Damaged {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

/// An error of redb about `path`.
pub(super) fn at<E: Into<redb::Error>>(path: &Path) -> impl FnOnce(E) -> StoreOpenError + '_ {
    move |error| match error.into() {
        redb::Error::DatabaseAlreadyOpen => StoreOpenError::Locked(path.to_owned()),
        redb::Error::Corrupted(why) => damaged(path, why),
        redb::Error::Io(reason) => match reason.kind() {
            io::ErrorKind::InvalidData => damaged(path, "it is not a redb file"),
            io::ErrorKind::UnexpectedEof => damaged(path, "it ends too early"),
            _ => io_error(path, reason),
        },
        redb::Error::PreviousIo => io_error(path, io::Error::other("writing to it failed before")),
        other => damaged(path, other),
    }
}
