//! Tests of fetching from honest, Byzantine and failing holders, over pipes in memory.

#[path = "../../../../../tests/fuzz/engine.rs"]
mod engine;
mod fuzz;
mod spooled;

use std::time::Duration;

use bytes::Bytes;
use futures::{AsyncReadExt, AsyncWriteExt};
use protocol::Hash;
use protocol::net::BlobRequest;
use tokio::io::{DuplexStream, duplex};
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

use super::batch::Batch;
use super::pull::{BatchPart, PullFailure};
use super::tree::{CHUNK, Tree};
use super::wire;

const PATIENCE: Duration = Duration::from_secs(10);

type Pipe = Compat<DuplexStream>;

fn pipe() -> (Pipe, Pipe) {
    let (client, holder) = duplex(CHUNK);
    (client.compat(), holder.compat())
}

fn blob(chunks: usize) -> Bytes {
    (0..chunks * CHUNK - 1000)
        .map(|i| (i / 7 + i / CHUNK) as u8)
        .collect()
}

fn batch(blobs: &[&Bytes]) -> Batch {
    let wish = |blob: &&Bytes| BlobRequest {
        hash: Hash::of(blob),
        limit: blob.len() as u64,
    };
    Batch::new(blobs.iter().map(wish).collect(), None, |_| None)
}

/// Fetches the first blob of a batch. Returns the blobs that the holder must not be asked for again.
async fn pull(batch: &Batch, stream: Pipe) -> (Result<(), PullFailure>, Vec<usize>) {
    let mut part = BatchPart {
        batch,
        blobs: &[0],
        stream,
        patience: PATIENCE,
        fetched: 0,
        unfit: Vec::new(),
    };
    let ended = part.pull().await;
    (ended, part.unfit)
}

/// Serves one blob with this tree and these bytes, and stops after `most` bytes. Returns the chunks
/// that were requested.
async fn hold(mut stream: Pipe, tree: Tree, bytes: Bytes, most: usize) -> Vec<u32> {
    let (mut asked, mut left) = (Vec::new(), most);
    let served = async {
        let asks = wire::read_asks(&mut stream).await?;
        wire::write_length(&mut stream, Some(tree.length())).await?;
        if asks[0].tree {
            wire::write_values(&mut stream, tree.values()).await?;
        }
        while let Some(run) = wire::read_run(&mut stream).await? {
            asked.extend(run.first..run.first + run.count);
            let range = run.within(bytes.len()).expect("within the blob");
            let now = range.len().min(left);
            stream.write_all(&bytes[range][..now]).await?;
            left -= now;
            if left == 0 {
                return stream.close().await;
            }
        }
        Ok(())
    };
    // The client closes the stream when it needs nothing more.
    let _ = served.await;
    asked
}

/// Number of chunks of the first blob that are present.
fn present(batch: &Batch) -> usize {
    let missing = std::iter::from_fn(|| batch.claim(0, usize::MAX));
    let claimed: Vec<_> = missing.collect();
    let all = batch.tree(0).map_or(0, |tree| tree.values().len());
    let mut missing = 0;
    for (first, pieces) in claimed {
        missing += pieces.len();
        (first..)
            .zip(pieces)
            .for_each(|(chunk, piece)| batch.give_back(0, chunk, piece));
    }
    all - missing
}

#[tokio::test]
async fn a_holder_that_sends_wrong_bytes_is_refused_at_that_chunk() {
    let right = blob(20);
    let mut wrong = right.to_vec();
    wrong[10 * CHUNK + 3] ^= 1;
    let batch = batch(&[&right]);
    let (client, holder) = pipe();
    let byzantine = hold(holder, Tree::of(&right), wrong.into(), usize::MAX);
    let ((pulled, unfit), _) = tokio::join!(pull(&batch, client), byzantine);
    assert!(matches!(pulled, Err(PullFailure::WrongBytes(why)) if why == "in chunk 10"));
    assert_eq!(unfit, [0]);
    // Earlier chunks are kept, later ones were not accepted, and an honest holder gives the rest.
    assert_eq!(present(&batch), 10);
    let (client, holder) = pipe();
    let honest = hold(holder, Tree::of(&right), right.clone(), usize::MAX);
    let ((pulled, _), asked) = tokio::join!(pull(&batch, client), honest);
    assert!(pulled.is_ok());
    assert_eq!(asked, (10..20).collect::<Vec<_>>());
    assert_eq!(batch.take_complete(), [(Hash::of(&right), right)]);
}

#[tokio::test]
async fn after_a_cut_at_most_one_chunk_is_sent_again() {
    let right = blob(20);
    let batch = batch(&[&right]);
    // The cut is in the middle of chunk 5, so only bytes of that chunk are sent twice.
    let sent = 5 * CHUNK + CHUNK / 2;
    let (client, holder) = pipe();
    let cut = hold(holder, Tree::of(&right), right.clone(), sent);
    let ((pulled, unfit), _) = tokio::join!(pull(&batch, client), cut);
    assert!(matches!(pulled, Err(PullFailure::Cut(_))) && unfit.is_empty());
    assert_eq!(present(&batch), 5);
    // The same holds in a new fetch, after the blob was reported as missing.
    let (missing, mut boards) = batch.end();
    assert_eq!((missing, boards.len()), (vec![Hash::of(&right)], 1));
    let mut unfinished = super::chunk_map::Unfinished::default();
    boards.drain(..).for_each(|board| unfinished.keep(board));
    let wish = batch.wish(0);
    let batch = Batch::new(vec![wish], None, |wish| unfinished.take(wish.hash));
    let (client, holder) = pipe();
    let rest = hold(holder, Tree::of(&right), right.clone(), usize::MAX);
    let ((pulled, _), asked) = tokio::join!(pull(&batch, client), rest);
    assert!(pulled.is_ok());
    assert_eq!(asked, (5..20).collect::<Vec<_>>());
    assert_eq!(batch.take_complete(), [(Hash::of(&right), right)]);
}

#[tokio::test]
async fn several_holders_share_the_work_without_overlap() {
    let right = blob(100);
    let batch = batch(&[&right]);
    let (one, first) = pipe();
    let (two, second) = pipe();
    let (a, b, mut asked, more) = tokio::join!(
        pull(&batch, one),
        pull(&batch, two),
        hold(first, Tree::of(&right), right.clone(), usize::MAX),
        hold(second, Tree::of(&right), right.clone(), usize::MAX),
    );
    assert!(a.0.is_ok() && b.0.is_ok());
    assert!(
        asked.len() >= 10 && more.len() >= 10,
        "{} and {}",
        asked.len(),
        more.len()
    );
    asked.extend(more);
    asked.sort_unstable();
    assert_eq!(asked, (0..100).collect::<Vec<_>>());
    assert_eq!(batch.take_complete(), [(Hash::of(&right), right)]);
}

#[tokio::test]
async fn a_blob_over_the_limit_is_refused_before_its_bytes_are_read() {
    for right in [blob(20), blob(1)] {
        let limit = right.len() as u64 - 1;
        let hash = Hash::of(&right);
        let batch = Batch::new(vec![BlobRequest { hash, limit }], None, |_| None);
        let (client, mut holder) = pipe();
        let byzantine = async {
            let asks = wire::read_asks(&mut holder).await.expect("asks");
            assert_eq!(asks[0].limit, limit);
            // The holder sends only the length. A client that expected more would wait.
            let length = Some(right.len() as u64);
            wire::write_length(&mut holder, length)
                .await
                .expect("answers");
            let mut rest = Vec::new();
            holder.read_to_end(&mut rest).await.expect("hangs up");
            rest
        };
        let ((pulled, unfit), rest) = tokio::join!(pull(&batch, client), byzantine);
        assert!(matches!(pulled, Err(PullFailure::TooLarge(length)) if length == limit + 1));
        assert_eq!(unfit, [0]);
        assert!(rest.is_empty() && batch.tree(0).is_none());
    }
}

#[tokio::test]
async fn the_tree_of_another_blob_is_refused_before_any_request() {
    let (right, other) = (blob(20), blob(20).slice(1..));
    let batch = batch(&[&right]);
    let (client, holder) = pipe();
    let byzantine = hold(holder, Tree::of(&other), other.clone(), usize::MAX);
    let ((pulled, _), asked) = tokio::join!(pull(&batch, client), byzantine);
    assert!(
        matches!(pulled, Err(PullFailure::WrongBytes(why)) if why == "the tree of another hash")
    );
    assert!(asked.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_silent_holder_is_given_up() {
    let batch = batch(&[&blob(2)]);
    let (client, _silent) = pipe();
    assert!(matches!(
        pull(&batch, client).await,
        (Err(PullFailure::Silent(PATIENCE)), _)
    ));
}
