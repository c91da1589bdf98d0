//! What can be wrong with a folder, in a sentence each.

use std::io;
use std::path::{Path, PathBuf};

use protocol::{Hash, MemberIndex, PublicKey};
use silo::StoreError;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error(
        "{} is in use by another running process: stop that one first (two processes must never \
         run with one institution's key), or give each silo a folder of its own", .0.display()
    )]
    Locked(PathBuf),
    /// It belongs to another federation.
    #[error(
        "{} is the journal of federation {found}, and this silo belongs to {ours}: use another \
         folder for this federation", path.display()
    )]
    Federation {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: Hash,
        /// Who asks.
        ours: Hash,
    },
    /// It belongs to another member of this federation.
    #[error(
        "{} is the journal of member {found}, and this silo is member {ours}: use the folder of \
         this silo", path.display()
    )]
    Member {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        found: MemberIndex,
        /// Who asks.
        ours: MemberIndex,
    },
    /// It was written by the same member under another key.
    #[error(
        "{} was written with the key {found}, and the identity file holds {ours}: use the identity \
         that the journal was begun with", path.display()
    )]
    Key {
        /// The file.
        path: PathBuf,
        /// The key that it was written with.
        found: PublicKey,
        /// The key in use.
        ours: PublicKey,
    },
    /// A later version of the program wrote it.
    #[error(
        "{}: journal format {found}, this program reads format {ours}: use the program that wrote \
         it, or a newer one", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest that is understood.
        ours: u32,
    },
    /// It is no longer what was written.
    #[error(
        "{} is damaged ({why}): start once with --journal-lost, which keeps it under another name, \
         begins a new journal and listens until it is safe to vote again", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Others can read it, and that cannot be changed.
    #[error(
        "{} is open to others on this machine and cannot be closed to them: change its owner or \
         its rights (`chmod go-rwx`), or use a folder on a disk that has rights", .0.display()
    )]
    Exposed(PathBuf),
    /// The disk is full.
    #[error("the disk is full, {} cannot be written: make room and start again", .0.display())]
    Full(PathBuf),
    /// The system says no.
    #[error("{} cannot be read or written ({reason}): check the path, its permissions and the disk",
        path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        Self {
            what: "the store".into(),
            why: error.to_string(),
        }
    }
}

/// What the system says of `path`.
pub(super) fn io_error(path: &Path, reason: io::Error) -> OpenError {
    let path = path.to_owned();
    match reason.kind() {
        // Too large is what a limit on the size of files says.
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            OpenError::Full(path)
        }
        _ => OpenError::Io { path, reason },
    }
}

/// The file at `path` is not what was written.
pub(super) fn damaged(path: &Path, why: impl ToString) -> OpenError {
    OpenError::Damaged {
        path: path.to_owned(),
        why: why.to_string(),
    }
}

/// What redb says of `path`.
pub(super) fn at<E: Into<redb::Error>>(path: &Path) -> impl FnOnce(E) -> OpenError + '_ {
    move |error| match error.into() {
        redb::Error::DatabaseAlreadyOpen => OpenError::Locked(path.to_owned()),
        redb::Error::Corrupted(why) => damaged(path, why),
        redb::Error::Io(reason) => match reason.kind() {
            io::ErrorKind::InvalidData => damaged(path, "it is no redb file"),
            io::ErrorKind::UnexpectedEof => damaged(path, "it ends too early"),
            _ => io_error(path, reason),
        },
        redb::Error::PreviousIo => io_error(path, io::Error::other("writing to it failed before")),
        other => damaged(path, other),
    }
}
