//! The format of a blob stream.
//!
//! ```text
//! client: number of blobs 2 │ each: hash 32 │ limit 8 │ tree wanted 1
//! holder: for each, in that order
//!           0                                     refused
//!           1 │ length 8 │ bytes                  a blob of one chunk
//!           1 │ length 8 │ tree, if wanted        a larger blob: 32 bytes for each chunk
//! client: position of a blob 2 │ first chunk 4 │ number of chunks 4      any number of times
//! holder: the bytes of these chunks
//! ```
//!
//! Numbers are big-endian and their sizes are in bytes. The length comes before everything that
//! depends on it, so a blob over the limit costs the client nine bytes. A holder refuses a blob that
//! is larger than the client's limit.

use std::io;

use blake3::hazmat::ChainingValue;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use protocol::Hash;

use super::tree::{self, CHUNK};

/// Most blobs that can be requested on one stream.
pub(crate) const BLOBS: usize = 1024;

/// A request for a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) hash: Hash,
    /// Largest size that the client accepts, in bytes.
    pub(crate) limit: u64,
    /// True if the client still needs the tree.
    pub(crate) tree: bool,
}

/// Consecutive chunks of one of the requested blobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkRun {
    pub(crate) blob: u16,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

impl ChunkRun {
    /// The range of its bytes in a blob of this length; `None` if it goes beyond the end.
    pub(crate) fn within(self, length: usize) -> Option<std::ops::Range<usize>> {
        let first = self.first as usize * CHUNK;
        let end = (self.first as usize + self.count as usize) * CHUNK;
        // The last chunk may be shorter, and no chunk comes after it.
        (self.count > 0 && first < length && end < length + CHUNK).then(|| first..end.min(length))
    }
}

pub(crate) async fn write_asks(to: &mut (impl AsyncWrite + Unpin), asks: &[Ask]) -> io::Result<()> {
    let count = u16::try_from(asks.len()).map_err(io::Error::other)?;
    let mut bytes = count.to_be_bytes().to_vec();
    for ask in asks {
        bytes.extend_from_slice(&ask.hash.0);
        bytes.extend_from_slice(&ask.limit.to_be_bytes());
        bytes.push(u8::from(ask.tree));
    }
    to.write_all(&bytes).await?;
    to.flush().await
}

pub(crate) async fn read_asks(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<Ask>> {
    let mut count = [0; 2];
    from.read_exact(&mut count).await?;
    let count = usize::from(u16::from_be_bytes(count));
    if count > BLOBS {
        return Err(io::Error::other(format!(
            "it requests {count} blobs, at most {BLOBS} are allowed on a stream"
        )));
    }
    let mut bytes = vec![0; 41 * count];
    from.read_exact(&mut bytes).await?;
    let ask = |bytes: &[u8; 41]| {
        let (mut hash, mut limit) = ([0; 32], [0; 8]);
        hash.copy_from_slice(&bytes[..32]);
        limit.copy_from_slice(&bytes[32..40]);
        Ask {
            hash: Hash(hash),
            limit: u64::from_be_bytes(limit),
            tree: bytes[40] != 0,
        }
    };
    Ok(bytes.as_chunks::<41>().0.iter().map(ask).collect())
}

/// Writes the beginning of the answer for one blob: its length, or `None` to refuse it.
pub(crate) async fn write_length(
    to: &mut (impl AsyncWrite + Unpin),
    length: Option<u64>,
) -> io::Result<()> {
    let mut bytes = vec![u8::from(length.is_some())];
    bytes.extend(length.map(u64::to_be_bytes).into_iter().flatten());
    to.write_all(&bytes).await
}

/// Reads the length of a blob; `None` if the holder refuses it.
pub(crate) async fn read_length(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<u64>> {
    let (mut yes, mut length) = ([0; 1], [0; 8]);
    from.read_exact(&mut yes).await?;
    if yes[0] == 0 {
        return Ok(None);
    }
    from.read_exact(&mut length).await?;
    Ok(Some(u64::from_be_bytes(length)))
}

/// Writes the tree of a blob of more than one chunk.
pub(crate) async fn write_values(
    to: &mut (impl AsyncWrite + Unpin),
    values: &[ChainingValue],
) -> io::Result<()> {
    to.write_all(values.as_flattened()).await
}

/// Reads the tree of a blob whose length was accepted. Memory is allocated as the values arrive, so a
/// claimed length alone costs nothing.
pub(crate) async fn read_values(
    from: &mut (impl AsyncRead + Unpin),
    length: u64,
) -> io::Result<Vec<ChainingValue>> {
    let mut values = Vec::new();
    let mut left = tree::values(length);
    while left > 0 {
        let mut part = [[0; 32]; 128];
        let now = left.min(128) as usize;
        from.read_exact(part[..now].as_flattened_mut()).await?;
        values.extend_from_slice(&part[..now]);
        left -= now as u64;
    }
    Ok(values)
}

pub(crate) async fn write_run(to: &mut (impl AsyncWrite + Unpin), run: ChunkRun) -> io::Result<()> {
    let mut bytes = [0; 10];
    bytes[..2].copy_from_slice(&run.blob.to_be_bytes());
    bytes[2..6].copy_from_slice(&run.first.to_be_bytes());
    bytes[6..].copy_from_slice(&run.count.to_be_bytes());
    to.write_all(&bytes).await?;
    to.flush().await
}

/// Reads the next run; `None` at the end of the stream.
pub(crate) async fn read_run(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<ChunkRun>> {
    let (mut blob, mut first, mut count) = ([0; 2], [0; 4], [0; 4]);
    match from.read_exact(&mut blob).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    from.read_exact(&mut first).await?;
    from.read_exact(&mut count).await?;
    Ok(Some(ChunkRun {
        blob: u16::from_be_bytes(blob),
        first: u32::from_be_bytes(first),
        count: u32::from_be_bytes(count),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_beyond_the_end_of_the_blob_has_no_range() {
        let at = |first, count, length| {
            let blob = 0;
            ChunkRun { blob, first, count }.within(length)
        };
        assert_eq!(at(0, 1, 5), Some(0..5));
        assert_eq!(at(1, 2, 3 * CHUNK), Some(CHUNK..3 * CHUNK));
        assert_eq!(at(1, 2, 2 * CHUNK + 1), Some(CHUNK..2 * CHUNK + 1));
        assert_eq!(at(1, 2, 2 * CHUNK), None);
        assert_eq!(at(0, 0, 5), None);
        assert_eq!(at(u32::MAX, u32::MAX, 5), None);
        assert_eq!(at(0, 1, 0), None);
    }
}
