//! The bounded queue of frames to one member.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc;

/// The addressees of a frame, as its header on the stream states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addressed {
    /// One member.
    Sent = 0,
    /// All members. The receiver drops it if it has received it before.
    Published = 1,
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct QueueSender {
    frames: mpsc::Sender<(Addressed, Bytes)>,
    /// Bytes in the queue.
    bytes: Arc<AtomicUsize>,
    limit: usize,
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct QueueReceiver {
    frames: mpsc::Receiver<(Addressed, Bytes)>,
    bytes: Arc<AtomicUsize>,
}

/// A queue of at most `frames` frames (at least one) and `bytes` bytes.
pub(crate) fn queue(frames: usize, bytes: usize) -> (QueueSender, QueueReceiver) {
    let (sender, receiver) = mpsc::channel(frames.max(1));
    let queued = Arc::new(AtomicUsize::new(0));
    let sender = QueueSender {
        frames: sender,
        bytes: queued.clone(),
        limit: bytes,
    };
    let receiver = QueueReceiver {
        frames: receiver,
        bytes: queued,
    };
    (sender, receiver)
}

impl QueueSender {
    /// Queues a frame. False if it does not fit; any frame fits into an empty queue.
    pub(crate) fn offer(&self, addressed: Addressed, frame: Bytes) -> bool {
        let size = frame.len();
        let before = self.bytes.fetch_add(size, Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(size) <= self.limit;
        if fits && self.frames.try_send((addressed, frame)).is_ok() {
            return true;
        }
        self.bytes.fetch_sub(size, Ordering::Relaxed);
        false
    }
}

impl QueueReceiver {
    /// The next frame; `None` when the sender was dropped.
    pub(crate) async fn recv(&mut self) -> Option<(Addressed, Bytes)> {
        let next = self.frames.recv().await;
        if let Some((_, frame)) = &next {
            self.bytes.fetch_sub(frame.len(), Ordering::Relaxed);
        }
        next
    }

    /// Returns whether no frame is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn a_queue_bounds_frames_and_bytes_but_takes_any_single_frame() {
        let frame = |length| Bytes::from(vec![0; length]);
        let (sender, mut receiver) = queue(3, 100);
        assert!(sender.offer(Addressed::Sent, frame(1000)));
        assert!(!sender.offer(Addressed::Sent, frame(1)));
        assert!(receiver.recv().now_or_never().flatten().is_some());
        assert!((0..3).all(|_| sender.offer(Addressed::Sent, frame(10))));
        assert!(!sender.offer(Addressed::Sent, frame(10)));
    }
}
