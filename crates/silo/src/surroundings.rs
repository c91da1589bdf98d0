//! Everything around a silo that differs between a real node and a simulation.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use protocol::Hash;
use protocol::net::{Command, Event};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::checks::Checks;
use crate::notice::Feed;
use crate::record::Record;

/// What a silo is given to live in.
pub struct Surroundings {
    /// Where messages and blobs come from and go to.
    pub network: Network,
    /// What it must never forget.
    pub journal: Box<dyn Journal>,
    /// Blobs by hash.
    pub blobs: Arc<dyn Blobs>,
    /// Where heavy work is done.
    pub pool: Arc<dyn Pool>,
    /// Pure functions of bytes: counted, and remembered process-wide where the memo is on.
    pub checks: Arc<Checks>,
    /// Where notices go.
    pub feed: Feed,
    /// Where the silo's clock starts. Silos of one process may share it, so that their notices
    /// stand on one line of time.
    pub origin: Instant,
}

/// Two bounded channels. Commands that do not fit are lost, and said again by the protocol; the
/// network waits for a silo that is behind with its events. Every [`Command::Fetch`] is answered,
/// with [`Event::Fetched`] or [`Event::Missing`]; a hash is asked for again only after that.
pub struct Network {
    /// Silo → network.
    pub commands: mpsc::Sender<Command>,
    /// Network → silo.
    pub events: mpsc::Receiver<Event>,
}

/// A durable list of records.
pub trait Journal: Send {
    /// Everything committed so far, oldest first.
    ///
    /// # Errors
    /// [`StoreError`]: unreadable or damaged.
    fn load(&mut self) -> Result<Vec<Record>, StoreError>;

    /// Makes these records durable, all or none, before it returns. An outcome is adopted once: a
    /// second [`Adopted`](crate::Adopted) of one block is refused.
    ///
    /// # Errors
    /// [`StoreError`]: the silo must stop. Where writing failed it may show only after a restart
    /// whether the records are durable: all of them or none.
    fn commit(&mut self, records: Vec<Record>) -> Result<(), StoreError>;

    /// Puts these records in the place of all others, or changes nothing.
    ///
    /// # Errors
    /// [`StoreError`], as for [`Journal::commit`].
    fn replace(&mut self, records: Vec<Record>) -> Result<(), StoreError>;
}

/// Blobs by hash. Cloning a blob shares its memory. Called on the silo's own thread only, so that
/// what is kept at which moment does not depend on how fast a job was.
pub trait Blobs: Send + Sync {
    /// The blob of that hash, if it is here.
    fn get(&self, hash: &Hash) -> Option<Bytes>;

    /// Keeps a blob whose hash the caller has checked or computed; it is durable when this returns,
    /// so that a record of the journal may name it.
    ///
    /// # Errors
    /// [`StoreError`]: the blob is not kept.
    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError>;

    /// Keeps several, which can be faster than one by one.
    ///
    /// # Errors
    /// [`StoreError`]: some of them may be kept.
    fn put_all(&self, blobs: Vec<(Hash, Bytes)>) -> Result<(), StoreError> {
        let mut blobs = blobs.into_iter();
        blobs.try_for_each(|(hash, blob)| self.put(hash, blob))
    }

    /// Forgets every blob that is not in `keep` (ascending).
    ///
    /// # Errors
    /// [`StoreError`].
    fn retain(&self, keep: &[Hash]) -> Result<(), StoreError>;
}

/// Why something could not be kept or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}")]
pub struct StoreError {
    /// What was to be kept or read.
    pub what: String,
    /// Why it could not be.
    pub why: String,
}

/// A kind of heavy work, with its size, so that virtual time can say how long it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Training over that many sample visits.
    Train {
        /// Rows × epochs.
        samples: u64,
    },
    /// Measuring that many models.
    Evaluate {
        /// Models.
        models: u64,
    },
    /// Opening an envelope with that many signatures.
    Open {
        /// Signatures.
        signatures: u64,
    },
    /// Reading, checking or averaging that many bytes of models.
    Models {
        /// Bytes.
        bytes: u64,
    },
}

/// A job for the pool.
pub type Job = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;
/// What became of a job: its result, or what it panicked with.
pub type Done = Pin<Box<dyn Future<Output = Result<Box<dyn Any + Send>, String>>>>;

/// Runs heavy work without blocking the actors. In the node: blocking threads. In virtual time: a
/// thread pool that the runtime does not know; the modelled time is slept, then the result waited
/// for, so that the order of events never depends on the machine.
///
/// A job may wait for another silo that computes the same thing, and may use rayon inside. So its
/// threads must not be those of a rayon pool, where a waiting job could be waiting for a job that
/// was stolen onto its own stack.
pub trait Pool: Send + Sync {
    /// Starts `job` now; the future is done when it is.
    fn run(&self, work: Work, job: Job) -> Done;

    /// The same for a job that computes nothing, because another silo of the process does or did:
    /// it hands over that result, perhaps after waiting for it.
    fn wait(&self, work: Work, job: Job) -> Done {
        self.run(work, job)
    }
}

/// Runs a job of a known result.
pub(crate) fn run<T: Send + 'static>(
    pool: &dyn Pool,
    work: Work,
    job: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, String>> + 'static {
    unpacked(pool.run(work, Box::new(move || Box::new(job()))))
}

/// Waits for a result that is computed elsewhere.
pub(crate) fn wait<T: Send + 'static>(
    pool: &dyn Pool,
    work: Work,
    job: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, String>> + 'static {
    unpacked(pool.wait(work, Box::new(move || Box::new(job()))))
}

async fn unpacked<T: 'static>(done: Done) -> Result<T, String> {
    let result = done.await?.downcast();
    result
        .map(|result| *result)
        .map_err(|_| "a pool mixed up its jobs".into())
}
