//! Serves blobs. For every stream the silo is asked which of the blobs the member may have.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::io::BufWriter;
use futures::{AsyncRead, AsyncWrite, AsyncWriteExt};
use protocol::net::Event;
use protocol::{Hash, MemberIndex};
use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio::time::timeout;

use super::tree::{CHUNK, Tree};
use super::wire;

/// Time after which a missing answer of the silo counts as a refusal. After a restart the silo verifies
/// a blob before it is given away: a gigabyte takes a slow disk ten seconds.
const ANSWER: Duration = Duration::from_secs(60);
/// Time without a request after which a stream is closed.
const IDLE: Duration = Duration::from_secs(60);
/// Most trees in the cache. A blob that several members fetch is hashed once.
const TREES: usize = 64;

/// A tree that is computed or being computed.
type SharedTree = Arc<OnceCell<Arc<Tree>>>;

/// Serves blobs, and holds the questions that wait for the silo's answers.
#[derive(Debug)]
pub(crate) struct BlobServer {
    events: mpsc::Sender<Event>,
    waiting: Mutex<PendingAnswers>,
    trees: Mutex<VecDeque<(Hash, SharedTree)>>,
    /// Number of bytes of blobs that were sent.
    pub(crate) served: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct PendingAnswers {
    last: u64,
    answers: BTreeMap<u64, oneshot::Sender<Vec<Option<Bytes>>>>,
}

impl BlobServer {
    pub(crate) fn new(events: mpsc::Sender<Event>) -> Self {
        Self {
            events,
            waiting: Mutex::default(),
            trees: Mutex::default(),
            served: Arc::default(),
        }
    }

    /// Takes the silo's answer. One that comes too late is dropped.
    pub(crate) fn answer(&self, ticket: u64, blobs: Vec<Option<Bytes>>) {
        if let Some(answer) = self.waiting().answers.remove(&ticket) {
            let _ = answer.send(blobs);
        }
    }

    /// Serves one stream of one member until it ends.
    pub(crate) async fn serve(
        &self,
        by: MemberIndex,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let asks = timeout(IDLE, wire::read_asks(&mut stream)).await??;
        let mut blobs = self
            .ask(by, asks.iter().map(|ask| ask.hash).collect())
            .await;
        blobs.resize(asks.len(), None);
        let mut answers = BufWriter::with_capacity(CHUNK, &mut stream);
        for (ask, slot) in asks.iter().zip(&mut blobs) {
            // A blob over the client's limit is refused like a missing one.
            *slot = slot.take().filter(|blob| blob.len() as u64 <= ask.limit);
            let tree = match slot {
                Some(blob) if ask.tree && blob.len() > CHUNK => {
                    Some(self.tree(ask.hash, blob).await?)
                }
                _ => None,
            };
            if tree.as_ref().is_some_and(|tree| tree.root() != ask.hash) {
                tracing::error!(hash = %ask.hash, "the stored blob does not have the hash of its name: refused");
                self.forget(ask.hash);
                *slot = None;
            }
            wire::write_length(&mut answers, slot.as_ref().map(|blob| blob.len() as u64)).await?;
            match (slot, tree) {
                (Some(blob), _) if blob.len() <= CHUNK => {
                    answers.write_all(blob).await?;
                    self.served.fetch_add(blob.len() as u64, Ordering::Relaxed);
                }
                (Some(_), Some(tree)) => wire::write_values(&mut answers, tree.values()).await?,
                _ => {}
            }
        }
        answers.flush().await?;
        drop(answers);
        while let Some(run) = timeout(IDLE, wire::read_run(&mut stream)).await?? {
            let beyond =
                || io::Error::other("it requests chunks outside the blobs that were granted");
            let blob = blobs.get(usize::from(run.blob)).and_then(Option::as_ref);
            let blob = blob.ok_or_else(beyond)?;
            let range = run.within(blob.len()).ok_or_else(beyond)?;
            self.served.fetch_add(range.len() as u64, Ordering::Relaxed);
            stream.write_all(&blob[range]).await?;
            stream.flush().await?;
        }
        stream.close().await
    }

    /// Asks the silo for the blobs. None of them if the answer takes too long.
    async fn ask(&self, by: MemberIndex, blobs: Vec<Hash>) -> Vec<Option<Bytes>> {
        let (sender, answer) = oneshot::channel();
        let ticket = {
            let mut waiting = self.waiting();
            waiting.last += 1;
            let ticket = waiting.last;
            waiting.answers.insert(ticket, sender);
            ticket
        };
        let answered = async {
            self.events
                .send(Event::Wanted { by, blobs, ticket })
                .await
                .ok()?;
            timeout(ANSWER, answer).await.ok()?.ok()
        };
        let answered = answered.await;
        self.waiting().answers.remove(&ticket);
        answered.unwrap_or_default()
    }

    /// The tree of a blob. It is computed once, on a thread for blocking work, while simultaneous
    /// requests for it wait.
    async fn tree(&self, hash: Hash, blob: &Bytes) -> io::Result<Arc<Tree>> {
        let known = self.shared(hash);
        let computed = known.get_or_try_init(|| async {
            let bytes = blob.clone();
            let tree = tokio::task::spawn_blocking(move || Tree::of(&bytes)).await?;
            io::Result::Ok(Arc::new(tree))
        });
        computed.await.cloned()
    }

    fn shared(&self, hash: Hash) -> SharedTree {
        let mut trees = self
            .trees
            .lock()
            .expect("no code panics while it holds this lock");
        if let Some((_, known)) = trees.iter().find(|(known, _)| *known == hash) {
            return known.clone();
        }
        let new = SharedTree::default();
        trees.push_back((hash, new.clone()));
        if trees.len() > TREES {
            trees.pop_front();
        }
        new
    }

    fn forget(&self, hash: Hash) {
        let mut trees = self
            .trees
            .lock()
            .expect("no code panics while it holds this lock");
        trees.retain(|(known, _)| *known != hash);
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, PendingAnswers> {
        self.waiting
            .lock()
            .expect("no code panics while it holds this lock")
    }
}
