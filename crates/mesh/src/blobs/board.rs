//! Which chunks of a blob are here, on their way, or missing.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::tree::{CHUNK, Tree, chunks};

/// Bytes of unfinished blobs that are kept for the next attempt.
const KEPT: u64 = 512 << 20;

/// A chunk's place in the blob's memory.
#[derive(Debug)]
enum Slot {
    Missing(BytesMut),
    Claimed,
    Here(BytesMut),
}

/// A blob under way. Its memory is one piece: the chunks are cut out of it, filled and joined again
/// without copying. It is taken zeroed, which costs nothing until it is written to.
#[derive(Debug)]
pub(crate) struct Board {
    tree: Arc<Tree>,
    slots: Vec<Slot>,
    /// No chunk before it is missing.
    cursor: usize,
    here: usize,
    missing: usize,
}

impl Board {
    /// With nothing here yet. The blob's length must be one that this machine can address.
    pub(crate) fn new(tree: Arc<Tree>) -> Self {
        let mut memory = BytesMut::zeroed(tree.length() as usize);
        let count = chunks(tree.length()) as usize;
        let cut = |_| Slot::Missing(memory.split_to(CHUNK.min(memory.len())));
        let slots: Vec<_> = (0..count).map(cut).collect();
        Self {
            tree,
            slots,
            cursor: 0,
            here: 0,
            missing: count,
        }
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Chunks that are here.
    pub(crate) fn here(&self) -> usize {
        self.here
    }

    /// Chunks that nobody is bringing.
    pub(crate) fn missing(&self) -> usize {
        self.missing
    }

    /// Takes up to `most` missing chunks in a row, to be filled; with the number of the first.
    pub(crate) fn claim(&mut self, most: usize) -> Option<(u32, Vec<BytesMut>)> {
        let missing = |slot: &Slot| matches!(slot, Slot::Missing(_));
        let first = self.cursor + self.slots[self.cursor..].iter().position(missing)?;
        let mut pieces = Vec::new();
        for slot in self.slots[first..].iter_mut().take(most) {
            match std::mem::replace(slot, Slot::Claimed) {
                Slot::Missing(piece) => pieces.push(piece),
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

    /// A claimed chunk arrived, and its bytes are right. Gives the blob if it was the last.
    pub(crate) fn arrived(&mut self, chunk: u32, piece: BytesMut) -> Option<Bytes> {
        self.slots[chunk as usize] = Slot::Here(piece);
        self.here += 1;
        if self.here < self.slots.len() {
            return None;
        }
        let mut blob = BytesMut::new();
        for slot in self.slots.drain(..) {
            if let Slot::Here(piece) = slot {
                // The first piece is taken as it is; the others follow it in the same memory.
                blob.unsplit(piece);
            }
        }
        Some(blob.freeze())
    }

    /// A claimed chunk did not arrive.
    pub(crate) fn give_back(&mut self, chunk: u32, piece: BytesMut) {
        self.slots[chunk as usize] = Slot::Missing(piece);
        self.cursor = self.cursor.min(chunk as usize);
        self.missing += 1;
    }
}

/// Blobs that could not be finished, for the next time they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Unfinished(VecDeque<Board>);

impl Unfinished {
    /// Keeps a board, and forgets the oldest ones where that is too much.
    pub(crate) fn keep(&mut self, board: Board) {
        if board.here > 0 {
            self.0.push_back(board);
        }
        let bytes = |kept: &VecDeque<Board>| kept.iter().map(|b| b.tree.length()).sum::<u64>();
        while bytes(&self.0) > KEPT {
            self.0.pop_front();
        }
    }

    /// Gives back the board of a blob.
    pub(crate) fn take(&mut self, hash: protocol::Hash) -> Option<Board> {
        let at = self.0.iter().position(|board| board.tree.root() == hash)?;
        self.0.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_keeps_the_memory_that_its_chunks_were_read_into() {
        let whole: Bytes = (0..3 * CHUNK + 5).map(|i| (i / 3) as u8).collect();
        let mut board = Board::new(Arc::new(Tree::of(&whole)));
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
            assert_eq!(blob, None);
            let from = chunk as usize * CHUNK;
            piece.copy_from_slice(&whole[from..whole.len().min(from + CHUNK)]);
            blob = board.arrived(chunk, piece);
        }
        let blob = blob.expect("all are here");
        assert_eq!((blob.as_ptr(), &blob), (place, &whole));
    }
}
