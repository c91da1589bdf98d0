//! Messages to a program and back: pipes with threads of their own, or a socket without them, which the thread of
//! the caller reads and writes.

use std::io::{Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::Duration;

use super::wire::{Reply, receive};

/// Answers that may wait to be read; a program that says more has to wait itself.
const WAITING: usize = 256;

/// A message, or what is wrong with what was sent in its place.
pub(super) type HeardReply = Result<Reply, String>;

/// Reason for which a frame was not sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unsent {
    /// The other side is gone.
    Gone,
    /// The other side does not read. Pipes have threads that wait for it.
    #[cfg_attr(not(unix), allow(dead_code))]
    Full,
}

/// Carrier of messages to a program and back.
pub(super) trait ProgramLine: Send {
    /// Sends a frame.
    ///
    /// # Errors
    /// The other side is gone, or does not read.
    fn send(&mut self, frame: Vec<u8>) -> Result<(), Unsent>;

    /// The next message.
    ///
    /// # Errors
    /// There is none for this long, or there will be none.
    fn receive(&mut self, within: Duration) -> Result<HeardReply, RecvTimeoutError>;

    /// Returns whether the other side is there and has said nothing that was not received.
    fn is_quiet(&mut self) -> bool;

    /// Says nothing more.
    fn close(&mut self);
}

/// Pipes: a thread writes frames and another reads messages, so that a program that neither reads nor writes delays
/// nobody, and somebody else can look meanwhile whether it still runs.
pub(super) struct ProgramPipes {
    /// Frames to write; the thread behind it owns the pipe. `None` once it is closed.
    into: Option<Sender<Vec<u8>>>,
    replies: Receiver<HeardReply>,
}

impl ProgramPipes {
    /// The pipes of a program.
    pub(super) fn new(
        mut write: impl Write + Send + 'static,
        mut read: impl Read + Send + 'static,
    ) -> Self {
        let (into, frames) = mpsc::channel::<Vec<u8>>();
        thread::spawn(move || {
            for frame in frames {
                if write
                    .write_all(&frame)
                    .and_then(|()| write.flush())
                    .is_err()
                {
                    return;
                }
            }
        });
        let (heard, replies) = mpsc::sync_channel(WAITING);
        thread::spawn(move || {
            loop {
                let (reply, last) = match receive(&mut read) {
                    Ok(None) => return,
                    Ok(Some(reply)) => (Ok(reply), false),
                    Err(what) => (Err(what), true),
                };
                if heard.send(reply).is_err() || last {
                    return;
                }
            }
        });
        Self {
            into: Some(into),
            replies,
        }
    }
}

impl ProgramLine for ProgramPipes {
    fn send(&mut self, frame: Vec<u8>) -> Result<(), Unsent> {
        let into = self.into.as_ref().ok_or(Unsent::Gone)?;
        into.send(frame).map_err(|_| Unsent::Gone)
    }

    fn receive(&mut self, within: Duration) -> Result<HeardReply, RecvTimeoutError> {
        self.replies.recv_timeout(within)
    }

    fn is_quiet(&mut self) -> bool {
        matches!(self.replies.try_recv(), Err(TryRecvError::Empty))
    }

    fn close(&mut self) {
        self.into = None;
    }
}

#[cfg(unix)]
pub(super) use socket::ProgramSocket;

#[cfg(unix)]
mod socket {
    //! A socket, of which a thread for each direction would take longer than a short training: messages wait in it
    //! as they would in a channel, and shutting it down ends a read or write under way.

    use std::io::{self, ErrorKind, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::RecvTimeoutError;
    use std::time::{Duration, Instant};

    use super::super::wire::{frame_in, reply_of};
    use super::{HeardReply, ProgramLine, Unsent};

    /// Shortest time that a read may wait: zero means forever to the system.
    const SHORTEST: Duration = Duration::from_millis(1);
    /// Bytes that are read at once.
    const BLOCK: usize = 1 << 12;

    /// A socket that the thread of the caller reads and writes.
    pub(in super::super) struct ProgramSocket {
        stream: UnixStream,
        /// Bytes that were read and not received.
        held: Vec<u8>,
        /// Longest time that a read now waits.
        waits: Duration,
        /// True once there is nothing more to read.
        over: bool,
    }

    impl ProgramSocket {
        /// A connection that waits so long for the other side to read.
        ///
        /// # Errors
        /// Those of the socket.
        pub(in super::super) fn new(stream: UnixStream, timeout: Duration) -> io::Result<Self> {
            let waits = SHORTEST;
            stream.set_write_timeout(Some(timeout.max(SHORTEST)))?;
            stream.set_read_timeout(Some(waits))?;
            Ok(Self {
                stream,
                held: Vec::new(),
                waits,
                over: false,
            })
        }

        /// The first message of the bytes that are held, if they have a whole one.
        fn next(&mut self) -> Option<HeardReply> {
            let frame = match frame_in(&self.held) {
                Ok(frame) => frame?,
                Err(what) => {
                    self.over = true;
                    self.held.clear();
                    return Some(Err(what));
                }
            };
            let reply = reply_of(&self.held[frame.clone()]);
            self.held.drain(..frame.end);
            if reply.is_err() {
                self.over = true;
                self.held.clear();
            }
            Some(reply)
        }

        /// Reads what there is, if there is something, or notes the end.
        fn read(&mut self) -> Result<(), String> {
            let mut block = [0; BLOCK];
            match self.stream.read(&mut block) {
                Ok(0) => {
                    self.over = true;
                    if self.held.is_empty() {
                        return Ok(());
                    }
                    self.held.clear();
                    Err("its output ends inside a message".into())
                }
                Ok(more) => {
                    self.held.extend_from_slice(&block[..more]);
                    Ok(())
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(()),
                    _ => {
                        self.over = true;
                        self.held.clear();
                        Err(format!("its output cannot be read: {error}"))
                    }
                },
            }
        }

        /// Lets the next read wait at most this long. macOS refuses that once the other side is gone: a read of what it
        /// has left behind does not wait then.
        fn wait(&mut self, longest: Duration) {
            let longest = longest.max(SHORTEST);
            if longest != self.waits && self.stream.set_read_timeout(Some(longest)).is_ok() {
                self.waits = longest;
            }
        }
    }

    impl ProgramLine for ProgramSocket {
        fn send(&mut self, frame: Vec<u8>) -> Result<(), Unsent> {
            self.stream
                .write_all(&frame)
                .map_err(|error| match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => Unsent::Full,
                    _ => Unsent::Gone,
                })
        }

        fn receive(&mut self, within: Duration) -> Result<HeardReply, RecvTimeoutError> {
            let until = Instant::now() + within;
            let mut left = Some(within);
            loop {
                if let Some(heard) = self.next() {
                    return Ok(heard);
                }
                if self.over {
                    return Err(RecvTimeoutError::Disconnected);
                }
                // Also where a message comes in pieces that never end.
                self.wait(left.ok_or(RecvTimeoutError::Timeout)?);
                if let Err(what) = self.read() {
                    return Ok(Err(what));
                }
                left = until.checked_duration_since(Instant::now());
            }
        }

        fn is_quiet(&mut self) -> bool {
            if self.over || !self.held.is_empty() || self.stream.set_nonblocking(true).is_err() {
                return false;
            }
            let read = self.read().is_ok();
            let waits = self.stream.set_nonblocking(false).is_ok();
            read && waits && self.held.is_empty() && !self.over
        }

        fn close(&mut self) {
            // The other side hears the end when the connection is shut down.
        }
    }

    #[cfg(test)]
    mod tests {
        #![allow(clippy::unwrap_used)]
        use std::net::Shutdown;
        use std::thread;

        use super::*;
        use crate::external::wire::Reply;

        const SOON: Duration = Duration::from_millis(20);
        const LONG: Duration = Duration::from_secs(20);

        fn frame(json: &str) -> Vec<u8> {
            let len = u32::try_from(json.len()).unwrap();
            [&len.to_le_bytes()[..], json.as_bytes()].concat()
        }

        /// A connection that waits as long as said for a reader, and its other side.
        fn pair(timeout: Duration) -> (ProgramSocket, UnixStream) {
            let (ours, theirs) = UnixStream::pair().unwrap();
            (ProgramSocket::new(ours, timeout).unwrap(), theirs)
        }

        fn progress(step: u64) -> (Vec<u8>, Reply) {
            let json = format!(r#"{{"type": "progress", "step": {step}, "steps": 9}}"#);
            let reply = Reply::Progress {
                step,
                steps: 9,
                loss: None,
            };
            (frame(&json), reply)
        }

        #[test]
        fn a_message_in_pieces_is_received_when_it_is_whole() {
            let (mut ours, mut theirs) = pair(LONG);
            let (bytes, reply) = progress(3);
            for piece in [&bytes[..2], &bytes[2..7]] {
                theirs.write_all(piece).unwrap();
                assert_eq!(ours.receive(SOON), Err(RecvTimeoutError::Timeout));
            }
            assert!(!ours.is_quiet());
            theirs.write_all(&bytes[7..]).unwrap();
            assert_eq!(ours.receive(LONG), Ok(Ok(reply)));
            assert!(ours.is_quiet());
        }

        #[test]
        fn messages_at_once_are_received_one_after_another() {
            let (mut ours, mut theirs) = pair(LONG);
            let many: Vec<_> = (1..=300).map(progress).collect();
            let bytes: Vec<u8> = many.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
            theirs.write_all(&bytes).unwrap();
            for (_, reply) in many {
                assert_eq!(ours.receive(LONG), Ok(Ok(reply)));
            }
            assert_eq!(ours.receive(Duration::ZERO), Err(RecvTimeoutError::Timeout));
        }

        #[test]
        fn what_nobody_asked_for_and_the_end_are_not_quiet() {
            let (mut ours, mut theirs) = pair(LONG);
            assert!(ours.is_quiet());
            theirs.write_all(&progress(1).0).unwrap();
            assert!(!ours.is_quiet());
            let (mut ours, theirs) = pair(LONG);
            drop(theirs);
            assert!(!ours.is_quiet());
            assert_eq!(ours.receive(SOON), Err(RecvTimeoutError::Disconnected));
        }

        #[test]
        fn a_connection_that_breaks_off_says_where() {
            let (mut ours, mut theirs) = pair(LONG);
            theirs.write_all(&progress(1).0[..9]).unwrap();
            drop(theirs);
            let said = Ok(Err("its output ends inside a message".into()));
            assert_eq!(ours.receive(LONG), said);
            assert_eq!(ours.receive(LONG), Err(RecvTimeoutError::Disconnected));
        }

        #[test]
        fn what_is_no_message_ends_a_connection() {
            for (bytes, why) in [
                (b"Epoch 1 of 3\n".to_vec(), "does it print"),
                (frame(r#"{"type": "thanks"}"#), "thanks"),
            ] {
                let (mut ours, mut theirs) = pair(LONG);
                theirs.write_all(&bytes).unwrap();
                theirs.write_all(&progress(1).0).unwrap();
                let said = ours.receive(LONG).unwrap().unwrap_err();
                assert!(said.contains(why), "{said}");
                assert_eq!(ours.receive(LONG), Err(RecvTimeoutError::Disconnected));
            }
        }

        #[test]
        fn a_message_in_endless_pieces_does_not_hold_a_receiver() {
            let (mut ours, mut theirs) = pair(LONG);
            let drips = thread::spawn(move || {
                theirs.write_all(&(1u32 << 24).to_le_bytes()).unwrap();
                // A read finds some of it whenever it looks.
                while theirs.write_all(b" ").is_ok() {}
            });
            assert_eq!(ours.receive(SOON), Err(RecvTimeoutError::Timeout));
            drop(ours);
            drips.join().unwrap();
        }

        #[test]
        fn a_program_that_reads_nothing_does_not_hold_a_sender() {
            let (mut ours, theirs) = pair(SOON);
            assert_eq!(ours.send(vec![0; 8 << 20]), Err(Unsent::Full));
            drop(theirs);
            let (mut ours, theirs) = pair(LONG);
            drop(theirs);
            assert_eq!(ours.send(vec![0; 8]), Err(Unsent::Gone));
        }

        #[test]
        fn whoever_hangs_up_ends_a_wait_for_a_message() {
            let (mut ours, theirs) = pair(LONG);
            let hang_up = ours.stream.try_clone().unwrap();
            let waits = thread::spawn(move || ours.receive(LONG));
            hang_up.shutdown(Shutdown::Both).unwrap();
            assert_eq!(waits.join().unwrap(), Err(RecvTimeoutError::Disconnected));
            drop(theirs);
        }
    }
}
