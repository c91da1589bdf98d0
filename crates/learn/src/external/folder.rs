//! The folder of exchanged files: its owner's alone, and gone when nobody uses it any more.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tempfile::TempDir;

/// Beginning of the names of these folders.
const PREFIX: &str = "rota-learner-";
/// The file that is locked as long as a process uses the folder.
const LOCK: &str = "lock";

/// A folder for files that a silo and its program exchange.
pub(super) struct ExchangeFolder {
    folder: TempDir,
    files: AtomicU64,
    /// Locked until the folder is dropped, or the process ends.
    _lock: File,
}

impl ExchangeFolder {
    /// A new folder in the system's one for temporary files. Removes those of processes that were
    /// killed and could not remove theirs.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn new() -> io::Result<Self> {
        Self::inside(&std::env::temp_dir())
    }

    fn inside(parent: &Path) -> io::Result<Self> {
        remove_leftovers(parent);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Models of hospitals are for nobody else on the machine.
            builder.permissions(fs::Permissions::from_mode(0o700));
        }
        let folder = builder.tempdir_in(parent)?;
        // Locked before it has its name, so that nobody takes the folder for a leftover.
        let unnamed = folder.path().join("unlocked");
        let lock = File::create_new(&unnamed)?;
        // Where the file system has no locks, nobody takes it for a leftover either.
        let _ = lock.try_lock();
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(Self {
            folder,
            files: AtomicU64::new(0),
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Removes it with all that is in it, while others still know it.
    pub(super) fn remove(&self) {
        // It fails where it is removed already.
        drop(fs::remove_dir_all(self.path()));
    }

    /// A name in the folder that nothing has yet.
    pub(super) fn file(&self, what: &str) -> Exchanged {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let name = format!("{what}-{number}.safetensors");
        Exchanged {
            path: self.path().join(name),
            written: OnceLock::new(),
        }
    }
}

/// A file of the folder, which goes away when it is not needed any more.
pub(super) struct Exchanged {
    pub(super) path: PathBuf,
    /// Length and time of the file when this process had written it.
    written: OnceLock<(u64, SystemTime)>,
}

impl Exchanged {
    /// Writes the file, once.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        fs::write(&self.path, bytes)?;
        self.written
            .get_or_init(|| self.state().unwrap_or((0, SystemTime::UNIX_EPOCH)));
        Ok(())
    }

    /// Returns whether nobody has changed, moved or removed the file since.
    pub(super) fn is_as_written(&self) -> bool {
        let now = self.state();
        now.is_ok_and(|now| self.written.get() == Some(&now))
    }

    fn state(&self) -> io::Result<(u64, SystemTime)> {
        let found = fs::metadata(&self.path)?;
        Ok((found.len(), found.modified()?))
    }
}

impl Drop for Exchanged {
    fn drop(&mut self) {
        // A program that failed may not have written it.
        drop(fs::remove_file(&self.path));
    }
}

/// Removes the folders whose lock nobody holds. What cannot be read or removed is another user's, or
/// was removed by somebody else meanwhile.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_ours
            // Opening a pipe, which anybody may have made, would wait for a writer.
            && fs::symlink_metadata(entry.path().join(LOCK)).is_ok_and(|lock| lock.is_file())
            && let Ok(lock) = File::open(entry.path().join(LOCK))
            && lock.try_lock().is_ok()
        {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_of_killed_processes_are_removed_but_none_in_use() {
        let parent = tempfile::tempdir().unwrap();
        let left = ExchangeFolder::inside(parent.path()).unwrap();
        let (left_path, file) = (left.path().to_owned(), left.file("model"));
        fs::write(&file.path, "weights").unwrap();
        let used = ExchangeFolder::inside(parent.path()).unwrap();
        assert!(file.path.exists(), "in use");
        // As after SIGKILL: the lock is gone, the folder is not.
        let ExchangeFolder { folder, _lock, .. } = left;
        let _ = folder.keep();
        drop(_lock);
        std::mem::forget(file);
        let pipe = parent.path().join("rota-learner-pipe");
        fs::create_dir(&pipe).unwrap();
        #[cfg(unix)]
        {
            let made = std::process::Command::new("mkfifo")
                .arg(pipe.join(LOCK))
                .status();
            assert!(made.unwrap().success());
        }
        // Not of this program, whatever it is called.
        let other = parent.path().join("rota-learner-notes");
        fs::create_dir(&other).unwrap();
        let new = ExchangeFolder::inside(parent.path()).unwrap();
        assert!(!left_path.exists());
        assert!(used.path().exists() && new.path().exists() && other.exists());
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_look_into_it() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = ExchangeFolder::inside(parent.path()).unwrap();
        let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn names_are_new_and_files_go_away() {
        let parent = tempfile::tempdir().unwrap();
        let folder = ExchangeFolder::inside(parent.path()).unwrap();
        let (one, two) = (folder.file("model"), folder.file("model"));
        assert_ne!(one.path, two.path);
        fs::write(&one.path, "weights").unwrap();
        let path = one.path.clone();
        drop(one);
        assert!(!path.exists());
    }
}
