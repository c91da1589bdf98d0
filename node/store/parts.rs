//! Files of blobs that have no final name yet.
//!
//! Large blobs are never held in memory: a model that was computed is *laid down* in a file and read
//! from there, and one that other members send is written to a file while it arrives. Both are read
//! by mapping the file into memory, so that the system reads pages when they are needed and takes
//! them back when memory is scarce. When such a blob is put, its file gets its final name and no byte
//! is copied. What is not put is removed with its last reader.
//!
//! A mapped file must not become shorter while it is read, or the process dies. Nobody but the owner
//! can change a file of the folder, and this program changes none that has a final name.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mesh::{Place, Spool};
use mmap_guard::FileData;
use task::file;

use super::folder;

/// Suffix of the name of such a file.
pub(super) const PART: &str = ".part";

/// Size in bytes from which [`bytes_of`] maps a file.
const MAPPED: u64 = 16 << 20;

/// The files of one folder that have no final name.
#[derive(Debug)]
pub(super) struct PartFiles {
    folder: PathBuf,
    /// Number of the next name.
    next: AtomicU64,
    /// Blobs of at least this many bytes are large.
    large: u64,
    /// Files that are mapped, by the address of their bytes; with their path if they have no final name
    /// yet.
    mapped: Mutex<BTreeMap<Address, Option<PathBuf>>>,
}

/// Address and length.
type Address = (usize, usize);

fn address(bytes: &[u8]) -> Address {
    (bytes.as_ptr() as usize, bytes.len())
}

impl PartFiles {
    /// Blobs of at least `large` bytes are large.
    pub(super) fn new(folder: PathBuf, large: u64) -> Arc<Self> {
        Arc::new(Self {
            folder,
            next: AtomicU64::new(0),
            large,
            mapped: Mutex::default(),
        })
    }

    /// Returns whether a blob of this length is mapped rather than read. Only on Unix: elsewhere a file that is
    /// mapped cannot be removed.
    pub(super) fn is_large(&self, length: u64) -> bool {
        cfg!(unix) && length >= self.large.max(1)
    }

    /// Creates a file.
    pub(super) fn create(&self) -> io::Result<(PathBuf, File)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{number}{PART}"));
        let file = folder::create(&path)?;
        Ok((path, file))
    }

    /// Writes a blob to a file and maps it, unless it is mapped already.
    pub(super) fn lay(self: &Arc<Self>, blob: &Bytes) -> io::Result<Bytes> {
        if self.mapped().contains_key(&address(blob)) {
            return Ok(blob.clone());
        }
        let (path, mut file) = self.create()?;
        let laid = file
            .write_all(blob)
            .and_then(|()| self.map_part(&path, &file));
        if laid.is_err() {
            discard(&path);
        }
        laid
    }

    /// Makes the bytes of a complete file durable, and maps them.
    fn map_part(self: &Arc<Self>, path: &Path, file: &File) -> io::Result<Bytes> {
        folder::sync_file(path, file)?;
        self.map(path, Some(path.to_owned()))
    }

    /// Maps a file that has its final name.
    pub(super) fn map_named(self: &Arc<Self>, path: &Path) -> io::Result<Bytes> {
        self.map(path, None)
    }

    fn map(self: &Arc<Self>, path: &Path, unnamed: Option<PathBuf>) -> io::Result<Bytes> {
        let map = mmap_guard::map_file(path)?;
        self.mapped().insert(address(&map), unnamed);
        let parts = self.clone();
        Ok(Bytes::from_owner(Mapped { map, parts }))
    }

    /// The path of the durable file that these bytes are read from, if it has no final name yet. The
    /// caller gives it one, or removes it.
    pub(super) fn take(&self, blob: &Bytes) -> Option<PathBuf> {
        self.mapped().get_mut(&address(blob))?.take()
    }

    fn mapped(&self) -> MutexGuard<'_, BTreeMap<Address, Option<PathBuf>>> {
        // No code panics while it holds this lock.
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A mapped file. It is removed with the last clone of its bytes unless it was taken.
struct Mapped {
    map: FileData,
    parts: Arc<PartFiles>,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // No other bytes have this address as long as they are mapped, which they are until this ends.
        let unnamed = self.parts.mapped().remove(&address(&self.map)).flatten();
        unnamed.iter().for_each(|path| discard(path));
    }
}

/// The bytes of a file of a store that another process may use: read if they are few, mapped if they
/// are many.
pub(super) fn bytes_of(path: &Path) -> io::Result<Bytes> {
    let length = fs::metadata(path)?.len();
    if cfg!(unix) && length >= MAPPED {
        return mmap_guard::map_file(path).map(Bytes::from_owner);
    }
    file::read(path, file::MODEL).map(Bytes::from)
}

/// Gives blobs that are being fetched a file each.
#[derive(Debug)]
pub(super) struct Arriving(pub(super) Arc<PartFiles>);

impl Spool for Arriving {
    fn place(&self, length: u64) -> io::Result<Option<Arc<dyn Place>>> {
        if !self.0.is_large(length) {
            return Ok(None);
        }
        let (path, file) = self.0.create()?;
        Ok(Some(Arc::new(Arrives {
            parts: self.0.clone(),
            path,
            file,
            finished: AtomicBool::new(false),
        })))
    }
}

/// The file of a blob that is being fetched.
#[derive(Debug)]
struct Arrives {
    parts: Arc<PartFiles>,
    path: PathBuf,
    file: File,
    finished: AtomicBool,
}

impl Place for Arrives {
    #[cfg(unix)]
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, at)
    }

    #[cfg(not(unix))]
    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        // No blob is large there.
        Err(io::ErrorKind::Unsupported.into())
    }

    fn finish(&self) -> io::Result<Bytes> {
        let mapped = self.parts.map_part(&self.path, &self.file)?;
        self.finished.store(true, Ordering::Relaxed);
        Ok(mapped)
    }
}

impl Drop for Arrives {
    fn drop(&mut self) {
        if !*self.finished.get_mut() {
            discard(&self.path);
        }
    }
}

/// Removes a file that is not needed. If that fails, the next opening removes it.
pub(super) fn discard(path: &Path) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(file = %path.display(), %error, "a file that is no longer needed cannot be removed");
        }
        _ => {}
    }
}
