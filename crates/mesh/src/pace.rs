//! Limits how fast the streams of a member are read.
//!
//! Everything that a member sends unasked arrives on streams that it opened: frames, gossip, requests
//! for blobs. They are read no faster than a fixed rate; what the member sends beyond that waits at
//! its own side and costs nothing here. Blobs that this node fetches arrive on streams that this node
//! opened, without a limit.
//!
//! The streams of a muted member are read at a very low rate, and their contents are dropped.
//!
//! A member that relays opens a stream for every connection that it passes on to this node. What
//! arrives there is no message of that member: it is the encrypted connection of another one, whose
//! streams are read at the pace of the member that it comes from. So these streams of a relaying
//! member are not charged to it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::io::{AsyncRead, AsyncWrite};
use libp2p::PeerId;
use libp2p::core::muxing::{StreamMuxer, StreamMuxerBox, StreamMuxerEvent, SubstreamBox};
use protocol::Time;
use protocol::budget::{Bucket, Offences, Rate};
use tokio::time::{Instant, Sleep, sleep};

/// Bytes of one member. In a federation of a hundred the lead of ten views a second sends 1.2 MB a
/// second, and no message has more than 4 MB.
const BYTES: Rate = Rate::per_second(2 << 20, 4 << 20);
/// Bytes of one member while it is muted.
const TRICKLE: Rate = Rate::per_second(64 << 10, 64 << 10);
/// Beginning of the stream that a relaying member opens to pass a connection on: libp2p's negotiation
/// of protocols, then the name of the relay protocol, each with its length before it.
const RELAYED: &[u8] = b"\x13/multistream/1.0.0\n\x21/libp2p/circuit/relay/0.2.0/stop\n";
/// Cost of opening a stream, in bytes.
const STREAM: u64 = 1 << 10;
/// Frames and published frames of one member: ten views in which a hundred members vote against the
/// view, at once.
const FRAMES: Rate = Rate::per_second(1000, 2000);
/// Rates at which a former member may send: a few of the frames that it sends in its epoch, until it knows that
/// this is over.
const GUEST: (Rate, Rate) = (
    Rate::per_second(128 << 10, 1 << 20),
    Rate::per_second(10, 100),
);
/// Least time between two warnings about one member.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The rates of one member. Shared by all readers of its streams.
#[derive(Debug)]
pub(crate) struct Pace {
    origin: Instant,
    /// Bytes and frames.
    rates: (Rate, Rate),
    state: Mutex<PaceState>,
}

#[derive(Debug)]
struct PaceState {
    bytes: Bucket,
    trickle: Bucket,
    frames: Bucket,
    /// Streams on which it sent bytes that are no frame.
    streams: Offences,
    /// Published frames beyond its share.
    flood: Offences,
    muted: Time,
    warned: Option<Time>,
}

impl Default for Pace {
    fn default() -> Self {
        Self::with((BYTES, FRAMES))
    }
}

impl Pace {
    /// Of a former member.
    pub(crate) fn of_guest() -> Self {
        Self::with(GUEST)
    }

    fn with(rates: (Rate, Rate)) -> Self {
        let now = Time::ZERO;
        let second = Duration::from_secs(1);
        let state = PaceState {
            bytes: Bucket::full(&rates.0, now),
            trickle: Bucket::full(&TRICKLE, now),
            frames: Bucket::full(&rates.1, now),
            streams: Offences::tolerating(1, 1, WARNING_INTERVAL, now),
            flood: Offences::tolerating(100, 10, second, now),
            muted: now,
            warned: None,
        };
        Self {
            origin: Instant::now(),
            rates,
            state: Mutex::new(state),
        }
    }

    fn now(&self) -> Time {
        Time::since_start(self.origin.elapsed())
    }

    fn state(&self) -> MutexGuard<'_, PaceState> {
        self.state
            .lock()
            .expect("no code panics while it holds this lock")
    }

    /// Mutes it for at least this long.
    pub(crate) fn mute(&self, span: Duration) {
        let until = self.now() + span;
        let mut state = self.state();
        state.muted = state.muted.max(until);
    }

    /// Returns how much longer it is muted, if it is.
    pub(crate) fn muted(&self) -> Option<Duration> {
        let left = self.state().muted - self.now();
        (left > Duration::ZERO).then_some(left)
    }

    /// Charges a stream with bytes that are no frame, or with one too large. Returns the mute that
    /// begins with it, if one does.
    pub(crate) fn bad_stream(&self) -> Option<Duration> {
        let now = self.now();
        let span = self.state().streams.another(now);
        span.inspect(|&span| self.mute(span))
    }

    /// Charges a published frame that it passed on. False if that is over its rate; then it may be
    /// muted.
    pub(crate) fn published(&self) -> bool {
        let now = self.now();
        let mut state = self.state();
        state.frames.refill(&self.rates.1, now, 0);
        if state.frames.is_open() {
            state.frames.take(&self.rates.1, 1);
            return true;
        }
        let span = state.flood.another(now);
        drop(state);
        if let Some(span) = span {
            self.mute(span);
        }
        false
    }

    /// Charges a frame that it sent directly. Returns how long to wait before the next is read.
    pub(crate) fn frame(&self) -> Duration {
        let now = self.now();
        let mut state = self.state();
        state.frames.refill(&self.rates.1, now, 0);
        state.frames.take(&self.rates.1, 1);
        state.frames.wait(&self.rates.1)
    }

    /// Returns whether the next warning about it may be logged.
    pub(crate) fn may_warn(&self) -> bool {
        let now = self.now();
        let mut state = self.state();
        let may = state
            .warned
            .is_none_or(|last| now - last >= WARNING_INTERVAL);
        if may {
            state.warned = Some(now);
        }
        may
    }

    /// Returns how long to wait before more of its bytes are read.
    fn wait(&self) -> Duration {
        let now = self.now();
        let mut state = self.state();
        if now < state.muted {
            state.trickle.refill(&TRICKLE, now, 0);
            return state.trickle.wait(&TRICKLE);
        }
        state.bytes.refill(&self.rates.0, now, 0);
        state.bytes.wait(&self.rates.0)
    }

    fn read(&self, bytes: u64) {
        let mut state = self.state();
        state.bytes.take(&self.rates.0, bytes);
        state.trickle.take(&TRICKLE, bytes);
    }
}

/// Waits inside a poll until a pace allows the next read.
#[derive(Default)]
struct PaceWait(Option<Pin<Box<Sleep>>>);

impl PaceWait {
    fn poll(&mut self, pace: &Pace, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(pause) = &mut self.0 {
                ready!(pause.as_mut().poll(context));
                self.0 = None;
            }
            let wait = pace.wait();
            if wait.is_zero() {
                return Poll::Ready(());
            }
            self.0 = Some(Box::pin(sleep(wait.max(Duration::from_millis(1)))));
        }
    }
}

/// The paces of all members.
pub(crate) type Paces = BTreeMap<PeerId, Arc<Pace>>;

/// A connection on which the streams of the other end are read at its pace.
pub(crate) struct Paced {
    inner: StreamMuxerBox,
    pace: Arc<Pace>,
    turn: PaceWait,
    /// True if the other end may pass on connections of others here.
    may_relay: bool,
}

impl Paced {
    /// `may_relay` if this node accepts connections of others here: then it knows the protocol of
    /// [`RELAYED`], so that such a stream cannot become one of another protocol.
    pub(crate) fn new(inner: StreamMuxerBox, pace: Arc<Pace>, may_relay: bool) -> Self {
        Self {
            inner,
            pace,
            turn: PaceWait::default(),
            may_relay,
        }
    }
}

impl StreamMuxer for Paced {
    type Substream = PacedStream;
    type Error = <StreamMuxerBox as StreamMuxer>::Error;

    fn poll_inbound(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<PacedStream, Self::Error>> {
        let this = &mut *self;
        ready!(this.turn.poll(&this.pace, context));
        let inner = ready!(Pin::new(&mut this.inner).poll_inbound(context))?;
        this.pace.read(STREAM);
        let paced = Some((this.pace.clone(), PaceWait::default()));
        let begins = this.may_relay.then_some(0);
        Poll::Ready(Ok(PacedStream {
            inner,
            paced,
            begins,
        }))
    }

    fn poll_outbound(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<PacedStream, Self::Error>> {
        let inner = ready!(Pin::new(&mut self.inner).poll_outbound(context))?;
        Poll::Ready(Ok(PacedStream {
            inner,
            paced: None,
            begins: None,
        }))
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Self::Error>> {
        Pin::new(&mut self.inner).poll_close(context)
    }

    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<StreamMuxerEvent, Self::Error>> {
        Pin::new(&mut self.inner).poll(context)
    }
}

/// A stream on such a connection.
pub(crate) struct PacedStream {
    inner: SubstreamBox,
    /// Set if the other end opened it.
    paced: Option<(Arc<Pace>, PaceWait)>,
    /// While it may still be one of [`RELAYED`]: bytes of that which were read.
    begins: Option<usize>,
}

impl PacedStream {
    /// Looks at bytes that were read: a stream that begins as [`RELAYED`] is not charged any more.
    fn look(&mut self, bytes: &[u8]) {
        let Some(known) = self.begins else { return };
        let rest = &RELAYED[known..];
        let common = rest.len().min(bytes.len());
        self.begins = match rest[..common] == bytes[..common] {
            true if common == rest.len() => {
                self.paced = None;
                None
            }
            true => Some(known + common),
            false => None,
        };
    }
}

impl AsyncRead for PacedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<std::io::Result<usize>> {
        let this = &mut *self;
        if let Some((pace, turn)) = &mut this.paced {
            ready!(turn.poll(pace, context));
        }
        let read = ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        if let Some((pace, _)) = &this.paced {
            pace.read(read as u64);
            this.look(&buffer[..read]);
        }
        Poll::Ready(Ok(read))
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, parts)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_close(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_member_is_read_at_its_rate_and_a_muted_one_at_a_lower_one() {
        let pace = Pace::default();
        let read = async |seconds: u64| {
            let (mut bytes, end) = (0, Instant::now() + Duration::from_secs(seconds));
            let mut turn = PaceWait::default();
            while Instant::now() < end {
                std::future::poll_fn(|context| turn.poll(&pace, context)).await;
                pace.read(8192);
                bytes += 8192;
            }
            bytes
        };
        let burst = read(1).await;
        assert!(((4 << 20)..(7 << 20)).contains(&burst), "{burst}");
        let steady = read(10).await;
        assert!(((19 << 20)..(22 << 20)).contains(&steady), "{steady}");
        pace.mute(Duration::from_secs(10));
        // One second's worth may have been saved up.
        let muted = read(8).await;
        assert!(muted <= 9 * (64 << 10) + 2 * 8192, "{muted}");
        assert!(pace.muted().is_some());
        sleep(Duration::from_secs(3)).await;
        assert!(pace.muted().is_none());
        assert!(read(1).await > 2 << 20);
    }

    /// A stream whose bytes are there at once.
    fn stream(bytes: &'static [u8], begins: Option<usize>) -> (PacedStream, Arc<Pace>) {
        let pace = Arc::new(Pace::default());
        let inner = SubstreamBox::new(futures::io::Cursor::new(bytes.to_vec()));
        let paced = Some((pace.clone(), PaceWait::default()));
        let stream = PacedStream {
            inner,
            paced,
            begins,
        };
        (stream, pace)
    }

    #[tokio::test(start_paused = true)]
    async fn only_relay_streams_are_not_charged_to_who_opened_them() {
        let name = libp2p::relay::STOP_PROTOCOL_NAME;
        let named = format!("{}{}\n", RELAYED[20] as char, name);
        assert!(RELAYED.ends_with(named.as_bytes()), "{named:?}");
        assert_eq!(usize::from(RELAYED[20]), name.as_ref().len() + 1);
        let body: &[u8] = &[7; 8 << 20];
        let relayed: &'static [u8] = Box::leak([RELAYED, body].concat().into());
        let frames = [b"\x13/multistream/1.0.0\n\x21/libp2p/other", body].concat();
        let frames: &'static [u8] = Box::leak(frames.into());
        // (bytes, whether the other end may relay here, whether it is charged)
        for (bytes, may, charged) in [
            (relayed, Some(0), false),
            (relayed, None, true),
            (frames, Some(0), true),
        ] {
            let (mut stream, _) = stream(bytes, may);
            let (began, mut read, mut part) = (Instant::now(), 0, vec![0; 100]);
            while read < bytes.len() {
                read += futures::AsyncReadExt::read(&mut stream, &mut part)
                    .await
                    .expect("it is in memory");
                part.resize(64 << 10, 0);
            }
            // Half of it fits into the burst; the other half takes two seconds at the member's rate.
            let took = began.elapsed();
            assert_eq!(took > Duration::from_secs(1), charged, "{took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn published_frames_over_the_rate_mute_but_no_first_bad_stream() {
        let pace = Pace::default();
        let passed = (0..10_000).filter(|_| pace.published()).count();
        assert_eq!(passed, 2000);
        assert!(pace.muted().is_some());

        let pace = Pace::default();
        assert_eq!(pace.bad_stream(), None);
        assert!(pace.muted().is_none());
        assert_eq!(pace.bad_stream(), Some(Duration::from_secs(1)));
        assert!(pace.muted().is_some());
        assert!(pace.may_warn() && !pace.may_warn());
        sleep(WARNING_INTERVAL).await;
        assert!(pace.may_warn());
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_read_at_their_rate() {
        let (pace, began) = (Pace::default(), Instant::now());
        for _ in 0..12_000 {
            sleep(pace.frame()).await;
        }
        let took = began.elapsed().as_secs_f64();
        // 2000 at once, the others a thousand a second; the timer has milliseconds.
        assert!((9.9..11.0).contains(&took), "{took}");
    }
}
