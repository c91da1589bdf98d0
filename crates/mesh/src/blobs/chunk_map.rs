//! The chunks of a blob while it is fetched: present, claimed, or missing.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::spool::Place;
use super::tree::{CHUNK, Tree, chunks};

/// Largest total size in bytes of unfinished blobs in memory that are kept for the next attempt.
const KEPT: u64 = 512 << 20;
/// Most unfinished blobs in places of their own that are kept for the next attempt.
const PLACES: usize = 8;

/// The state of a chunk, with its part of the blob's memory; empty for a blob in a place of its own.
#[derive(Debug)]
enum ChunkState {
    Missing(BytesMut),
    Claimed,
    Present(BytesMut),
}

/// A blob that is being fetched. If it is kept in memory, that is one allocation: chunks are split
/// off, filled and joined again without copying. It is allocated zeroed, which costs nothing until it
/// is written. If it has a place of its own, only chunks that are claimed need memory.
#[derive(Debug)]
pub(crate) struct ChunkMap {
    tree: Arc<Tree>,
    place: Option<Arc<dyn Place>>,
    /// Memory of chunks that were written to the place, for the next ones.
    spare: Vec<BytesMut>,
    slots: Vec<ChunkState>,
    /// No chunk before this one is missing.
    cursor: usize,
    present: usize,
    missing: usize,
}

impl ChunkMap {
    /// A board without chunks. This machine must be able to address the blob's length.
    pub(crate) fn new(tree: Arc<Tree>, place: Option<Arc<dyn Place>>) -> Self {
        let mut memory = match place {
            Some(_) => BytesMut::new(),
            None => BytesMut::zeroed(tree.length() as usize),
        };
        let count = chunks(tree.length()) as usize;
        let cut = |_| ChunkState::Missing(memory.split_to(CHUNK.min(memory.len())));
        let slots: Vec<_> = (0..count).map(cut).collect();
        Self {
            tree,
            place,
            spare: Vec::new(),
            slots,
            cursor: 0,
            present: 0,
            missing: count,
        }
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// The place of the blob, if it is not kept in memory. A chunk is written there before it is
    /// [stored](Self::store).
    pub(crate) fn place(&self) -> Option<&Arc<dyn Place>> {
        self.place.as_ref()
    }

    /// Number of chunks that are present.
    pub(crate) fn present(&self) -> usize {
        self.present
    }

    /// Number of chunks that are neither present nor claimed.
    pub(crate) fn missing(&self) -> usize {
        self.missing
    }

    /// Claims up to `most` consecutive missing chunks: the number of the first, and the memory to
    /// read them into.
    pub(crate) fn claim(&mut self, most: usize) -> Option<(u32, Vec<BytesMut>)> {
        let missing = |slot: &ChunkState| matches!(slot, ChunkState::Missing(_));
        let first = self.cursor + self.slots[self.cursor..].iter().position(missing)?;
        let mut pieces = Vec::new();
        for (chunk, slot) in self.slots.iter_mut().enumerate().skip(first).take(most) {
            match std::mem::replace(slot, ChunkState::Claimed) {
                ChunkState::Missing(_) if self.place.is_some() => {
                    let begin = (chunk * CHUNK) as u64;
                    let length = (self.tree.length() - begin).min(CHUNK as u64) as usize;
                    let mut piece = self.spare.pop().unwrap_or_default();
                    piece.resize(length, 0);
                    pieces.push(piece);
                }
                ChunkState::Missing(piece) => pieces.push(piece),
                other => {
                    *slot = other;
                    break;
                }
            }
        }
        self.cursor = first + pieces.len();
        self.missing -= pieces.len();
        Some((first as u32, pieces))
    }

    /// Stores a claimed chunk whose bytes were verified, and written if the blob has a place. Returns
    /// the blob if it is complete.
    pub(crate) fn store(&mut self, chunk: u32, piece: BytesMut) -> Option<Whole> {
        let piece = match self.place {
            Some(_) => {
                self.spare.push(piece);
                BytesMut::new()
            }
            None => piece,
        };
        self.slots[chunk as usize] = ChunkState::Present(piece);
        self.present += 1;
        if self.present < self.slots.len() {
            return None;
        }
        if let Some(place) = self.place.take() {
            return Some(Whole::Placed(place));
        }
        let mut blob = BytesMut::new();
        for slot in self.slots.drain(..) {
            if let ChunkState::Present(piece) = slot {
                // The pieces are adjacent in memory, so joining them copies nothing.
                blob.unsplit(piece);
            }
        }
        Some(Whole::InMemory(blob.freeze()))
    }

    /// Returns a claimed chunk that did not arrive.
    pub(crate) fn give_back(&mut self, chunk: u32, piece: BytesMut) {
        let piece = match self.place {
            Some(_) => {
                self.spare.push(piece);
                BytesMut::new()
            }
            None => piece,
        };
        self.slots[chunk as usize] = ChunkState::Missing(piece);
        self.cursor = self.cursor.min(chunk as usize);
        self.missing += 1;
    }
}

/// A blob of which every chunk was stored.
#[derive(Debug)]
pub(crate) enum Whole {
    InMemory(Bytes),
    /// To be [finished](Place::finish).
    Placed(Arc<dyn Place>),
}

/// Blobs that were not completed, kept for the next fetch.
#[derive(Debug, Default)]
pub(crate) struct Unfinished(VecDeque<ChunkMap>);

impl Unfinished {
    /// Keeps a board, and drops the oldest ones beyond [`KEPT`] and [`PLACES`].
    pub(crate) fn keep(&mut self, mut board: ChunkMap) {
        board.spare = Vec::new();
        if board.present > 0 {
            self.0.push_back(board);
        }
        let placed = |board: &&ChunkMap| board.place.is_some();
        while self.0.iter().filter(placed).count() > PLACES {
            self.drop_oldest(true);
        }
        let in_memory = |board: &&ChunkMap| board.place.is_none();
        let length = |board: &ChunkMap| board.tree.length();
        while self.0.iter().filter(in_memory).map(length).sum::<u64>() > KEPT {
            self.drop_oldest(false);
        }
    }

    /// Drops the oldest board of those with a place of their own, or of those in memory.
    fn drop_oldest(&mut self, placed: bool) {
        let oldest = self.0.iter().position(|b| b.place.is_some() == placed);
        oldest.and_then(|at| self.0.remove(at));
    }

    /// Takes out the board of a blob.
    pub(crate) fn take(&mut self, hash: protocol::Hash) -> Option<ChunkMap> {
        let at = self.0.iter().position(|board| board.tree.root() == hash)?;
        self.0.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_the_chunks_of_a_blob_copies_nothing() {
        let whole: Bytes = (0..3 * CHUNK + 5).map(|i| (i / 3) as u8).collect();
        let mut board = ChunkMap::new(Arc::new(Tree::of(&whole)), None);
        let (first, mut pieces) = board.claim(3).expect("missing");
        let (last, rest) = board.claim(3).expect("missing");
        assert_eq!(
            (first, pieces.len(), last, rest.len(), board.missing()),
            (0, 3, 3, 1, 0)
        );
        let place = pieces[0].as_ptr();
        board.give_back(1, pieces.remove(1));
        let (again, taken) = board.claim(3).expect("given back");
        assert_eq!((again, taken.len()), (1, 1));
        let mut blob = None;
        for (chunk, mut piece) in [3, 2, 1, 0].into_iter().zip(
            rest.into_iter()
                .chain(pieces.pop())
                .chain(taken)
                .chain(pieces.pop()),
        ) {
            assert!(blob.is_none());
            let from = chunk as usize * CHUNK;
            piece.copy_from_slice(&whole[from..whole.len().min(from + CHUNK)]);
            blob = board.store(chunk, piece);
        }
        let Some(Whole::InMemory(blob)) = blob else {
            panic!("all chunks are present");
        };
        assert_eq!((blob.as_ptr(), &blob), (place, &whole));
    }
}
