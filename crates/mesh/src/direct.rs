//! Sends and receives frames of one member, over one stream each way, so that they arrive in order.
//!
//! ```text
//! kind 1 (0 sent, 1 published) │ length 4, big-endian │ frame
//! ```
//!
//! The stream is opened with the first frame, and again after it broke or a newer connection was
//! made: writes to a connection whose other end has gone seem to succeed until the connection times
//! out. A frame that was being written when the stream broke is written once more; frames in transit
//! are lost. When the receiving silo is behind, its mesh stops reading, the stream fills, then the
//! queue of the sender, and frames that do not fit are lost. Frames for a member that has
//! disconnected are lost at once. Frames for a member that was never connected wait in the queue, so
//! that nodes that start together need not send everything twice.
//!
//! A stream on which a frame larger than the limit begins, or which has bytes that are no frame, is
//! closed. The second such stream mutes the member.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::Stream;
use protocol::net::Event;
use protocol::{Hash, MemberIndex};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::gossip::{FrameOrigin, PublishedFrames};
use crate::members::Peer;
use crate::pace::Pace;
use crate::queue::{Addressed, QueueReceiver};
use crate::streams::{StreamKind, StreamOpener};

/// Frames up to this size are written together with their header.
const SMALL: usize = 16 << 10;
/// Time for which the rest of a stream is read after its successor was opened.
const FAREWELL: Duration = Duration::from_secs(1);

/// Writes the frames in the queue to `peer` until the mesh ends.
pub(crate) async fn write(peer: Arc<Peer>, opener: StreamOpener, mut queue: QueueReceiver) {
    let mut stream = None;
    peer.wait_connected().await;
    while let Some((addressed, frame)) = queue.recv().await {
        let flush = queue.is_empty();
        let newest = peer.connections();
        if let Some((_, old)) = stream.take_if(|(of, _)| *of != newest) {
            tokio::spawn(close(old));
        }
        // A second attempt on a new stream, if the old one broke.
        for _ in 0..2 {
            let open = match stream.take() {
                Some((_, open)) => Ok(open),
                None => opener.open(peer.id, StreamKind::Frames).await,
            };
            let mut open = match open {
                Ok(open) => open,
                Err(error) => {
                    tracing::debug!(member = %peer.member, "a frame is lost: {error}");
                    break;
                }
            };
            match write_frame(&mut open, addressed, &frame, flush).await {
                Ok(()) => {
                    stream = Some((newest, open));
                    break;
                }
                Err(error) => {
                    tracing::debug!(member = %peer.member, "the stream of frames broke: {error}");
                }
            }
        }
    }
}

/// Closes a stream after its buffered bytes are sent.
async fn close(mut stream: Stream) {
    let _ = timeout(FAREWELL, stream.close()).await;
}

async fn write_frame(
    to: &mut (impl AsyncWrite + Unpin),
    addressed: Addressed,
    frame: &[u8],
    flush: bool,
) -> io::Result<()> {
    let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
    let mut start = Vec::with_capacity(5 + frame.len().min(SMALL));
    start.push(addressed as u8);
    start.extend_from_slice(&length.to_be_bytes());
    let rest = if frame.len() <= SMALL {
        start.extend_from_slice(frame);
        &[]
    } else {
        frame
    };
    to.write_all(&start).await?;
    to.write_all(rest).await?;
    if flush { to.flush().await } else { Ok(()) }
}

/// Reason for which a stream of frames is closed.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("expected a frame, found other bytes: the stream is closed, the connection stays")]
    Garbage,
    #[error(
        "expected a frame of at most {1} bytes, found one of {0}: the stream is closed, the \
         connection stays (do both nodes have the same federation.toml?)"
    )]
    TooLarge(usize, usize),
}

/// The next item on a stream of frames.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Frame(Addressed, Bytes),
    End,
}

/// Reads the frames of one member and passes them to the silo. Waits while the silo is behind.
pub(crate) struct Reader {
    pub(crate) member: MemberIndex,
    /// Pace at which its streams are read.
    pub(crate) pace: Arc<Pace>,
    /// Streams that it opened; a newer one replaces an older one.
    pub(crate) streams: mpsc::Receiver<Stream>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) seen: Arc<Mutex<PublishedFrames>>,
    /// Largest frame, in bytes.
    pub(crate) limit: usize,
}

impl Reader {
    /// Runs until the mesh or the silo ends.
    pub(crate) async fn run(mut self) {
        let mut next = self.streams.recv().await;
        while let Some(stream) = next {
            next = match self.read(stream).await {
                Some(newer) => Some(newer),
                None => self.streams.recv().await,
            };
        }
    }

    /// Reads a stream to its end, or until a newer one replaces it. Returns the newer one.
    async fn read(&mut self, mut stream: Stream) -> Option<Stream> {
        let mut newer = None;
        let mut until = Instant::now();
        loop {
            let frame = {
                let read = read_frame(&mut stream, self.limit);
                tokio::pin!(read);
                loop {
                    tokio::select! {
                        frame = &mut read => break frame,
                        () = sleep_until(until), if newer.is_some() => return newer,
                        Some(stream) = self.streams.recv(), if newer.is_none() => {
                            (newer, until) = (Some(stream), Instant::now() + FAREWELL);
                        }
                    }
                }
            };
            match frame {
                Ok(Next::Frame(..)) if self.pace.muted().is_some() => return newer,
                Ok(Next::Frame(addressed, frame)) => {
                    self.deliver(addressed, frame).await?;
                    let pause = self.pace.frame();
                    if !pause.is_zero() {
                        sleep(pause).await;
                    }
                }
                Ok(Next::End) => return newer,
                Err(ReadError::Io(error)) => {
                    tracing::debug!(member = %self.member, "a stream of frames ended: {error}");
                    return newer;
                }
                Err(error) => {
                    let muted = self.pace.bad_stream();
                    if self.pace.may_warn() {
                        tracing::warn!(
                            member = %self.member, ?muted,
                            "a stream of frames was closed: {error}"
                        );
                    }
                    return newer;
                }
            }
        }
    }

    async fn deliver(&self, addressed: Addressed, frame: Bytes) -> Option<()> {
        if addressed == Addressed::Published {
            let mut seen = self
                .seen
                .lock()
                .expect("no code panics while it holds this lock");
            if !seen.first(Hash::of(&frame), FrameOrigin::Direct) {
                return Some(());
            }
        }
        let event = Event::Received {
            from: self.member,
            frame,
            ticket: None,
        };
        self.events.send(event).await.ok()
    }
}

/// Reads the next frame. Nothing is read of one that is too large.
async fn read_frame(from: &mut (impl AsyncRead + Unpin), limit: usize) -> Result<Next, ReadError> {
    let (mut kind, mut length) = ([0; 1], [0; 4]);
    if from.read(&mut kind).await? == 0 {
        return Ok(Next::End);
    }
    let addressed = match kind[0] {
        0 => Addressed::Sent,
        1 => Addressed::Published,
        _ => return Err(ReadError::Garbage),
    };
    from.read_exact(&mut length).await?;
    let length = u32::from_be_bytes(length) as usize;
    if length > limit {
        return Err(ReadError::TooLarge(length, limit));
    }
    // Zeroed memory costs nothing until it is written, so a length alone costs nothing.
    let mut frame = BytesMut::zeroed(length);
    from.read_exact(&mut frame).await?;
    Ok(Next::Frame(addressed, frame.freeze()))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const LIMIT: usize = 1000;

    /// Reads all frames from these bytes. Also returns the error that ended it.
    fn read(mut bytes: &[u8]) -> (Vec<Next>, Option<ReadError>) {
        let mut all = Vec::new();
        loop {
            match read_frame(&mut bytes, LIMIT)
                .now_or_never()
                .expect("memory")
            {
                Ok(Next::End) => return (all, None),
                Ok(next) => all.push(next),
                Err(error) => return (all, Some(error)),
            }
        }
    }

    fn written(frames: &[(Addressed, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (addressed, frame) in frames {
            let write = write_frame(&mut bytes, *addressed, frame, true);
            write.now_or_never().expect("memory").expect("takes all");
        }
        bytes
    }

    #[test]
    fn a_too_large_frame_ends_the_stream_before_it_is_read() {
        let frame = |length| vec![7; length];
        let bytes = written(&[
            (Addressed::Sent, frame(LIMIT)),
            (Addressed::Published, frame(0)),
            (Addressed::Published, frame(LIMIT + 1)),
        ]);
        // The announced bytes need not even arrive.
        for bytes in [&bytes[..], &bytes[..bytes.len() - LIMIT - 1]] {
            let (all, ended) = read(bytes);
            let expected = [
                Next::Frame(Addressed::Sent, frame(LIMIT).into()),
                Next::Frame(Addressed::Published, Bytes::new()),
            ];
            assert_eq!(all, expected);
            let ended = ended.expect("too large").to_string();
            assert!(
                ended.contains("at most 1000 bytes, found one of 1001"),
                "{ended}"
            );
        }
    }

    #[test]
    fn other_bytes_and_cuts_end_the_stream() {
        let good = written(&[(Addressed::Sent, vec![7; 10])]);
        let garbage = [&good[..], b"GET / HTTP/1.1"].concat();
        let (all, ended) = read(&garbage);
        assert_eq!(all.len(), 1);
        let ended = ended.expect("no frame").to_string();
        assert!(
            ended.contains("expected a frame") && ended.contains("connection stays"),
            "{ended}"
        );
        for cut in [3, 9] {
            let (all, ended) = read(&good[..cut]);
            assert!(
                all.is_empty() && matches!(ended, Some(ReadError::Io(_))),
                "{cut}"
            );
        }
    }
}
