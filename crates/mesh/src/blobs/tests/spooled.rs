//! Large blobs that are fetched into a place of their own.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::blobs::{Place, Spool};

/// Places for blobs of at least this many bytes, and what is in them.
#[derive(Debug, Default)]
struct TestPlaces {
    least: u64,
    given: Mutex<Vec<Arc<MemoryPlace>>>,
    /// `true` if the disk is full.
    full: AtomicBool,
}

#[derive(Debug, Default)]
struct MemoryPlace {
    bytes: Mutex<Vec<u8>>,
    full: AtomicBool,
    finished: AtomicBool,
}

impl Spool for TestPlaces {
    fn place(&self, length: u64) -> io::Result<Option<Arc<dyn Place>>> {
        if length < self.least {
            return Ok(None);
        }
        let given = Arc::new(MemoryPlace {
            bytes: Mutex::new(vec![0; length as usize]),
            ..MemoryPlace::default()
        });
        let full = self.full.load(Ordering::Relaxed);
        given.full.store(full, Ordering::Relaxed);
        self.given.lock().expect("no panic").push(given.clone());
        Ok(Some(given))
    }
}

impl Place for MemoryPlace {
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if self.full.load(Ordering::Relaxed) && at > 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let at = at as usize;
        let mut all = self.bytes.lock().expect("no panic");
        all[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn finish(&self) -> io::Result<Bytes> {
        assert!(!self.finished.swap(true, Ordering::Relaxed), "twice");
        Ok(self.bytes.lock().expect("no panic").clone().into())
    }
}

fn spooled(places: &Arc<TestPlaces>, blob: &Bytes) -> Batch {
    let wish = BlobRequest {
        hash: Hash::of(blob),
        limit: blob.len() as u64,
    };
    Batch::new(vec![wish], Some(places.clone()), |_| None)
}

#[tokio::test]
async fn a_large_blob_is_fetched_into_its_place_also_after_a_cut() {
    let right = blob(20);
    let places = Arc::new(TestPlaces::default());
    let batch = spooled(&places, &right);
    let (client, holder) = pipe();
    let sent = 5 * CHUNK + CHUNK / 2;
    let cut = hold(holder, Tree::of(&right), right.clone(), sent);
    let ((pulled, _), _) = tokio::join!(pull(&batch, client), cut);
    assert!(matches!(pulled, Err(PullFailure::Cut(_))));
    assert_eq!(present(&batch), 5);
    let (_, mut boards) = batch.end();
    let mut unfinished = crate::blobs::chunk_map::Unfinished::default();
    boards.drain(..).for_each(|board| unfinished.keep(board));
    let spool: Arc<dyn Spool> = places.clone();
    let again = vec![batch.wish(0)];
    let batch = Batch::new(again, Some(spool), |wish| unfinished.take(wish.hash));
    let (client, holder) = pipe();
    let rest = hold(holder, Tree::of(&right), right.clone(), usize::MAX);
    let ((pulled, _), asked) = tokio::join!(pull(&batch, client), rest);
    assert!(pulled.is_ok());
    assert_eq!(asked, (5..20).collect::<Vec<_>>());
    assert_eq!(batch.take_complete(), [(Hash::of(&right), right)]);
    assert_eq!(places.given.lock().expect("no panic").len(), 1);
}

#[tokio::test]
async fn a_small_blob_is_fetched_into_memory() {
    let right = blob(20);
    let places = Arc::new(TestPlaces {
        least: right.len() as u64 + 1,
        ..TestPlaces::default()
    });
    let batch = spooled(&places, &right);
    let (client, holder) = pipe();
    let honest = hold(holder, Tree::of(&right), right.clone(), usize::MAX);
    let ((pulled, _), _) = tokio::join!(pull(&batch, client), honest);
    assert!(pulled.is_ok() && places.given.lock().expect("no panic").is_empty());
    assert_eq!(batch.take_complete(), [(Hash::of(&right), right)]);
}

#[tokio::test]
async fn a_full_disk_ends_the_fetch_and_leaves_what_was_written() {
    let right = blob(20);
    let places = Arc::new(TestPlaces {
        full: true.into(),
        ..TestPlaces::default()
    });
    let batch = spooled(&places, &right);
    let (client, holder) = pipe();
    let honest = hold(holder, Tree::of(&right), right.clone(), usize::MAX);
    let ((pulled, unfit), _) = tokio::join!(pull(&batch, client), honest);
    assert!(matches!(pulled, Err(PullFailure::Disk(_))) && unfit.is_empty());
    // The chunk that could not be written is missing, and so are those after it.
    assert_eq!(present(&batch), 1);
}
