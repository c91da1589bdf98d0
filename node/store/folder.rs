//! The folder, and that only one process uses it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use super::error::{OpenError, io_error};

/// Makes `folder` where it is not there yet, and sees to it that it stays.
pub(super) fn make(folder: &Path) -> Result<(), OpenError> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| io_error(folder, error))?;
    let parent = folder.parent().filter(|parent| *parent != Path::new(""));
    sync(parent.unwrap_or(Path::new("."))).map_err(|error| io_error(folder, error))
}

/// The lock of a folder, until it is dropped. It ends with the process, however that ends.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file would not do: a process that is being started may still share it.
        let _ = self.0.unlock();
    }
}

/// Takes the lock of `folder`.
pub(super) fn lock(folder: &Path) -> Result<Lock, OpenError> {
    let path = folder.join("lock");
    let file = File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| io_error(&path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(io_error(&path, error)),
    }
}

/// Makes the names in `folder` durable: files that were created, renamed or removed.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()?;
    #[cfg(test)]
    noted::folder(folder);
    Ok(())
}

/// Makes the bytes of a file durable. `path` is the name that it has.
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

/// What was made durable, in order, for tests: whether the disk has it cannot be seen from here.
#[cfg(test)]
pub(super) mod noted {
    use std::cell::{Cell, RefCell};
    use std::path::Path;
    use std::{fs, io};

    /// One sync, and what there was at that moment.
    #[derive(Debug, PartialEq)]
    pub(in crate::store) enum Synced {
        /// The bytes in a file, and whether it still had the name of one that is being written.
        File(u64, bool),
        /// The names in a folder, ascending.
        Folder(Vec<String>),
    }

    thread_local! {
        pub(in crate::store) static SYNCED: RefCell<Vec<Synced>> = const { RefCell::new(Vec::new()) };
        /// Files cannot be made durable.
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
