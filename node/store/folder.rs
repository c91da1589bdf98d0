//! The silo's folder: a lock for one process, and permissions for its owner alone.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::error::{StoreOpenError, damaged, io_error};
use super::{Note, Notes};

/// Permissions of a folder: for its owner alone.
#[cfg(unix)]
const FOLDER: u32 = 0o700;
/// Permissions of a file: for its owner alone.
#[cfg(unix)]
const FILE: u32 = 0o600;

/// Creates `folder` durably if it does not exist. If other users may read or enter it, their
/// permissions are removed, and a note reports it.
pub(super) fn make(folder: &Path, notes: &mut Notes) -> Result<(), StoreOpenError> {
    if folder.is_dir() {
        return close(folder, notes);
    }
    let parent = folder.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    let made = fs::create_dir_all(parent).and_then(|()| {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, FOLDER);
        builder.create(folder)
    });
    made.and_then(|()| sync(parent))
        .map_err(|error| io_error(folder, error))
}

/// Removes the permissions of other users on a file or folder, and notes if there were any.
///
/// Permissions that are too wide are narrowed instead of refused, so that nobody else can read the
/// file from now on; the note informs the owner that somebody may have read it. It is refused if they
/// cannot be narrowed.
pub(super) fn close(path: &Path, notes: &mut Notes) -> Result<(), StoreOpenError> {
    if narrow(path)? {
        notes.push(Note::Closed(path.to_owned()));
    }
    Ok(())
}

/// Removes the permissions of other users. True if there were any.
#[cfg(unix)]
pub(super) fn narrow(path: &Path) -> Result<bool, StoreOpenError> {
    use std::os::unix::fs::PermissionsExt;
    let rights = || {
        let found = fs::metadata(path).map_err(|error| io_error(path, error))?;
        Ok((found.permissions().mode(), found.is_dir()))
    };
    let (before, folder) = rights()?;
    if before & 0o077 == 0 {
        return Ok(false);
    }
    let mode = if folder { FOLDER } else { FILE };
    let narrowed = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    match (narrowed, rights()?) {
        (Ok(()), (after, _)) if after & 0o077 == 0 => Ok(true),
        _ => Err(StoreOpenError::Exposed(path.to_owned())),
    }
}

/// Removes the permissions of other users on all that is in a folder. The folder itself is closed, so
/// nobody could reach them; they would be open where somebody copies the folder elsewhere. What cannot be
/// narrowed, such as the file of another user, stays as it is.
pub(super) fn close_within(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // A link may lead anywhere.
        let found = entry.file_type().ok().filter(|found| !found.is_symlink());
        let Some(found) = found else { continue };
        let _ = narrow(&path);
        if found.is_dir() {
            close_within(&path);
        }
    }
}

/// On other systems files inherit the permissions of their folder.
#[cfg(not(unix))]
pub(super) fn narrow(_: &Path) -> Result<bool, StoreOpenError> {
    Ok(false)
}

/// Creates a file, which must not exist, for its owner alone.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    owned(&mut options).open(path)
}

fn owned(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, FILE);
    options
}

/// Refuses a path that exists and is not a regular file: opening a pipe would wait for ever.
pub(super) fn regular(path: &Path) -> Result<(), StoreOpenError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(damaged(path, "it is not a regular file")),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error(path, error)),
        _ => Ok(()),
    }
}

/// Renames a file or folder within its folder, with `what` as a part of the new name, and returns
/// the new path. Never overwrites a file.
pub(super) fn set_aside(path: &Path, what: &str) -> Result<PathBuf, StoreOpenError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new("."));
    let names = (1u64..).map(|nth| folder.join(format!("{name}.{what}-{nth}")));
    let free = |to: &PathBuf| fs::symlink_metadata(to).is_err();
    let mut free = names.filter(free);
    let to = free.next().expect("some number is not taken");
    fs::rename(path, &to)
        .and_then(|()| sync(folder))
        .map_err(|error| io_error(path, error))?;
    Ok(to)
}

/// The lock of a folder. It is released when it is dropped or when the process ends in any way.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started may still share it.
        let _ = self.0.unlock();
    }
}

/// Takes the lock of `folder`.
pub(super) fn lock(folder: &Path, notes: &mut Notes) -> Result<Lock, StoreOpenError> {
    let path = folder.join("lock");
    regular(&path)?;
    let mut options = File::options();
    options.create(true).write(true).truncate(false);
    let file = owned(&mut options)
        .open(&path)
        .map_err(|error| io_error(&path, error))?;
    close(&path, notes)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(StoreOpenError::Locked(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(io_error(&path, error)),
    }
}

/// Makes the creation, renaming and removal of files in `folder` durable.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()?;
    #[cfg(test)]
    noted::folder(folder);
    Ok(())
}

/// Makes the bytes of a file durable. `path` is its current name.
pub(super) fn sync_file(path: &Path, file: &File) -> io::Result<()> {
    #[cfg(test)]
    noted::fail()?;
    file.sync_all()?;
    #[cfg(test)]
    noted::file(path);
    #[cfg(not(test))]
    let _ = path;
    Ok(())
}

/// The syncs in order, for tests, which cannot see whether the disk has the bytes.
#[cfg(test)]
pub(super) mod noted {
    use std::cell::{Cell, RefCell};
    use std::path::Path;
    use std::{fs, io};

    /// One sync, and the state of the file or folder at that moment.
    #[derive(Debug, PartialEq)]
    pub(in crate::store) enum Synced {
        /// The number of bytes in a file, and whether it still had its temporary name.
        File(u64, bool),
        /// The names in a folder, ascending.
        Folder(Vec<String>),
    }

    thread_local! {
        pub(in crate::store) static SYNCED: RefCell<Vec<Synced>> = const { RefCell::new(Vec::new()) };
        /// If set, syncing a file fails.
        pub(in crate::store) static FAILS: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn fail() -> io::Result<()> {
        let full = io::ErrorKind::StorageFull.into();
        if FAILS.get() { Err(full) } else { Ok(()) }
    }

    pub(super) fn file(path: &Path) {
        let bytes = fs::metadata(path).map_or(0, |found| found.len());
        let part = path.extension().is_some_and(|end| end == "part") && path.exists();
        SYNCED.with_borrow_mut(|synced| synced.push(Synced::File(bytes, part)));
    }

    pub(super) fn folder(folder: &Path) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        SYNCED.with_borrow_mut(|synced| synced.push(Synced::Folder(names)));
    }
}
