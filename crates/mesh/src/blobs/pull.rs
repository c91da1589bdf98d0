//! Fetches blobs of a batch from one holder.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite};
use protocol::Hash;
use tokio::time::timeout;

use super::batch::Batch;
use super::spool::Place;
use super::tree::{CHUNK, Tree};
use super::wire::{self, Ask, ChunkRun};

/// Most chunks in one request.
pub(crate) const RUN: usize = 8;
/// Most chunks requested from one holder and not yet received: 8 MiB, enough for 100 ms at 80 MB/s.
const AHEAD: usize = 4 * RUN;

/// Reason for which fetching from a holder ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PullFailure {
    /// The holder's blob is larger than the limit of the request.
    #[error("its blob has {0} bytes, more than the limit of the request")]
    TooLarge(u64),
    /// The holder sent bytes that do not belong to the blob.
    #[error("it sent wrong bytes: {0}")]
    WrongBytes(String),
    /// The stream broke.
    #[error("the stream broke: {0}")]
    Cut(#[from] io::Error),
    /// The blob could not be written where it is kept.
    #[error("the blob cannot be kept: {0}")]
    Disk(io::Error),
    /// The holder sent nothing for too long.
    #[error("it sent nothing for {0:?}")]
    Silent(Duration),
}

/// The part of a batch that one holder is asked for.
#[derive(Debug)]
pub(crate) struct BatchPart<'a, S> {
    pub(crate) batch: &'a Batch,
    /// The requested blobs, by their position in the batch.
    pub(crate) blobs: &'a [usize],
    pub(crate) stream: S,
    /// Longest time in which the holder may send nothing.
    pub(crate) patience: Duration,
    /// Chunks and small blobs that were fetched from it.
    pub(crate) fetched: usize,
    /// Blobs for which it must not be asked again.
    pub(crate) unfit: Vec<usize>,
}

/// A chunk that was asked for.
struct Requested {
    blob: usize,
    chunk: u32,
    piece: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> BatchPart<'_, S> {
    /// Fetches from this holder until no chunk is left to claim.
    pub(crate) async fn pull(&mut self) -> Result<(), PullFailure> {
        let large = self.begin().await?;
        let mut requested = VecDeque::new();
        let ended = self.chunks(&large, &mut requested).await;
        for Requested { blob, chunk, piece } in requested {
            self.batch.give_back(blob, chunk, piece);
        }
        ended
    }

    /// Requests all blobs; receives the small ones, and the trees of the large ones. Returns the
    /// positions of the large ones on the stream and in the batch.
    async fn begin(&mut self) -> Result<Vec<(u16, usize)>, PullFailure> {
        let ask = |&blob: &usize| {
            let (wish, tree) = (self.batch.wish(blob), self.batch.tree(blob).is_none());
            Ask {
                hash: wish.hash,
                limit: wish.limit,
                tree,
            }
        };
        let asks: Vec<_> = self.blobs.iter().map(ask).collect();
        wire::write_asks(&mut self.stream, &asks).await?;
        let mut large = Vec::new();
        for ((position, &blob), ask) in (0u16..).zip(self.blobs).zip(&asks) {
            let length = in_time(self.patience, wire::read_length(&mut self.stream)).await?;
            let answered = match length {
                None => {
                    self.unfit.push(blob);
                    self.batch.set_requested(blob, false);
                    continue;
                }
                Some(length) if length > ask.limit || usize::try_from(length).is_err() => {
                    Err(PullFailure::TooLarge(length))
                }
                Some(length) if length <= CHUNK as u64 => self.small(blob, ask.hash, length).await,
                Some(length) => {
                    large.push((position, blob));
                    self.tree(blob, ask, length).await
                }
            };
            if let Err(PullFailure::TooLarge(_) | PullFailure::WrongBytes(_)) = answered {
                self.unfit.push(blob);
            }
            answered?;
        }
        // Blobs may be complete, and refused ones can be requested elsewhere.
        self.batch.changed.notify_one();
        Ok(large)
    }

    async fn small(&mut self, blob: usize, hash: Hash, length: u64) -> Result<(), PullFailure> {
        let mut bytes = BytesMut::zeroed(length as usize);
        in_time(self.patience, self.stream.read_exact(&mut bytes)).await?;
        if Hash::of(&bytes) != hash {
            return Err(PullFailure::WrongBytes("in its only chunk".into()));
        }
        self.fetched += 1;
        self.batch.complete(blob, bytes.freeze());
        Ok(())
    }

    async fn tree(&mut self, blob: usize, ask: &Ask, length: u64) -> Result<(), PullFailure> {
        let agreed = if ask.tree {
            let values = in_time(self.patience, wire::read_values(&mut self.stream, length));
            let tree = Tree::claimed(ask.hash, length, values.await?)
                .ok_or_else(|| PullFailure::WrongBytes("the tree of another hash".into()))?;
            self.batch.start(blob, tree)
        } else {
            // If other holders completed the blob meanwhile, its tree is not needed any more.
            self.batch
                .tree(blob)
                .is_none_or(|tree| tree.length() == length)
        };
        if agreed {
            Ok(())
        } else {
            Err(PullFailure::WrongBytes(
                "another length than that of another holder".into(),
            ))
        }
    }

    /// Claims chunks, requests several ahead, and verifies each when it arrives.
    async fn chunks(
        &mut self,
        large: &[(u16, usize)],
        requested: &mut VecDeque<Requested>,
    ) -> Result<(), PullFailure> {
        loop {
            while requested.len() + RUN <= AHEAD
                && let Some((run, blob, pieces)) = self.claim(large)
            {
                let chunks = (run.first..).zip(pieces);
                requested.extend(chunks.map(|(chunk, piece)| Requested { blob, chunk, piece }));
                wire::write_run(&mut self.stream, run).await?;
            }
            let Some(next) = requested.front_mut() else {
                return Ok(());
            };
            in_time(self.patience, self.stream.read_exact(&mut next.piece)).await?;
            let tree = self.batch.tree(next.blob);
            if !tree.is_some_and(|tree| tree.holds(u64::from(next.chunk), &next.piece)) {
                self.unfit.push(next.blob);
                return Err(PullFailure::WrongBytes(format!("in chunk {}", next.chunk)));
            }
            if let Some(place) = self.batch.place(next.blob) {
                let at = u64::from(next.chunk) * CHUNK as u64;
                place.write(at, &next.piece).map_err(PullFailure::Disk)?;
            }
            if let Some(Requested { blob, chunk, piece }) = requested.pop_front() {
                self.fetched += 1;
                if let Some(place) = self.batch.store(blob, chunk, piece) {
                    finish(self.batch, blob, place).await?;
                }
            }
        }
    }

    fn claim(&self, large: &[(u16, usize)]) -> Option<(ChunkRun, usize, Vec<BytesMut>)> {
        large.iter().find_map(|&(position, blob)| {
            let (first, pieces) = self.batch.claim(blob, RUN)?;
            let count = pieces.len() as u32;
            let run = ChunkRun {
                blob: position,
                first,
                count,
            };
            Some((run, blob, pieces))
        })
    }
}

/// Finishes a blob in its place.
async fn finish(batch: &Batch, blob: usize, place: Arc<dyn Place>) -> Result<(), PullFailure> {
    let finished = tokio::task::spawn_blocking(move || place.finish()).await;
    match finished.map_err(io::Error::from).flatten() {
        Ok(bytes) => {
            batch.complete(blob, bytes);
            Ok(())
        }
        Err(error) => {
            batch.lose(blob);
            Err(PullFailure::Disk(error))
        }
    }
}

async fn in_time<T>(
    patience: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, PullFailure> {
    let done = timeout(patience, work).await;
    Ok(done.map_err(|_| PullFailure::Silent(patience))??)
}
