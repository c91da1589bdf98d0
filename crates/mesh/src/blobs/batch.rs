//! The blobs of one fetch, and the state of each.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};
use protocol::Hash;
use protocol::net::BlobRequest;
use tokio::sync::Notify;

use super::chunk_map::{ChunkMap, Whole};
use super::spool::{Place, Spool};
use super::tree::Tree;

/// State of a blob.
#[derive(Debug)]
enum BlobState {
    /// Length and tree of the blob are unknown. `requested`: a holder is being asked for it.
    Unknown { requested: bool },
    /// The chunks of the blob are being fetched.
    Started(ChunkMap),
    /// Complete in a place of its own, which is being finished.
    Finishing,
    /// Complete, but not yet delivered to the silo.
    Complete(Bytes),
    /// Delivered to the silo.
    Delivered,
}

/// The blobs of one fetch, shared by the tasks that fetch parts of them. A blob is named by its
/// position in the list of requests.
#[derive(Debug)]
pub(crate) struct Batch {
    wishes: Vec<BlobRequest>,
    /// Spool of large blobs.
    spool: Option<Arc<dyn Spool>>,
    states: Mutex<Vec<BlobState>>,
    /// Notified when a blob is complete, or when a further holder can be asked.
    pub(crate) changed: Notify,
}

impl Batch {
    /// A batch of these requests. `started` gives the board of a blob from an earlier attempt.
    pub(crate) fn new(
        wishes: Vec<BlobRequest>,
        spool: Option<Arc<dyn Spool>>,
        mut started: impl FnMut(&BlobRequest) -> Option<ChunkMap>,
    ) -> Self {
        let state = |wish| {
            started(wish).map_or(BlobState::Unknown { requested: false }, BlobState::Started)
        };
        let states = wishes.iter().map(state).collect();
        Self {
            states: Mutex::new(states),
            wishes,
            spool,
            changed: Notify::new(),
        }
    }

    pub(crate) fn wish(&self, blob: usize) -> BlobRequest {
        self.wishes[blob]
    }

    fn states(&self) -> MutexGuard<'_, Vec<BlobState>> {
        self.states
            .lock()
            .expect("no code panics while it holds this lock")
    }

    /// The blobs for which a further holder is worth asking, while `running` holders are being
    /// asked: unknown blobs that no holder is asked for, and started blobs of which more than
    /// `share` chunks per running holder are missing.
    pub(crate) fn open(&self, running: usize, share: usize) -> Vec<usize> {
        let open = |state: &BlobState| match state {
            BlobState::Unknown { requested } => !requested,
            BlobState::Started(board) => board.missing() > running * share,
            BlobState::Finishing | BlobState::Complete(_) | BlobState::Delivered => false,
        };
        let states = self.states();
        (0..states.len())
            .filter(|&blob| open(&states[blob]))
            .collect()
    }

    /// Notes whether a holder is being asked for a blob that is still unknown.
    pub(crate) fn set_requested(&self, blob: usize, is_requested: bool) {
        if let BlobState::Unknown { requested } = &mut self.states()[blob] {
            *requested = is_requested;
        }
    }

    /// The tree of a blob whose chunks are being fetched.
    pub(crate) fn tree(&self, blob: usize) -> Option<Arc<Tree>> {
        self.board(blob, |board| board.tree().clone())
    }

    /// Starts a blob with the tree that a holder sent. False if another holder sent a different
    /// tree: both merge into the hash, but only the last chunk shows which length is right.
    pub(crate) fn start(&self, blob: usize, tree: Tree) -> bool {
        let mut states = self.states();
        match &states[blob] {
            BlobState::Unknown { .. } => {
                let place = self.place_for(tree.length());
                states[blob] = BlobState::Started(ChunkMap::new(Arc::new(tree), place));
                self.changed.notify_one();
                true
            }
            BlobState::Started(board) => **board.tree() == tree,
            BlobState::Finishing | BlobState::Complete(_) | BlobState::Delivered => true,
        }
    }

    fn place_for(&self, length: u64) -> Option<Arc<dyn Place>> {
        let place = self.spool.as_ref()?.place(length);
        place.unwrap_or_else(|error| {
            tracing::warn!(length, %error, "a blob is fetched into memory: it has no place on the disk");
            None
        })
    }

    /// The place of a blob whose chunks are being fetched, if it is not kept in memory.
    pub(crate) fn place(&self, blob: usize) -> Option<Arc<dyn Place>> {
        self.board(blob, |board| board.place().cloned()).flatten()
    }

    /// Claims up to `most` consecutive missing chunks: the number of the first, and the memory to
    /// read them into.
    pub(crate) fn claim(&self, blob: usize, most: usize) -> Option<(u32, Vec<BytesMut>)> {
        self.board(blob, |board| board.claim(most)).flatten()
    }

    /// Stores a claimed chunk whose bytes were verified, and written to the blob's place if it has
    /// one. Returns that place if the blob is now to be finished there.
    pub(crate) fn store(&self, blob: usize, chunk: u32, piece: BytesMut) -> Option<Arc<dyn Place>> {
        let mut states = self.states();
        let BlobState::Started(board) = &mut states[blob] else {
            return None;
        };
        match board.store(chunk, piece)? {
            Whole::InMemory(bytes) => {
                states[blob] = BlobState::Complete(bytes);
                self.changed.notify_one();
                None
            }
            Whole::Placed(place) => {
                states[blob] = BlobState::Finishing;
                Some(place)
            }
        }
    }

    /// A blob could not be finished: nothing of it is here.
    pub(crate) fn lose(&self, blob: usize) {
        self.states()[blob] = BlobState::Unknown { requested: false };
    }

    /// Returns a claimed chunk that did not arrive.
    pub(crate) fn give_back(&self, blob: usize, chunk: u32, piece: BytesMut) {
        self.board(blob, |board| board.give_back(chunk, piece));
    }

    /// Completes a blob that arrived in one piece and was verified, or was finished.
    pub(crate) fn complete(&self, blob: usize, bytes: Bytes) {
        let state = &mut self.states()[blob];
        if !matches!(state, BlobState::Delivered) {
            *state = BlobState::Complete(bytes);
        }
        self.changed.notify_one();
    }

    /// Takes the complete blobs that were not delivered yet, and marks them as delivered.
    pub(crate) fn take_complete(&self) -> Vec<(Hash, Bytes)> {
        let mut complete = Vec::new();
        for (wish, state) in self.wishes.iter().zip(&mut *self.states()) {
            if let BlobState::Complete(bytes) = state {
                complete.push((wish.hash, std::mem::take(bytes)));
                *state = BlobState::Delivered;
            }
        }
        complete
    }

    /// Returns whether every blob was delivered.
    pub(crate) fn is_delivered(&self) -> bool {
        self.states()
            .iter()
            .all(|state| matches!(state, BlobState::Delivered))
    }

    /// Returns whether chunks of an incomplete blob are present.
    pub(crate) fn is_started(&self) -> bool {
        let started =
            |state: &BlobState| matches!(state, BlobState::Started(board) if board.present() > 0);
        self.states().iter().any(started)
    }

    /// Ends the fetch. Returns the blobs that are missing, and the boards of those that were started.
    pub(crate) fn end(&self) -> (Vec<Hash>, Vec<ChunkMap>) {
        let (mut missing, mut boards) = (Vec::new(), Vec::new());
        for (wish, state) in self.wishes.iter().zip(&mut *self.states()) {
            match std::mem::replace(state, BlobState::Delivered) {
                BlobState::Delivered => continue,
                BlobState::Started(board) => boards.push(board),
                BlobState::Unknown { .. } | BlobState::Finishing | BlobState::Complete(_) => {}
            }
            missing.push(wish.hash);
        }
        (missing, boards)
    }

    fn board<T>(&self, blob: usize, work: impl FnOnce(&mut ChunkMap) -> T) -> Option<T> {
        match &mut self.states()[blob] {
            BlobState::Started(board) => Some(work(board)),
            _ => None,
        }
    }
}
