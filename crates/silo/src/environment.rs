//! Environment of a silo, which its caller gives it: network, journal, blobs, pool. A node and a simulation
//! have their own implementations.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use ledger::Ledger;
use protocol::Hash;
use protocol::net::{Command, Event};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::checks::Checks;
use crate::error::StoreError;
use crate::notice::Feed;
use crate::record::JournalRecord;
use crate::secrets::RoundSecrets;

/// Everything a silo uses outside itself.
pub struct SiloEnvironment {
    /// The network: messages and blobs.
    pub network: Network,
    /// The durable records.
    pub journal: Box<dyn Journal>,
    /// Blobs by hash.
    pub blobs: Arc<dyn Blobs>,
    /// The threads for heavy work.
    pub pool: Arc<dyn Pool>,
    /// Checks that are pure functions of bytes: counted, and cached for the whole process if the cache is
    /// on.
    pub checks: Arc<Checks>,
    /// Receives the notices.
    pub feed: Feed,
    /// The zero of the silo's clock. Silos of one process may share it, so that the times of their
    /// notices compare.
    pub origin: Instant,
    /// Settings of the institution for its own silo.
    pub site: Site,
    /// Gives the secrets of secure-aggregation rounds.
    pub secrets: Box<dyn RoundSecrets>,
}

/// Settings of an institution for its own silo, below the agreement. None by default.
#[derive(Clone, Default)]
pub struct Site {
    /// The ledger of the source of its rows: a contribution is signed only after its line is durable.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// Policy on the rounds that the silo takes part in.
    pub rounds: Option<Arc<dyn RoundPolicy>>,
}

/// Policy of an institution on the rounds that its silo takes part in.
pub trait RoundPolicy: Send + Sync {
    /// Returns whether the silo may train for a round in which it would send a model of `bytes`.
    ///
    /// # Errors
    /// Reason for sitting the round out, in a sentence without a full stop.
    fn allows(&self, round: u64, bytes: u64) -> Result<(), String>;
}

/// Two bounded channels. Commands that do not fit are lost, and the protocol sends them again; the
/// network waits while the silo is behind with its events. Every [`Command::Fetch`] is answered with
/// [`Event::Fetched`] or [`Event::Missing`], and a hash is requested again only after that.
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
    fn load(&mut self) -> Result<Vec<JournalRecord>, StoreError>;

    /// Makes these records durable, all or none, before it returns. An outcome is adopted once: a
    /// second [`Adopted`](crate::Adopted) of one block is refused.
    ///
    /// # Errors
    /// [`StoreError`]: the silo must stop. Where writing failed it may show only after a restart
    /// whether the records are durable: all of them or none.
    fn commit(&mut self, records: Vec<JournalRecord>) -> Result<(), StoreError>;

    /// Replaces the records from position `from` on, counted from 0, by these, or changes nothing.
    /// Those before it stay and are not touched.
    ///
    /// # Errors
    /// [`StoreError`], as for [`Journal::commit`]; also if there are fewer than `from` records.
    fn replace(&mut self, from: u64, records: Vec<JournalRecord>) -> Result<(), StoreError>;
}

/// A store of blobs by hash. Cloning a blob shares its memory. Called on the silo's own thread only,
/// so that the stored blobs at any moment do not depend on how fast a job was; except for
/// [`to_file`](Self::to_file), which stores nothing.
pub trait Blobs: Send + Sync {
    /// The blob of that hash, if it is here.
    fn get(&self, hash: &Hash) -> Option<Bytes>;

    /// Stores a blob whose hash the caller has checked or computed. It is durable when this returns, so
    /// that a record of the journal may name it.
    ///
    /// # Errors
    /// [`StoreError`]: the blob is not stored.
    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError>;

    /// Stores several blobs, which can be faster than one by one.
    ///
    /// # Errors
    /// [`StoreError`]: some of them may be stored.
    fn put_all(&self, blobs: Vec<(Hash, Bytes)>) -> Result<(), StoreError> {
        let mut blobs = blobs.into_iter();
        blobs.try_for_each(|(hash, blob)| self.put(hash, blob))
    }

    /// Takes a blob that a job has computed to where it will be stored, on the job's thread, which may
    /// wait for a disk. The result has the same bytes; a large blob is from now on read from the disk
    /// and needs no memory. It is stored only when it is put, which then takes no time, and if it is
    /// not put, nothing is left of it after its last clone. Where that is not possible, the result is
    /// `blob` itself.
    fn to_file(&self, blob: Bytes) -> Bytes {
        blob
    }

    /// A blob that was put, as the store keeps it: in a simulation equal blobs of all silos take memory
    /// once. A node's store returns `blob`, as every store does that has none with this hash.
    fn shared(&self, _hash: &Hash, blob: Bytes) -> Bytes {
        blob
    }

    /// A mark of this moment: blobs that are put from now on, again or for the first time, are newer.
    fn mark(&self) -> u64;

    /// Removes every blob that is neither in `keep` (ascending) nor newer than `mark`. The silo decides
    /// what to keep before it makes that durable, and meanwhile blobs of the next round may arrive.
    ///
    /// # Errors
    /// [`StoreError`].
    fn retain(&self, keep: &[Hash], mark: u64) -> Result<(), StoreError>;

    /// Removes these blobs at once. A store that does not do it is rid of them with the next
    /// [`retain`](Blobs::retain), which does not name them.
    ///
    /// # Errors
    /// [`StoreError`].
    fn remove(&self, _blobs: &[Hash]) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A kind of heavy work and its size, from which virtual time models its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkSize {
    /// Training.
    Train {
        /// Rows × epochs.
        samples: u64,
    },
    /// Evaluation of models.
    Evaluate {
        /// Models.
        models: u64,
    },
    /// Opening an envelope.
    Open {
        /// Signatures.
        signatures: u64,
    },
    /// Reading, checking or averaging models.
    Models {
        /// Bytes.
        bytes: u64,
    },
}

/// A job for the pool.
pub type PoolJob = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;
/// The result of a job, or the text of its panic.
pub type Done = Pin<Box<dyn Future<Output = Result<Box<dyn Any + Send>, String>>>>;

/// Runs heavy work without blocking the actors. A node uses threads. In virtual time the threads are
/// unknown to the runtime: the future sleeps for the modelled time and then waits for the result, so
/// that the order of events never depends on the machine.
///
/// A job may wait for another silo that computes the same thing, and may use rayon. So the threads
/// must not be those of a rayon pool, where a waiting job could wait for one that rayon runs on the
/// same thread.
pub trait Pool: Send + Sync {
    /// Starts `job` now. The future ends with it.
    fn run(&self, work: WorkSize, job: PoolJob) -> Done;

    /// Starts `job` now, as [`run`](Self::run) does, for a job that only waits for a result that
    /// another silo of the process computes.
    fn wait(&self, work: WorkSize, job: PoolJob) -> Done {
        self.run(work, job)
    }

    /// Takes a step of the state machine, with its signatures and the flush of its records, on a thread
    /// on which nothing else runs.
    ///
    /// # Errors
    /// The job itself, where there is no such thread, as in virtual time: then it runs on the actors'.
    fn step(&self, job: PoolJob) -> Result<Done, PoolJob> {
        Err(job)
    }
}

/// Runs a job with a typed result.
pub(crate) fn run<T: Send + 'static>(
    pool: &dyn Pool,
    work: WorkSize,
    job: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, String>> + 'static {
    unpacked(pool.run(work, Box::new(move || Box::new(job()))))
}

/// Waits for a result that is computed elsewhere.
pub(crate) fn wait<T: Send + 'static>(
    pool: &dyn Pool,
    work: WorkSize,
    job: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, String>> + 'static {
    unpacked(pool.wait(work, Box::new(move || Box::new(job()))))
}

async fn unpacked<T: 'static>(done: Done) -> Result<T, String> {
    let result = done.await?.downcast();
    result
        .map(|result| *result)
        .map_err(|_| "the pool returned the result of another job".into())
}
