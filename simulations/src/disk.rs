//! A silo's disk in memory. It survives crashes of its silo and can be made to fail at a given
//! commit.
//!
//! It keeps the same promises of [`silo::Journal`] and [`silo::Blobs`] as the stores of a node, and
//! the tests of those promises run on both. Blobs with the same hash take memory once, on however
//! many disks of a simulation they lie.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use protocol::hash::Uniform;
use protocol::{Hash, MemberIndex};
use silo::{Adoptions, Blobs, Journal, JournalRecord, StoreError};

use crate::recorder::Recorder;
use bare::StepCut;

/// Journal and blobs of one silo. Clones share the disk.
#[derive(Clone)]
pub struct Disk {
    /// The owner and the recorder of its commits, in a simulation.
    recorder: Option<(MemberIndex, Recorder)>,
    shared: SharedBlobs,
    content: Arc<Mutex<DiskContent>>,
}

/// The blobs on all disks of a simulation.
#[derive(Clone, Default)]
pub(crate) struct SharedBlobs(Arc<Mutex<ByHash>>);

/// Blobs by hash, each with the number of disks that it lies on. The iteration order is never used.
type ByHash = HashMap<Hash, (Bytes, usize), Uniform>;

impl SharedBlobs {
    fn all(&self) -> MutexGuard<'_, ByHash> {
        // No code panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A disk gets this blob. Returns the bytes that the other disks have, if it lies on any.
    fn add(&self, hash: Hash, blob: Bytes) -> Bytes {
        debug_assert_eq!(Hash::of(&blob), hash, "all disks would get a wrong blob");
        let mut all = self.all();
        let (blob, disks) = all.entry(hash).or_insert((blob, 0));
        *disks += 1;
        blob.clone()
    }

    /// A disk drops this blob.
    fn release(&self, hash: &Hash) {
        let mut all = self.all();
        if let Some((_, disks)) = all.get_mut(hash) {
            *disks -= 1;
            if *disks == 0 {
                all.remove(hash);
            }
        }
    }
}

#[derive(Default)]
struct DiskContent {
    records: Vec<JournalRecord>,
    adoptions: Adoptions,
    /// The blobs by hash; the iteration order of the map is never used.
    blobs: HashMap<Hash, (Bytes, u64), Uniform>,
    /// Counts the blobs that were put.
    puts: u64,
    /// Counts the restarts of the silo: a journal that was opened before the last one refuses
    /// everything.
    restarts: u32,
    commits: u64,
    fail: Option<(u64, StepCut)>,
}

impl Disk {
    /// An empty disk of `owner`, whose blobs are among the `shared` ones. Every commit is reported
    /// to `recorder`.
    pub(crate) fn new(owner: MemberIndex, recorder: Recorder, shared: SharedBlobs) -> Self {
        Self {
            recorder: Some((owner, recorder)),
            shared,
            content: Arc::default(),
        }
    }

    /// An empty disk whose commits are not recorded, for tests of stores.
    pub fn unrecorded() -> Self {
        Self {
            recorder: None,
            shared: SharedBlobs::default(),
            content: Arc::default(),
        }
    }

    /// Opens the journal for a silo that starts. Journals opened before refuse everything from now
    /// on.
    pub fn journal(&self) -> Box<dyn Journal> {
        let mut content = self.content();
        content.restarts += 1;
        let restarts = content.restarts;
        Box::new(OpenDisk {
            disk: self.clone(),
            restarts,
        })
    }

    /// Everything in the journal, oldest first.
    pub(crate) fn records(&self) -> Vec<JournalRecord> {
        self.content().records.clone()
    }

    /// The blobs.
    pub fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(self.clone())
    }

    /// Refuses all writes until the journal is opened again. Deletes what was written if
    /// `journal_lost`.
    pub fn close(&self, journal_lost: bool) {
        let mut content = self.content();
        content.restarts += 1;
        if journal_lost {
            content.records.clear();
            content.adoptions = Adoptions::default();
            let blobs = std::mem::take(&mut content.blobs);
            blobs.keys().for_each(|hash| self.shared.release(hash));
        }
    }

    /// The `nth` commit from now (1 is the next) fails, like a crash at that point: with
    /// [`StepCut::Before`] nothing is written, otherwise everything.
    pub fn fail(&self, nth: u64, cut: StepCut) {
        let mut content = self.content();
        content.fail = Some((content.commits + nth, cut));
    }

    fn content(&self) -> MutexGuard<'_, DiskContent> {
        // No code panics while it holds this lock.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DiskContent {
    /// Returns how the commit under way fails, if it is the one that was chosen to.
    fn due(&mut self) -> Option<StepCut> {
        let commits = self.commits;
        self.fail
            .take_if(|(at, _)| *at <= commits)
            .map(|(_, cut)| cut)
    }
}

struct OpenDisk {
    disk: Disk,
    restarts: u32,
}

fn refused(why: &str) -> StoreError {
    StoreError {
        what: "the simulated journal".into(),
        why: why.into(),
    }
}

impl Journal for OpenDisk {
    fn load(&mut self) -> Result<Vec<JournalRecord>, StoreError> {
        Ok(self.disk.content().records.clone())
    }

    fn commit(&mut self, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        let mut content = self.disk.content();
        if content.restarts != self.restarts {
            return Err(refused("the silo that opened it has crashed"));
        }
        content.commits += 1;
        let cut = content.due();
        if cut == Some(StepCut::Before) {
            return Err(refused("scripted failure before writing"));
        }
        if let Some(block) = content.adoptions.again(&records) {
            return Err(refused(&format!(
                "the outcome of block {block} was adopted before"
            )));
        }
        content.adoptions.take(&records);
        if let Some((owner, recorder)) = &self.disk.recorder {
            records
                .iter()
                .for_each(|record| recorder.persisted(*owner, record));
        }
        content.records.extend(records);
        match cut {
            None => Ok(()),
            Some(_) => Err(refused("scripted failure after writing")),
        }
    }

    fn replace(&mut self, from: u64, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        let mut content = self.disk.content();
        if content.restarts != self.restarts {
            return Err(refused("the silo that opened it has crashed"));
        }
        let kept = content.records.len();
        if from > kept as u64 {
            return Err(refused(&format!(
                "it has {kept} records, and {from} should stay"
            )));
        }
        let mut adoptions = content.adoptions.before(from);
        if let Some(block) = adoptions.again(&records) {
            return Err(refused(&format!(
                "the outcome of block {block} is adopted twice in the new content"
            )));
        }
        adoptions.take(&records);
        content.records.truncate(from as usize);
        content.records.extend(records);
        content.adoptions = adoptions;
        if let ([JournalRecord::Lost | JournalRecord::Begun], Some((owner, recorder))) =
            (&content.records[..], &self.disk.recorder)
        {
            // The silo begins again without its journal: for the properties, the journal is lost.
            recorder.crashed(*owner, true);
        }
        Ok(())
    }
}

impl Blobs for Disk {
    fn get(&self, hash: &Hash) -> Option<Bytes> {
        let content = self.content();
        content.blobs.get(hash).map(|(blob, _)| blob.clone())
    }

    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError> {
        self.put_all(vec![(hash, blob)])
    }

    fn put_all(&self, blobs: Vec<(Hash, Bytes)>) -> Result<(), StoreError> {
        let DiskContent {
            blobs: all, puts, ..
        } = &mut *self.content();
        *puts += 1;
        for (hash, blob) in blobs {
            let new = || (self.shared.add(hash, blob), 0);
            all.entry(hash).or_insert_with(new).1 = *puts;
        }
        Ok(())
    }

    fn shared(&self, hash: &Hash, blob: Bytes) -> Bytes {
        self.get(hash).unwrap_or(blob)
    }

    fn mark(&self) -> u64 {
        self.content().puts
    }

    fn retain(&self, keep: &[Hash], mark: u64) -> Result<(), StoreError> {
        let keep: HashSet<&Hash, Uniform> = keep.iter().collect();
        let mut content = self.content();
        content.blobs.retain(|hash, (_, put)| {
            let kept = *put > mark || keep.contains(hash);
            if !kept {
                self.shared.release(hash);
            }
            kept
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn equal_blobs_of_several_disks_take_memory_once_while_needed() {
        let shared = SharedBlobs::default();
        let disk = || Disk {
            shared: shared.clone(),
            ..Disk::unrecorded()
        };
        let (one, two) = (disk(), disk());
        let (blob, same) = (Bytes::from(vec![7; 9]), Bytes::from(vec![7; 9]));
        let hash = Hash::of(&blob);
        one.put(hash, blob.clone()).unwrap();
        two.put(hash, same).unwrap();
        two.put(hash, Bytes::from(vec![7; 9])).unwrap();
        assert_eq!(two.get(&hash).unwrap().as_ptr(), blob.as_ptr());
        let copy = Bytes::from(vec![7; 9]);
        assert_eq!(two.shared(&hash, copy.clone()).as_ptr(), blob.as_ptr());
        assert_eq!(
            two.shared(&Hash::of(b"another"), copy.clone()).as_ptr(),
            copy.as_ptr()
        );
        one.retain(&[], one.mark()).unwrap();
        assert_eq!((one.get(&hash), two.get(&hash)), (None, Some(blob)));
        assert_eq!(shared.all().len(), 1);
        two.close(true);
        assert_eq!(two.get(&hash), None);
        assert!(shared.all().is_empty());
    }
}
