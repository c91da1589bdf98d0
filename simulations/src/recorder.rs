//! One place that hears everything of a run: for the invariants, the trace and the summary.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use protocol::charter::Epoch;
use protocol::message::Sheet;
use protocol::{Hash, MemberIndex, Report, Time};
use silo::{Notice, Record};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::invariants::{Violation, Watch};

/// What the script of faults and the end of a run wait for.
#[derive(Debug, Clone)]
pub(crate) enum Signal {
    /// A silo told something.
    Notice(MemberIndex, Notice),
    /// A property was violated.
    Violated,
}

/// Hears a run; clones share what was heard.
#[derive(Clone)]
pub struct Ear {
    inner: Arc<Mutex<Recorder>>,
    /// Rung when there are signals.
    bell: Arc<Notify>,
    origin: Instant,
}

/// What was heard.
pub(crate) struct Recorder {
    watch: Watch,
    trace: blake3::Hasher,
    signals: Vec<Signal>,
    /// Everything silos told, in order.
    pub(crate) notices: Vec<(Time, MemberIndex, Notice)>,
    /// The first violation.
    pub(crate) violation: Option<Violation>,
    /// Events: deliveries, commits, adoptions.
    pub(crate) events: u64,
}

impl Ear {
    /// Hears a federation in which `faulty` may do anything and a Receipt is read within `reading`;
    /// the clock starts at `origin`.
    pub(crate) fn new(
        epoch: Arc<Epoch>,
        faulty: BTreeSet<MemberIndex>,
        origin: Instant,
        reading: Duration,
    ) -> Self {
        let watch = Watch::new(epoch, faulty, reading);
        let recorder = Recorder {
            watch,
            trace: blake3::Hasher::new(),
            signals: Vec::new(),
            notices: Vec::new(),
            violation: None,
            events: 0,
        };
        Self {
            inner: Arc::new(Mutex::new(recorder)),
            bell: Arc::default(),
            origin,
        }
    }

    /// The time of the run, virtual or real.
    pub fn now(&self) -> Time {
        Time::since_start(self.origin.elapsed())
    }

    /// The moment that the clock started.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// What was heard so far.
    pub(crate) fn read(&self) -> MutexGuard<'_, Recorder> {
        // A violation is kept, not thrown: nothing panics under this lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sheet with this root, if anybody ever sent it.
    pub(crate) fn sheet(&self, root: &Hash) -> Option<Sheet> {
        self.read().watch.sheet(root)
    }

    /// The properties that are checked after every event.
    pub(crate) fn invariants(&self) -> Vec<&'static str> {
        self.read().watch.names()
    }

    /// Waits for signals.
    pub(crate) async fn signals(&self) -> Vec<Signal> {
        loop {
            let signals = std::mem::take(&mut self.read().signals);
            if !signals.is_empty() {
                return signals;
            }
            self.bell.notified().await;
        }
    }

    /// `by` handed `frame` to the network.
    pub fn said(&self, by: MemberIndex, frame: &[u8]) {
        self.with(|watch, now| watch.said(now, by, frame));
    }

    /// `frame`, whose hash is `id`, reaches `to`.
    pub fn heard(&self, from: MemberIndex, to: MemberIndex, id: &Hash, frame: &[u8]) {
        self.event(1, &[from, to], id);
        self.with(|watch, now| watch.heard(now, to, frame));
    }

    /// Anything else that the network did.
    pub(crate) fn event(&self, kind: u8, members: &[MemberIndex], what: &Hash) {
        let now = self.now().elapsed().as_micros() as u64;
        let mut recorder = self.read();
        recorder.events += 1;
        recorder.trace.update(&[kind]).update(&now.to_le_bytes());
        for member in members {
            recorder.trace.update(&member.0.to_le_bytes());
        }
        recorder.trace.update(&what.0);
    }

    /// `by` made a record durable.
    pub fn kept(&self, by: MemberIndex, record: &Record) {
        match record {
            Record::Protocol(record) => self.with(|watch, now| watch.kept(now, by, record)),
            Record::Adopted(adopted) => {
                let outcome = Hash(adopted.outcome);
                self.event(2, &[by], &outcome);
                self.with(|watch, now| watch.adopted(now, by, adopted.round, outcome));
            }
            Record::Trained { .. } | Record::Lost | Record::Begun => {}
        }
    }

    /// A silo stopped; its disk was emptied too if `emptied`.
    pub(crate) fn crashed(&self, member: MemberIndex, emptied: bool) {
        self.event(3, &[member], &Hash([emptied.into(); 32]));
        self.with(|watch, now| watch.crashed(now, member, emptied));
    }

    /// A silo tells something.
    pub(crate) fn notice(&self, by: MemberIndex, at: Time, notice: &Notice) {
        if let Notice::Protocol(Report::Fault(evidence)) = notice {
            self.with(|watch, now| watch.accused(now, by, evidence));
        }
        let mut recorder = self.read();
        recorder.notices.push((at, by, notice.clone()));
        recorder.signals.push(Signal::Notice(by, notice.clone()));
        drop(recorder);
        self.bell.notify_one();
    }

    /// The hash over everything so far.
    pub(crate) fn trace(&self) -> Hash {
        Hash(*self.read().trace.finalize().as_bytes())
    }

    fn with(&self, check: impl FnOnce(&mut Watch, Time) -> Result<(), Violation>) {
        let now = self.now();
        let mut recorder = self.read();
        if let Err(violation) = check(&mut recorder.watch, now)
            && recorder.violation.is_none()
        {
            recorder.violation = Some(violation);
            recorder.signals.push(Signal::Violated);
            self.bell.notify_one();
        }
    }
}
