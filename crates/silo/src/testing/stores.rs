//! Journal, blobs and pool.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use protocol::Hash;

use crate::{Blobs, Done, Journal, JournalRecord, Pool, PoolJob, StoreError, WorkSize};

/// A journal in memory.
#[derive(Clone, Default)]
pub(crate) struct MemoryJournal(Arc<Mutex<MemoryDisk>>);

#[derive(Default)]
struct MemoryDisk {
    records: Vec<JournalRecord>,
    /// Everything that was ever committed.
    transactions: Vec<Vec<JournalRecord>>,
    /// After how many transactions the disk is full, or writing to it panics.
    room: Option<usize>,
    panics: bool,
    /// Duration of a transaction, by the clock of the machine.
    slow: Duration,
}

impl MemoryJournal {
    /// A journal that holds these records.
    pub(crate) fn of(records: Vec<JournalRecord>) -> Self {
        let journal = Self::default();
        journal.0.lock().unwrap().records = records;
        journal
    }

    pub(crate) fn fail_after(&self, transactions: usize) {
        self.0.lock().unwrap().room = Some(transactions);
    }

    /// Makes the commit after this number of transactions panic.
    pub(crate) fn panic_after(&self, transactions: usize) {
        let mut disk = self.0.lock().unwrap();
        (disk.room, disk.panics) = (Some(transactions), true);
    }

    /// Makes every transaction take this long.
    pub(crate) fn slow(&self, span: Duration) {
        self.0.lock().unwrap().slow = span;
    }

    /// Everything that was ever committed, also what is removed by now.
    pub(crate) fn transactions(&self) -> Vec<Vec<JournalRecord>> {
        self.0.lock().unwrap().transactions.clone()
    }

    pub(crate) fn records(&self) -> Vec<JournalRecord> {
        self.0.lock().unwrap().records.clone()
    }
}

impl Journal for MemoryJournal {
    fn load(&mut self) -> Result<Vec<JournalRecord>, StoreError> {
        Ok(self.records())
    }

    #[expect(clippy::disallowed_methods, reason = "a disk that is slow for real")]
    fn commit(&mut self, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        let mut disk = self.0.lock().unwrap();
        std::thread::sleep(disk.slow);
        let full = disk
            .room
            .is_some_and(|room| disk.transactions.len() >= room);
        if full && disk.panics {
            // The lock is released before the panic.
            drop(disk);
            panic!("a disk that fails");
        }
        if full {
            return Err(self::full());
        }
        disk.records.extend(records.clone());
        disk.transactions.push(records);
        Ok(())
    }

    fn replace(&mut self, from: u64, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        let mut disk = self.0.lock().unwrap();
        assert!(from <= disk.records.len() as u64);
        disk.records.truncate(from as usize);
        disk.records.extend(records);
        Ok(())
    }
}

pub(crate) fn full() -> StoreError {
    StoreError {
        what: "a record".into(),
        why: "the disk is full".into(),
    }
}

/// Blobs, and the copies that were laid down.
#[derive(Default)]
pub(crate) struct MemoryBlobs(Mutex<(Stored, u64)>, Mutex<Vec<Bytes>>);

/// Blobs by hash, each with the number that was current when it was stored.
type Stored = BTreeMap<Hash, (Bytes, u64)>;

impl MemoryBlobs {
    pub(crate) fn forget(&self, gone: &[Hash]) {
        let mut content = self.0.lock().unwrap();
        content.0.retain(|hash, _| !gone.contains(hash));
    }

    pub(crate) fn hashes(&self) -> Vec<Hash> {
        self.0.lock().unwrap().0.keys().copied().collect()
    }

    /// Returns whether these bytes, not others that are equal, are such a copy.
    pub(crate) fn is_laid_down(&self, bytes: &Bytes) -> bool {
        let laid = self.1.lock().unwrap();
        laid.iter().any(|copy| copy.as_ptr() == bytes.as_ptr())
    }
}

impl Blobs for MemoryBlobs {
    fn get(&self, hash: &Hash) -> Option<Bytes> {
        let content = self.0.lock().unwrap();
        content.0.get(hash).map(|(blob, _)| blob.clone())
    }

    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError> {
        assert_eq!(Hash::of(&blob), hash);
        let (blobs, puts) = &mut *self.0.lock().unwrap();
        *puts += 1;
        blobs.insert(hash, (blob, *puts));
        Ok(())
    }

    fn to_file(&self, blob: Bytes) -> Bytes {
        let copy = Bytes::copy_from_slice(&blob);
        self.1.lock().unwrap().push(copy.clone());
        copy
    }

    fn mark(&self) -> u64 {
        self.0.lock().unwrap().1
    }

    fn retain(&self, keep: &[Hash], mark: u64) -> Result<(), StoreError> {
        assert!(keep.is_sorted());
        let mut content = self.0.lock().unwrap();
        let kept = |hash: &Hash, put: u64| put > mark || keep.binary_search(hash).is_ok();
        content.0.retain(|hash, (_, put)| kept(hash, *put));
        Ok(())
    }

    fn remove(&self, blobs: &[Hash]) -> Result<(), StoreError> {
        self.forget(blobs);
        Ok(())
    }
}

/// Runs jobs at once on this thread, and models their time: 100 ms, or 15 µs per signature; training takes
/// this much longer.
#[derive(Default)]
pub(crate) struct TestPool(pub(crate) Duration);

impl Pool for TestPool {
    fn run(&self, work: WorkSize, job: PoolJob) -> Done {
        let result = catch_unwind(AssertUnwindSafe(job)).map_err(|panic| {
            let said = panic.downcast_ref::<&str>().copied().unwrap_or("?");
            format!("a job panicked: {said}")
        });
        let span = match work {
            WorkSize::Open { signatures } => Duration::from_micros(15 * signatures),
            WorkSize::Train { .. } => Duration::from_millis(100) + self.0,
            _ => Duration::from_millis(100),
        };
        Box::pin(async move {
            tokio::time::sleep(span).await;
            result
        })
    }
}
