//! Streams of blobs whose other end sends anything.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{io, iter};

use bytes::Bytes;
use futures::io::Cursor;
use futures::{AsyncRead, AsyncWrite, AsyncWriteExt};
use protocol::net::{BlobRequest, Event};
use protocol::{Hash, MemberIndex};
use tokio::sync::mpsc;

use super::super::batch::Batch;
use super::super::pull::BatchPart;
use super::super::server::BlobServer;
use super::super::tree::{CHUNK, Tree};
use super::super::wire::{self, Ask, ChunkRun};
use super::engine::{FuzzTarget, fuzz, gist};

/// A stream that reads what it is given, and takes everything that is written.
struct ScriptedStream<'a> {
    reads: &'a [u8],
    written: usize,
}

impl AsyncRead for ScriptedStream<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let some = into.len().min(self.reads.len());
        let (now, later) = self.reads.split_at(some);
        into[..some].copy_from_slice(now);
        self.reads = later;
        Poll::Ready(Ok(some))
    }
}

impl AsyncWrite for ScriptedStream<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.written += bytes.len();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn blob(length: usize) -> Bytes {
    (0..length).map(|at| (at / 7 + at / CHUNK) as u8).collect()
}

/// Returns what a client writes that wants all of these blobs.
async fn requests(asks: &[Ask]) -> io::Result<Vec<u8>> {
    let mut to = Cursor::new(Vec::new());
    wire::write_asks(&mut to, asks).await?;
    for first in 0..3 {
        let (blob, count) = (1, 1);
        wire::write_run(&mut to, ChunkRun { blob, first, count }).await?;
    }
    Ok(to.into_inner())
}

/// Returns what a holder answers that has a small blob and a large one.
async fn answers(small: &[u8], large: &Tree) -> io::Result<Vec<u8>> {
    let mut to = Cursor::new(Vec::new());
    wire::write_length(&mut to, Some(small.len() as u64)).await?;
    to.write_all(small).await?;
    wire::write_length(&mut to, Some(large.length())).await?;
    wire::write_values(&mut to, large.values()).await?;
    Ok(to.into_inner())
}

#[test]
fn blob_streams() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime can be made");
    let (small, large) = (blob(1000), blob(2 * CHUNK + 500));
    let limit = large.len() as u64;
    let wishes = [&small, &large].map(|blob| BlobRequest {
        hash: Hash::of(blob),
        limit,
    });
    let ask = |wish: &BlobRequest| Ask {
        hash: wish.hash,
        limit: wish.limit,
        tree: true,
    };
    let asks = wishes.map(|wish| ask(&wish));
    // The first byte says which side reads the others.
    let requests = runtime.block_on(requests(&asks));
    let answers = runtime.block_on(answers(&small, &Tree::of(&large)));
    let examples = [requests, answers].map(|bytes| bytes.expect("writing to memory does not fail"));
    let examples = iter::zip(0u8.., examples).map(|(side, bytes)| [&[side][..], &bytes].concat());
    let mut run = |input: &[u8]| {
        let (Some(side), reads) = (input.first(), input.get(1..).unwrap_or_default()) else {
            return "nothing".to_owned();
        };
        let stream = ScriptedStream { reads, written: 0 };
        match side % 2 {
            0 => runtime.block_on(serve(stream, [&small, &large])),
            _ => runtime.block_on(fetch(stream, &wishes)),
        }
    };
    fuzz(FuzzTarget {
        name: "blobs",
        examples: examples.collect(),
        words: &[],
        inputs: 800,
        // The blobs that were asked for, and no more however long those are that are claimed. Only
        // `just fuzz` counts: it runs this test by itself, and other tests of this program allocate too.
        memory: |length| match std::env::var_os("ROTA_FUZZ_MINUTES") {
            Some(_) => (4 << 20) + 64 * length,
            None => usize::MAX,
        },
        run: &mut run,
    });
}

/// Serves a client that sends anything.
async fn serve(stream: ScriptedStream<'_>, blobs: [&Bytes; 2]) -> String {
    let (events, mut asked) = mpsc::channel(4);
    let desk = BlobServer::new(events);
    let silo = async {
        while let Some(event) = asked.recv().await {
            if let Event::Wanted {
                blobs: wanted,
                ticket,
                ..
            } = event
            {
                let find = |hash: &Hash| {
                    blobs
                        .into_iter()
                        .find(|blob| Hash::of(blob) == *hash)
                        .cloned()
                };
                desk.answer(ticket, wanted.iter().map(find).collect());
            }
        }
    };
    let served = tokio::select! {
        biased;
        served = desk.serve(MemberIndex(1), stream) => served,
        () = silo => Ok(()),
    };
    served.map_or_else(|error| gist(&error.to_string()), |()| "served".into())
}

/// Fetches from a holder that sends anything.
async fn fetch(stream: ScriptedStream<'_>, wishes: &[BlobRequest; 2]) -> String {
    let batch = Batch::new(wishes.to_vec(), None, |_| None);
    let mut part = BatchPart {
        batch: &batch,
        blobs: &[0, 1],
        stream,
        patience: Duration::from_secs(1),
        fetched: 0,
        unfit: Vec::new(),
    };
    let ended = part.pull().await;
    let (fetched, unfit) = (part.fetched, part.unfit.len());
    let complete = batch.take_complete();
    let right = iter::zip(&complete, wishes).all(|((hash, bytes), _)| Hash::of(bytes) == *hash);
    assert!(right, "a blob has other bytes than its hash says");
    let why = ended.map_or_else(|error| gist(&error.to_string()), |()| "fetched".into());
    format!("{why} {fetched} {unfit} {}", complete.len())
}
