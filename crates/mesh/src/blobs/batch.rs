//! Blobs that were asked for together, and how far each has come.

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};
use protocol::Hash;
use protocol::net::BlobRequest;
use tokio::sync::Notify;

use super::board::Board;
use super::tree::Tree;

/// How far a blob has come.
#[derive(Debug)]
enum State {
    /// No holder has said what it looks like. One may be asked at the moment.
    Unknown { asked: bool },
    /// Its chunks are being brought.
    Begun(Board),
    /// It is here, and the silo is to be told.
    Here(Bytes),
    /// The silo was told.
    Told,
}

/// Blobs that were asked for together, shared by all who bring parts of them. Blobs are named by
/// their place in the list.
#[derive(Debug)]
pub(crate) struct Batch {
    wishes: Vec<BlobRequest>,
    states: Mutex<Vec<State>>,
    /// Woken when something is to be told, or more can be done at once.
    pub(crate) news: Notify,
}

impl Batch {
    /// `begun` gives what is left of an earlier attempt.
    pub(crate) fn new(
        wishes: Vec<BlobRequest>,
        mut begun: impl FnMut(&BlobRequest) -> Option<Board>,
    ) -> Self {
        let state = |wish| begun(wish).map_or(State::Unknown { asked: false }, State::Begun);
        let states = wishes.iter().map(state).collect();
        Self {
            states: Mutex::new(states),
            wishes,
            news: Notify::new(),
        }
    }

    pub(crate) fn wish(&self, blob: usize) -> BlobRequest {
        self.wishes[blob]
    }

    fn states(&self) -> MutexGuard<'_, Vec<State>> {
        self.states.lock().expect("nobody panics while holding it")
    }

    /// The blobs of which a further holder should bring something, where `running` ones are at
    /// work: those that nobody is asked about, and those of which `share` chunks or more are
    /// missing for everyone at work.
    pub(crate) fn open(&self, running: usize, share: usize) -> Vec<usize> {
        let open = |state: &State| match state {
            State::Unknown { asked } => !asked,
            State::Begun(board) => board.missing() > running * share,
            State::Here(_) | State::Told => false,
        };
        let states = self.states();
        (0..states.len())
            .filter(|&blob| open(&states[blob]))
            .collect()
    }

    /// A holder is going to be asked about it, or was, in vain.
    pub(crate) fn asked(&self, blob: usize, is: bool) {
        if let State::Unknown { asked } = &mut self.states()[blob] {
            *asked = is;
        }
    }

    /// What is known of a blob's shape.
    pub(crate) fn tree(&self, blob: usize) -> Option<Arc<Tree>> {
        self.board(blob, |board| board.tree().clone())
    }

    /// A holder said what a blob looks like. False where another holder said something else: both
    /// trees merge into the hash, but only the last chunk shows which length is right.
    pub(crate) fn begin(&self, blob: usize, tree: Tree) -> bool {
        let mut states = self.states();
        match &states[blob] {
            State::Unknown { .. } => {
                states[blob] = State::Begun(Board::new(Arc::new(tree)));
                self.news.notify_one();
                true
            }
            State::Begun(board) => **board.tree() == tree,
            State::Here(_) | State::Told => true,
        }
    }

    /// Takes up to `most` missing chunks in a row, to be filled.
    pub(crate) fn claim(&self, blob: usize, most: usize) -> Option<(u32, Vec<BytesMut>)> {
        self.board(blob, |board| board.claim(most)).flatten()
    }

    /// A claimed chunk arrived, and its bytes are right.
    pub(crate) fn arrived(&self, blob: usize, chunk: u32, piece: BytesMut) {
        let mut states = self.states();
        let State::Begun(board) = &mut states[blob] else {
            return;
        };
        if let Some(bytes) = board.arrived(chunk, piece) {
            states[blob] = State::Here(bytes);
            self.news.notify_one();
        }
    }

    /// A claimed chunk did not arrive.
    pub(crate) fn give_back(&self, blob: usize, chunk: u32, piece: BytesMut) {
        self.board(blob, |board| board.give_back(chunk, piece));
    }

    /// A blob came in one piece, and its bytes are right.
    pub(crate) fn came(&self, blob: usize, bytes: Bytes) {
        let state = &mut self.states()[blob];
        if !matches!(state, State::Told) {
            *state = State::Here(bytes);
        }
    }

    /// What the silo is to be told now.
    pub(crate) fn tell(&self) -> Vec<(Hash, Bytes)> {
        let mut told = Vec::new();
        for (wish, state) in self.wishes.iter().zip(&mut *self.states()) {
            if let State::Here(bytes) = state {
                told.push((wish.hash, std::mem::take(bytes)));
                *state = State::Told;
            }
        }
        told
    }

    /// Whether the silo was told of every blob.
    pub(crate) fn is_told(&self) -> bool {
        self.states()
            .iter()
            .all(|state| matches!(state, State::Told))
    }

    /// Whether something of a blob is here that would be lost.
    pub(crate) fn is_begun(&self) -> bool {
        let begun = |state: &State| matches!(state, State::Begun(board) if board.here() > 0);
        self.states().iter().any(begun)
    }

    /// Ends it: the blobs that did not come, and what there is of them.
    pub(crate) fn end(&self) -> (Vec<Hash>, Vec<Board>) {
        let (mut missing, mut boards) = (Vec::new(), Vec::new());
        for (wish, state) in self.wishes.iter().zip(&mut *self.states()) {
            match std::mem::replace(state, State::Told) {
                State::Told => continue,
                State::Begun(board) => boards.push(board),
                State::Unknown { .. } | State::Here(_) => {}
            }
            missing.push(wish.hash);
        }
        (missing, boards)
    }

    fn board<T>(&self, blob: usize, work: impl FnOnce(&mut Board) -> T) -> Option<T> {
        match &mut self.states()[blob] {
            State::Begun(board) => Some(work(board)),
            _ => None,
        }
    }
}
