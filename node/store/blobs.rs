//! A silo's blobs as files, each named by its hash.
//!
//! A file appears under its final name only when all of its bytes are durable: it is written under a
//! temporary name, synced and renamed, and then the folder is synced. A file from an earlier process
//! is hashed when it is first read. If the hash is not its name, the file is removed, and the silo
//! fetches the blob again.
//!
//! Blobs that are too large for the cache are mapped into memory instead of being read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use protocol::Hash;
use silo::{Blobs, StoreError};

use super::cache::BlobCache;
use super::error::{StoreOpenError, io_error};
use super::parts::{Arriving, PART, PartFiles, discard};
use super::{Note, Notes, folder};

/// Name of the folder of blobs in the silo's folder.
pub(super) const BLOBS: &str = "blobs";
/// Number of files that are written before they are synced one after the other. The first sync then
/// does most of the work for all of them.
const BATCH: usize = 64;

/// Blobs on disk, shared by threads.
pub struct DiskBlobs {
    folder: PathBuf,
    content: Mutex<StoreContent>,
    parts: Arc<PartFiles>,
}

struct StoreContent {
    files: BTreeMap<Hash, OnDisk>,
    cache: BlobCache,
    /// Counts the batches that were put.
    puts: u64,
}

/// A file that is there.
#[derive(Clone, Copy, PartialEq)]
struct OnDisk {
    known: FileCheck,
    /// The number of `puts` when it was put last; 0 if an earlier process put it.
    put: u64,
}

/// State of the verification of a file.
#[derive(Clone, Copy, PartialEq)]
enum FileCheck {
    /// An earlier process wrote it; not verified yet.
    Found,
    /// This process wrote it, or has read and verified it.
    Good,
}

impl DiskBlobs {
    /// Opens the blobs in a silo's `folder` and removes files that a crash left incomplete. At most
    /// `cache` bytes of blobs stay in memory; blobs of more than a quarter of that never do. The
    /// caller holds the folder's lock.
    ///
    /// # Errors
    /// [`StoreOpenError`]: an error of the system.
    pub fn open(folder: &Path, cache: usize) -> Result<Self, StoreOpenError> {
        Self::open_noting(folder, cache, &mut Notes::new())
    }

    /// As [`open`](Self::open), with notes for the operator.
    pub(super) fn open_noting(
        folder: &Path,
        cache: usize,
        notes: &mut Notes,
    ) -> Result<Self, StoreOpenError> {
        let folder = folder.join(BLOBS);
        folder::make(&folder, notes)?;
        let error = |error| io_error(&folder, error);
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(&folder).map_err(error)? {
            let entry = entry.map_err(error)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let path = entry.path();
            let regular = fs::metadata(&path).is_ok_and(|found| found.is_file());
            match parse(name) {
                _ if name.ends_with(PART) && regular => {
                    fs::remove_file(&path).map_err(|error| io_error(&path, error))?;
                }
                // It cannot be read, and no blob could be written under this name.
                Some(_) if !regular => {
                    let to = folder::set_aside(&path, "unreadable")?;
                    let (from, why) = (path, "it is not a regular file".into());
                    notes.push(Note::SetAside { from, to, why });
                }
                Some(hash) => {
                    // The note about the folder covers its files.
                    folder::narrow(&path)?;
                    let known = FileCheck::Found;
                    files.insert(hash, OnDisk { known, put: 0 });
                }
                None => {}
            }
        }
        let cache = BlobCache::new(cache);
        let parts = PartFiles::new(folder.clone(), cache.largest() as u64 + 1);
        Ok(Self {
            folder,
            content: Mutex::new(StoreContent {
                files,
                cache,
                puts: 0,
            }),
            parts,
        })
    }

    /// Returns where large blobs wait while the network fetches them. What it makes is put without copying.
    pub fn spool(&self) -> Arc<dyn mesh::Spool> {
        Arc::new(Arriving(self.parts.clone()))
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        self.folder.join(format!("{hash:#}"))
    }

    fn content(&self) -> MutexGuard<'_, StoreContent> {
        // No code panics while it holds this lock.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a file. `None` if it does not exist or its hash is not its name.
    fn read(&self, hash: &Hash, known: FileCheck) -> io::Result<Option<Bytes>> {
        let path = self.path(hash);
        let mut file = File::open(&path)?;
        let length = file.metadata()?.len();
        if self.parts.is_large(length) {
            // Read once from the disk, so that a sector that cannot be read is an error here.
            let good = known == FileCheck::Good || hash_of(file)? == *hash;
            return good.then(|| self.parts.map_named(&path)).transpose();
        }
        let mut bytes = Vec::with_capacity(length as usize);
        file.read_to_end(&mut bytes)?;
        let good = known == FileCheck::Good || Hash::of(&bytes) == *hash;
        Ok(good.then(|| bytes.into()))
    }

    /// Writes a blob under a temporary name. It is not durable yet, unless it was laid down before:
    /// then its file is closed.
    fn write(&self, blob: &Bytes) -> Result<(PathBuf, Option<File>), StoreOpenError> {
        if let Some(path) = self.parts.take(blob) {
            return Ok((path, None));
        }
        let created = self.parts.create();
        let (path, mut file) = created.map_err(|error| io_error(&self.folder, error))?;
        match file.write_all(blob) {
            Ok(()) => Ok((path, Some(file))),
            Err(error) => {
                discard(&path);
                Err(io_error(&path, error))
            }
        }
    }

    /// Makes blobs durable and gives them their final names.
    fn keep(&self, blobs: &[(Hash, Bytes)]) -> Result<(), StoreOpenError> {
        let mut parts = Unnamed(Vec::with_capacity(blobs.len()));
        for (_, blob) in blobs {
            parts.0.push(self.write(blob)?);
        }
        for (path, file) in &parts.0 {
            let synced = file.as_ref().map(|file| folder::sync_file(path, file));
            synced.transpose().map_err(|error| io_error(path, error))?;
        }
        // Under the lock, so that `retain` does not remove a name that was just given.
        let mut content = self.content();
        for ((path, _), (hash, _)) in parts.0.iter().zip(blobs) {
            let named = self.path(hash);
            fs::rename(path, &named).map_err(|error| io_error(&named, error))?;
            let (known, put) = (FileCheck::Found, content.puts);
            content.files.insert(*hash, OnDisk { known, put });
        }
        folder::sync(&self.folder).map_err(|error| io_error(&self.folder, error))?;
        for (hash, blob) in blobs {
            let (known, put) = (FileCheck::Good, content.puts);
            content.files.insert(*hash, OnDisk { known, put });
            content.cache.insert(*hash, blob.clone());
        }
        Ok(())
    }
}

impl DiskBlobs {
    /// Removes the blobs that are `gone`, by hash and the number of the batch that put them last.
    fn remove_all(&self, gone: impl Fn(&Hash, u64) -> bool) -> Result<(), StoreError> {
        let mut content = self.content();
        let StoreContent { files, cache, .. } = &mut *content;
        let mut failed = Ok(());
        files.retain(|hash, file| {
            if !gone(hash, file.put) {
                return true;
            }
            cache.remove(hash);
            let path = self.path(hash);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    failed = Err(io_error(&path, error));
                    true
                }
                _ => false,
            }
        });
        Ok(failed?)
    }
}

impl Blobs for DiskBlobs {
    fn get(&self, hash: &Hash) -> Option<Bytes> {
        let known = {
            let mut content = self.content();
            if let Some(blob) = content.cache.get(hash) {
                return Some(blob);
            }
            content.files.get(hash)?.known
        };
        // Without the lock, so that other threads can read and write meanwhile.
        let read = self.read(hash, known);
        let mut content = self.content();
        match read {
            Ok(Some(blob)) => {
                // Unless `retain` removed it meanwhile.
                if let Some(file) = content.files.get_mut(hash) {
                    file.known = FileCheck::Good;
                    content.cache.insert(*hash, blob.clone());
                }
                Some(blob)
            }
            Ok(None) => {
                let path = self.path(hash);
                tracing::warn!(file = %path.display(), "a damaged blob is removed and will be fetched again");
                // Another thread may have written an intact file meanwhile.
                let file = content.files.get(hash);
                if file.is_some_and(|file| file.known == FileCheck::Found) {
                    content.files.remove(hash);
                    discard(&path);
                }
                None
            }
            Err(error) => {
                // After the blob is fetched again, `put` writes it again.
                content.files.remove(hash);
                let path = self.path(hash);
                tracing::warn!(file = %path.display(), %error, "a blob cannot be read");
                None
            }
        }
    }

    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError> {
        self.put_all(vec![(hash, blob)])
    }

    fn put_all(&self, mut blobs: Vec<(Hash, Bytes)>) -> Result<(), StoreError> {
        {
            let mut content = self.content();
            content.puts += 1;
            let put = content.puts;
            let mut new = BTreeSet::new();
            blobs.retain(|(hash, _)| match content.files.get_mut(hash) {
                Some(file) if file.known == FileCheck::Good => {
                    file.put = put;
                    false
                }
                _ => new.insert(*hash),
            });
        }
        for blobs in blobs.chunks(BATCH) {
            self.keep(blobs)?;
        }
        Ok(())
    }

    fn to_file(&self, blob: Bytes) -> Bytes {
        if !self.parts.is_large(blob.len() as u64) {
            return blob;
        }
        self.parts.lay(&blob).unwrap_or_else(|error| {
            tracing::warn!(folder = %self.folder.display(), %error, "a large blob cannot be written, and stays in memory");
            blob
        })
    }

    fn mark(&self) -> u64 {
        self.content().puts
    }

    fn retain(&self, keep: &[Hash], mark: u64) -> Result<(), StoreError> {
        self.remove_all(|hash, put| put <= mark && keep.binary_search(hash).is_err())
    }

    fn remove(&self, blobs: &[Hash]) -> Result<(), StoreError> {
        self.remove_all(|hash, _| blobs.contains(hash))
    }
}

/// Returns whether there is a blob in the folder of a silo.
pub(super) fn any(folder: &Path) -> bool {
    let names = fs::read_dir(folder.join(BLOBS)).into_iter().flatten();
    let mut names = names.flatten().map(|entry| entry.file_name());
    names.any(|name| name.to_str().is_some_and(|name| parse(name).is_some()))
}

/// Files under temporary names. Those that are left when it is dropped are removed.
struct Unnamed(Vec<(PathBuf, Option<File>)>);

impl Drop for Unnamed {
    fn drop(&mut self) {
        // Renamed files do not exist under this name any more.
        self.0.iter().for_each(|(path, _)| discard(path));
    }
}

/// The hash of a file's bytes, read in blocks.
fn hash_of(file: File) -> io::Result<Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(Hash(*hasher.finalize().as_bytes()))
}

/// The hash in the name of a file.
fn parse(name: &str) -> Option<Hash> {
    let bytes = HEXLOWER.decode(name.as_bytes()).ok()?;
    bytes.try_into().ok().map(Hash)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::folder::noted::{FAILS, SYNCED, Synced};
    use super::*;

    fn blob(n: u8) -> (Hash, Bytes) {
        let bytes = Bytes::from(vec![n; 100 + usize::from(n)]);
        (Hash::of(&bytes), bytes)
    }

    fn names(blobs: impl IntoIterator<Item = u8>) -> Vec<String> {
        let mut names: Vec<_> = blobs
            .into_iter()
            .map(|n| format!("{:#}", blob(n).0))
            .collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_blob_is_renamed_once_durable_and_then_the_folder_is_synced() {
        let place = tempfile::tempdir().unwrap();
        let blobs = DiskBlobs::open(place.path(), 0).unwrap();
        SYNCED.take();
        blobs.put_all(vec![blob(1), blob(2)]).unwrap();
        let both = Synced::Folder(names([1, 2]));
        let expected = [Synced::File(101, true), Synced::File(102, true), both];
        assert_eq!(SYNCED.take(), expected);
        blobs.put(blob(3).0, blob(3).1).unwrap();
        let all = Synced::Folder(names([1, 2, 3]));
        assert_eq!(SYNCED.take(), [Synced::File(103, true), all]);
        // A blob that is durable already is not written again.
        blobs.put_all(vec![blob(1), blob(3)]).unwrap();
        assert_eq!(SYNCED.take(), []);
        // Many at once: every batch is durable before the call returns.
        let many: Vec<_> = (10..140).map(blob).collect();
        blobs.put_all(many).unwrap();
        let synced = SYNCED.take();
        let files = synced.iter().filter(|s| matches!(s, Synced::File(_, true)));
        assert_eq!((files.count(), synced.len()), (130, 133));
        let all = Synced::Folder(names([1, 2, 3].into_iter().chain(10..140)));
        assert_eq!(synced.last(), Some(&all));
    }

    #[test]
    fn a_blob_that_was_laid_down_is_put_without_being_written_again() {
        let place = tempfile::tempdir().unwrap();
        // Nothing fits into this cache, so every blob is large.
        let blobs = DiskBlobs::open(place.path(), 0).unwrap();
        let files = || fs::read_dir(place.path().join(BLOBS)).unwrap().count();
        SYNCED.take();
        let laid = blobs.to_file(blob(1).1);
        assert_eq!(SYNCED.take(), [Synced::File(101, true)]);
        assert_eq!((laid.clone(), blobs.get(&blob(1).0)), (blob(1).1, None));
        blobs.put(blob(1).0, laid.clone()).unwrap();
        assert_eq!(SYNCED.take(), [Synced::Folder(names([1]))]);
        drop(laid);
        assert_eq!((blobs.get(&blob(1).0), files()), (Some(blob(1).1), 1));
        // A blob that is not put is gone with its last reader; so is what is there already.
        let (again, other) = (blobs.to_file(blob(1).1), blobs.to_file(blob(2).1));
        assert_eq!(files(), 3);
        blobs.put(blob(1).0, again).unwrap();
        drop(other);
        assert_eq!(files(), 1);
        // A blob is read on while its file is removed.
        let kept = blobs.get(&blob(1).0).unwrap();
        blobs.retain(&[], blobs.mark()).unwrap();
        assert_eq!((kept, files()), (blob(1).1, 0));
    }

    #[test]
    fn blobs_that_are_removed_are_gone_at_once_and_all_others_stay() {
        let place = tempfile::tempdir().unwrap();
        let blobs = DiskBlobs::open(place.path(), 1 << 20).unwrap();
        blobs.put_all(vec![blob(1), blob(2), blob(3)]).unwrap();
        blobs.remove(&[blob(2).0, blob(9).0]).unwrap();
        let again = DiskBlobs::open(place.path(), 1 << 20).unwrap();
        for store in [blobs, again] {
            let here = [1, 2, 3].map(|n| store.get(&blob(n).0).is_some());
            assert_eq!(here, [true, false, true]);
        }
        assert_eq!(fs::read_dir(place.path().join(BLOBS)).unwrap().count(), 2);
    }

    #[test]
    fn a_fetched_blob_is_put_without_being_written_again() {
        let place = tempfile::tempdir().unwrap();
        let blobs = DiskBlobs::open(place.path(), 400).unwrap();
        let files = || fs::read_dir(place.path().join(BLOBS)).unwrap().count();
        let spool = blobs.spool();
        assert!(
            spool.place(100).unwrap().is_none(),
            "it fits into the cache"
        );
        let (hash, bytes) = blob(7);
        let arrives = spool.place(bytes.len() as u64).unwrap().unwrap();
        let unfinished = spool.place(1 << 40).unwrap().unwrap();
        arrives.write(60, &bytes[60..]).unwrap();
        arrives.write(0, &bytes[..60]).unwrap();
        let fetched = arrives.finish().unwrap();
        drop(arrives);
        assert_eq!((&fetched, files()), (&bytes, 2));
        SYNCED.take();
        blobs.put(hash, fetched).unwrap();
        drop(unfinished);
        assert_eq!((SYNCED.take().len(), files()), (1, 1));
        assert_eq!(blobs.get(&hash), Some(bytes));
    }

    #[test]
    fn a_blob_that_cannot_be_made_durable_does_not_exist() {
        let place = tempfile::tempdir().unwrap();
        let blobs = DiskBlobs::open(place.path(), 1 << 20).unwrap();
        FAILS.set(true);
        let refused = blobs.put_all(vec![blob(1), blob(2)]);
        FAILS.set(false);
        assert!(refused.is_err());
        assert_eq!((blobs.get(&blob(1).0), blobs.get(&blob(2).0)), (None, None));
        assert_eq!(fs::read_dir(place.path().join("blobs")).unwrap().count(), 0);
        blobs.put_all(vec![blob(1)]).unwrap();
        assert_eq!(blobs.get(&blob(1).0), Some(blob(1).1));
    }
}
