//! Frames from one member to another: one stream each way, so that they arrive in order.
//!
//! ```text
//! kind 1 (0 sent, 1 published) │ length 4, big-endian │ frame
//! ```
//!
//! The stream is opened when there is something to say, and again after it broke or a newer
//! connection was made: what is written to a connection whose other end is gone seems to be sent,
//! until silence ends the connection. A frame that was
//! being written when it broke is written once more; those that were on their way are lost. When
//! the reading silo is behind, its mesh stops reading, the stream fills, the queue here fills, and
//! what does not fit into that is lost. Frames for a member that is not connected any more are lost
//! at once. Those for a member that was never connected wait in the queue: nodes that start together
//! need not say everything twice.
//!
//! A stream on which a frame is announced that is larger than frames may be, or which brings bytes
//! that are no frame, is read no further; the second such stream mutes the member.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use libp2p::Stream;
use protocol::net::Event;
use protocol::{Hash, MemberIndex};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::gossip::{Origin, Seen};
use crate::members::Peer;
use crate::pace::Pace;
use crate::streams::{Kind, Opener};

/// Frames up to this size are written together with their header.
const SMALL: usize = 16 << 10;
/// How long what is left in a stream is read after its successor was opened.
const FAREWELL: Duration = Duration::from_secs(1);

/// How a frame was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// To one member.
    Sent = 0,
    /// To all; reaches a member at most once.
    Published = 1,
}

type Outgoing = (Said, Bytes);

/// The sending end of the queue to one member.
#[derive(Debug)]
pub(crate) struct Line {
    queue: mpsc::Sender<Outgoing>,
    waiting: Arc<AtomicUsize>,
    limit: usize,
}

/// The other end.
#[derive(Debug)]
pub(crate) struct Waiting {
    queue: mpsc::Receiver<Outgoing>,
    bytes: Arc<AtomicUsize>,
}

/// A queue of so many frames and bytes.
pub(crate) fn line(frames: usize, bytes: usize) -> (Line, Waiting) {
    let (sender, receiver) = mpsc::channel(frames.max(1));
    let waiting = Arc::new(AtomicUsize::new(0));
    let line = Line {
        queue: sender,
        waiting: waiting.clone(),
        limit: bytes,
    };
    let waiting = Waiting {
        queue: receiver,
        bytes: waiting,
    };
    (line, waiting)
}

impl Line {
    /// Queues a frame; false if it does not fit.
    pub(crate) fn offer(&self, said: Said, frame: Bytes) -> bool {
        let size = frame.len();
        let before = self.waiting.fetch_add(size, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(size) <= self.limit;
        if fits && self.queue.try_send((said, frame)).is_ok() {
            return true;
        }
        self.waiting.fetch_sub(size, Ordering::Relaxed);
        false
    }
}

/// Writes what waits for `peer`, until the mesh ends.
pub(crate) async fn write(peer: Arc<Peer>, opener: Opener, mut waiting: Waiting) {
    let mut stream = None;
    peer.returned().await;
    while let Some((said, frame)) = waiting.queue.recv().await {
        waiting.bytes.fetch_sub(frame.len(), Ordering::Relaxed);
        let flush = waiting.queue.is_empty();
        let newest = peer.met();
        if let Some((_, old)) = stream.take_if(|(of, _)| *of != newest) {
            tokio::spawn(close(old));
        }
        // Once more on a new stream, if the old one broke.
        for _ in 0..2 {
            let open = match stream.take() {
                Some((_, open)) => Ok(open),
                None => opener.open(peer.id, Kind::Frames).await,
            };
            let mut open = match open {
                Ok(open) => open,
                Err(error) => {
                    tracing::debug!(member = %peer.member, "a frame is lost: {error}");
                    break;
                }
            };
            match write_frame(&mut open, said, &frame, flush).await {
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

/// Lets what is left in a stream go out, if anybody is there.
async fn close(mut stream: Stream) {
    let _ = timeout(FAREWELL, stream.close()).await;
}

async fn write_frame(
    to: &mut (impl AsyncWrite + Unpin),
    said: Said,
    frame: &[u8],
    flush: bool,
) -> io::Result<()> {
    let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
    let mut start = Vec::with_capacity(5 + frame.len().min(SMALL));
    start.push(said as u8);
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

/// Why a stream of frames is not read any further.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it sent bytes that are no frame: the stream is closed, the member is kept")]
    Garbage,
    #[error(
        "it began a frame of {0} bytes, and {1} is the most here: the stream is closed, the member \
         is kept (do both nodes run with the same agreement?)"
    )]
    TooLarge(usize, usize),
}

/// What comes next on a stream of frames.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Frame(Said, Bytes),
    End,
}

/// Reads frames of one member and hands them to the silo, waiting while the silo is behind.
pub(crate) struct Reader {
    pub(crate) member: MemberIndex,
    /// How fast it is listened to.
    pub(crate) pace: Arc<Pace>,
    /// Streams that it opened; the newest replaces the others.
    pub(crate) streams: mpsc::Receiver<Stream>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) seen: Arc<Mutex<Seen>>,
    /// Most bytes of a frame.
    pub(crate) limit: usize,
}

impl Reader {
    /// Until the mesh ends, or the silo.
    pub(crate) async fn run(mut self) {
        let mut next = self.streams.recv().await;
        while let Some(stream) = next {
            next = match self.read(stream).await {
                Some(newer) => Some(newer),
                None => self.streams.recv().await,
            };
        }
    }

    /// Reads a stream to its end, or until a newer one came and the old one had time to say what
    /// was left. Gives the newer one.
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
                Ok(Next::Frame(said, frame)) => {
                    self.deliver(said, frame).await?;
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

    async fn deliver(&self, said: Said, frame: Bytes) -> Option<()> {
        if said == Said::Published {
            let mut seen = self.seen.lock().expect("nobody panics while holding it");
            if !seen.first(Hash::of(&frame), Origin::Direct) {
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

/// The next frame. Of one that is too large nothing is read.
async fn read_frame(from: &mut (impl AsyncRead + Unpin), limit: usize) -> Result<Next, ReadError> {
    let (mut kind, mut length) = ([0; 1], [0; 4]);
    if from.read(&mut kind).await? == 0 {
        return Ok(Next::End);
    }
    let said = match kind[0] {
        0 => Said::Sent,
        1 => Said::Published,
        _ => return Err(ReadError::Garbage),
    };
    from.read_exact(&mut length).await?;
    let length = u32::from_be_bytes(length) as usize;
    if length > limit {
        return Err(ReadError::TooLarge(length, limit));
    }
    // Zeroed memory costs nothing until it is written: a length alone is no burden.
    let mut frame = BytesMut::zeroed(length);
    from.read_exact(&mut frame).await?;
    Ok(Next::Frame(said, frame.freeze()))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const LIMIT: usize = 1000;

    /// Everything that is read from these bytes, and why no more is.
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

    fn written(frames: &[(Said, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (said, frame) in frames {
            let write = write_frame(&mut bytes, *said, frame, true);
            write.now_or_never().expect("memory").expect("takes all");
        }
        bytes
    }

    #[test]
    fn a_frame_that_is_too_large_ends_the_stream_before_its_bytes_are_read() {
        let frame = |length| vec![7; length];
        let bytes = written(&[
            (Said::Sent, frame(LIMIT)),
            (Said::Published, frame(0)),
            (Said::Published, frame(LIMIT + 1)),
        ]);
        // What was announced need not even be there.
        for bytes in [&bytes[..], &bytes[..bytes.len() - LIMIT - 1]] {
            let (all, ended) = read(bytes);
            let expected = [
                Next::Frame(Said::Sent, frame(LIMIT).into()),
                Next::Frame(Said::Published, Bytes::new()),
            ];
            assert_eq!(all, expected);
            let ended = ended.expect("too large").to_string();
            assert!(ended.contains("1001 bytes, and 1000"), "{ended}");
        }
    }

    #[test]
    fn garbage_and_cuts_end_the_stream() {
        let good = written(&[(Said::Sent, vec![7; 10])]);
        let garbage = [&good[..], b"GET / HTTP/1.1"].concat();
        let (all, ended) = read(&garbage);
        assert_eq!(all.len(), 1);
        let ended = ended.expect("no frame").to_string();
        assert!(
            ended.contains("no frame") && ended.contains("is kept"),
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

    #[test]
    fn a_queue_holds_so_many_frames_and_bytes_and_any_single_one() {
        let frame = |length| Bytes::from(vec![0; length]);
        let (line, mut waiting) = line(3, 100);
        assert!(line.offer(Said::Sent, frame(1000)));
        assert!(!line.offer(Said::Sent, frame(1)));
        let (_, first) = waiting.queue.try_recv().expect("it waits");
        waiting.bytes.fetch_sub(first.len(), Ordering::Relaxed);
        assert!((0..3).all(|_| line.offer(Said::Sent, frame(10))));
        assert!(!line.offer(Said::Sent, frame(10)));
    }
}
