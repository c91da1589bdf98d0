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
    File::open(folder)?.sync_all()
}
