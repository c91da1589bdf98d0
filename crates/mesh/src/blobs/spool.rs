//! Places of large blobs while they are fetched, so that they need no memory.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

/// Gives large blobs that are being fetched a place outside of memory. A node gives them files.
pub trait Spool: Debug + Send + Sync {
    /// A place for a blob of this many bytes; `None` where it should be kept in memory.
    ///
    /// # Errors
    /// An error of the system. The blob is then kept in memory.
    fn place(&self, length: u64) -> io::Result<Option<Arc<dyn Place>>>;
}

/// The place of one blob, which is written in any order. What was written is gone when it is dropped,
/// unless it was finished.
pub trait Place: Debug + Send + Sync {
    /// Writes a part of the blob; `at` is the position of its first byte. Called by several tasks at
    /// once, for different parts, and on their threads: it should take no longer than a copy.
    ///
    /// # Errors
    /// An error of the system.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// The whole blob, after every byte of it was written. Called once, on a thread for blocking work.
    ///
    /// # Errors
    /// An error of the system.
    fn finish(&self) -> io::Result<Bytes>;
}
