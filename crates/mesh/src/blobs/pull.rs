//! One holder's part of a batch.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::BytesMut;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite};
use protocol::Hash;
use tokio::time::timeout;

use super::batch::Batch;
use super::tree::{CHUNK, Tree};
use super::wire::{self, Ask, Run};

/// Chunks asked for in one go.
pub(crate) const RUN: usize = 8;
/// Chunks that may be on their way from one holder: 8 MiB, enough for 100 ms at 80 MB/s.
const AHEAD: usize = 4 * RUN;

/// Why a holder brings nothing more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// It says that the blob is larger than it may be.
    #[error("its blob has {0} bytes, more than a blob of that name may have")]
    TooLarge(u64),
    /// What it sent is not of that blob.
    #[error("it sent wrong bytes ({0}): nothing more is taken from it for this blob")]
    Lied(String),
    /// The stream broke.
    #[error("the stream broke: {0}")]
    Cut(#[from] io::Error),
    /// It fell silent.
    #[error("it was silent for {0:?}")]
    Silent(Duration),
}

/// One holder's part.
#[derive(Debug)]
pub(crate) struct Part<'a, S> {
    pub(crate) batch: &'a Batch,
    /// The blobs that it is asked for.
    pub(crate) blobs: &'a [usize],
    pub(crate) stream: S,
    /// How long it may be silent.
    pub(crate) patience: Duration,
    /// Chunks and small blobs that it brought.
    pub(crate) brought: usize,
    /// Blobs for which it must not be asked again.
    pub(crate) unfit: Vec<usize>,
}

/// A chunk that was asked for.
struct Coming {
    blob: usize,
    chunk: u32,
    piece: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Part<'_, S> {
    /// Takes what this holder gives, until nothing is left to claim.
    pub(crate) async fn pull(&mut self) -> Result<(), Failure> {
        let large = self.begin().await?;
        let mut coming = VecDeque::new();
        let ended = self.chunks(&large, &mut coming).await;
        for Coming { blob, chunk, piece } in coming {
            self.batch.give_back(blob, chunk, piece);
        }
        ended
    }

    /// Asks for all blobs; takes the small ones and the shapes of the large ones, whose places on
    /// the stream and in the batch it gives.
    async fn begin(&mut self) -> Result<Vec<(u16, usize)>, Failure> {
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
        for ((place, &blob), ask) in (0u16..).zip(self.blobs).zip(&asks) {
            let length = in_time(self.patience, wire::read_length(&mut self.stream)).await?;
            let answered = match length {
                None => {
                    self.unfit.push(blob);
                    self.batch.asked(blob, false);
                    continue;
                }
                Some(length) if length > ask.limit || usize::try_from(length).is_err() => {
                    Err(Failure::TooLarge(length))
                }
                Some(length) if length <= CHUNK as u64 => self.small(blob, ask.hash, length).await,
                Some(length) => {
                    large.push((place, blob));
                    self.shape(blob, ask, length).await
                }
            };
            if let Err(Failure::TooLarge(_) | Failure::Lied(_)) = answered {
                self.unfit.push(blob);
            }
            answered?;
        }
        // What came, and what was refused.
        self.batch.news.notify_one();
        Ok(large)
    }

    async fn small(&mut self, blob: usize, hash: Hash, length: u64) -> Result<(), Failure> {
        let mut bytes = BytesMut::zeroed(length as usize);
        in_time(self.patience, self.stream.read_exact(&mut bytes)).await?;
        if Hash::of(&bytes) != hash {
            return Err(Failure::Lied("in its only chunk".into()));
        }
        self.brought += 1;
        self.batch.came(blob, bytes.freeze());
        Ok(())
    }

    async fn shape(&mut self, blob: usize, ask: &Ask, length: u64) -> Result<(), Failure> {
        let agreed = if ask.tree {
            let values = in_time(self.patience, wire::read_values(&mut self.stream, length));
            let tree = Tree::claimed(ask.hash, length, values.await?)
                .ok_or_else(|| Failure::Lied("a tree of another hash".into()))?;
            self.batch.begin(blob, tree)
        } else {
            // It may have come from others meanwhile; then its tree is not needed any more.
            self.batch
                .tree(blob)
                .is_none_or(|tree| tree.length() == length)
        };
        match agreed {
            true => Ok(()),
            false => Err(Failure::Lied("another length than another holder".into())),
        }
    }

    /// Claims chunks, asks for them ahead of time, and verifies each when it is here.
    async fn chunks(
        &mut self,
        large: &[(u16, usize)],
        coming: &mut VecDeque<Coming>,
    ) -> Result<(), Failure> {
        loop {
            while coming.len() + RUN <= AHEAD
                && let Some((run, blob, pieces)) = self.claim(large)
            {
                let chunks = (run.first..).zip(pieces);
                coming.extend(chunks.map(|(chunk, piece)| Coming { blob, chunk, piece }));
                wire::write_run(&mut self.stream, run).await?;
            }
            let Some(next) = coming.front_mut() else {
                return Ok(());
            };
            in_time(self.patience, self.stream.read_exact(&mut next.piece)).await?;
            let tree = self.batch.tree(next.blob);
            if !tree.is_some_and(|tree| tree.holds(u64::from(next.chunk), &next.piece)) {
                self.unfit.push(next.blob);
                return Err(Failure::Lied(format!("in chunk {}", next.chunk)));
            }
            if let Some(Coming { blob, chunk, piece }) = coming.pop_front() {
                self.brought += 1;
                self.batch.arrived(blob, chunk, piece);
            }
        }
    }

    fn claim(&self, large: &[(u16, usize)]) -> Option<(Run, usize, Vec<BytesMut>)> {
        large.iter().find_map(|&(place, blob)| {
            let (first, pieces) = self.batch.claim(blob, RUN)?;
            let count = pieces.len() as u32;
            let run = Run {
                blob: place,
                first,
                count,
            };
            Some((run, blob, pieces))
        })
    }
}

async fn in_time<T>(
    patience: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> Result<T, Failure> {
    let done = timeout(patience, work).await;
    Ok(done.map_err(|_| Failure::Silent(patience))??)
}
