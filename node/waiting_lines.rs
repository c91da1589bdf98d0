//! Lines that wait for a reader: written by a thread of their own, so that a reader that stands still (a
//! terminal that is paused, a full pipe) never holds up the node. What waits is bounded; lines beyond
//! that are dropped, counted, and said to be missing where they are missing.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Lines that may wait; more are dropped and counted.
const MOST: usize = 4096;

/// Next step of the thread.
enum WriterStep {
    /// Write a line.
    Line(Vec<u8>),
    /// Say that all lines before it are written.
    Tell(SyncSender<()>),
}

/// The lines that wait to be written. The thread that writes them ends after the last clone is dropped.
#[derive(Clone)]
pub(crate) struct WaitingLines {
    steps: SyncSender<WriterStep>,
    dropped: Arc<AtomicU64>,
}

impl WaitingLines {
    /// Starts the thread, which writes to `out`. `missing` makes the line that says how many are missing.
    pub(crate) fn start(
        out: impl Write + Send + 'static,
        missing: impl Fn(u64) -> String + Send + 'static,
    ) -> (Self, JoinHandle<()>) {
        let (lines, steps) = Self::new(MOST);
        let dropped = lines.dropped.clone();
        let thread = thread::spawn(move || write(&steps, &dropped, out, missing));
        (lines, thread)
    }

    fn new(most: usize) -> (Self, Receiver<WriterStep>) {
        let (steps, waiting) = sync_channel(most);
        let dropped = Arc::default();
        (Self { steps, dropped }, waiting)
    }

    /// Writes a line, which ends as a line does, when its turn comes.
    pub(crate) fn send(&self, line: Vec<u8>) {
        if self.steps.try_send(WriterStep::Line(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines are written, but no longer than `most`: nobody may read them.
    pub(crate) fn wait(&self, most: Duration) {
        let (written, wait) = sync_channel(1);
        if self.steps.try_send(WriterStep::Tell(written)).is_ok() {
            let _ = wait.recv_timeout(most);
        }
    }
}

fn write(
    steps: &Receiver<WriterStep>,
    dropped: &AtomicU64,
    mut out: impl Write,
    missing: impl Fn(u64) -> String,
) {
    let mut closed = false;
    for step in steps {
        match step {
            // The node goes on where nobody can read any more.
            WriterStep::Line(_) if closed => {}
            WriterStep::Line(line) => {
                let mut written = out.write_all(&line);
                let lost = dropped.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    written = written.and_then(|()| writeln!(out, "{}", missing(lost)));
                }
                closed = written.and_then(|()| out.flush()).is_err();
            }
            WriterStep::Tell(written) => drop(written.send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_not_read_in_time_are_counted_where_they_are_missing() {
        let (lines, steps) = WaitingLines::new(2);
        for line in ["one\n", "two\n", "lost\n", "lost\n", "lost\n"] {
            lines.send(line.into());
        }
        let dropped = lines.dropped.clone();
        drop(lines);
        let mut out = Vec::new();
        write(&steps, &dropped, &mut out, |lost| format!("{lost} missing"));
        assert_eq!(String::from_utf8(out).unwrap(), "one\n3 missing\ntwo\n");
    }

    /// A stream that somebody has closed.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_end_is_reached_though_the_stream_is_closed() {
        let (lines, thread) = WaitingLines::start(Closed, |lost| lost.to_string());
        for _ in 0..10_000 {
            lines.send(b"to nobody\n".to_vec());
        }
        lines.wait(Duration::from_secs(60));
        drop(lines);
        thread.join().unwrap();
    }
}
