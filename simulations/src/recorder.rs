//! Records every event of a run, for the invariants, the trace and the summary.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use methods::State;
use protocol::message::{Kind, RoundManifest};
use protocol::parameters::Epoch;
use protocol::{Hash, MemberIndex, Report, Time};
use silo::{JournalRecord, Notice};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::contributions::{AuthorMerges, Contributions, CrossLosses, GroupingBasis};
use crate::linkage::LinkageCounter;
use bare::invariants::{Monitor, Violation, kind};

/// What the director of a run waits for.
#[derive(Debug, Clone)]
pub(crate) enum Signal {
    /// A silo reported something.
    Notice(MemberIndex, Notice),
    /// A property was violated.
    Violated,
}

/// Records a run. Clones share the record.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Mutex<Recording>>,
    /// Notified when there are signals.
    bell: Arc<Notify>,
    origin: Instant,
}

/// What was recorded.
pub(crate) struct Recording {
    monitor: Monitor,
    trace: blake3::Hasher,
    signals: Vec<Signal>,
    /// The view that every member entered last, its lead, and its round.
    entered: BTreeMap<MemberIndex, (u64, MemberIndex, u64)>,
    /// Members whose contributions a member got, each once: when, who, whose.
    pub(crate) sightings: Vec<(Time, MemberIndex, MemberIndex)>,
    seen: BTreeSet<(MemberIndex, MemberIndex)>,
    /// Every notice of the silos, in order.
    pub(crate) notices: Vec<(Time, MemberIndex, Notice)>,
    /// The first violation.
    pub(crate) violation: Option<Violation>,
    /// How often authors could be recognised.
    pub(crate) linkage: LinkageCounter,
    /// The contributions of final rounds, where they are kept.
    pub(crate) contributions: Option<BTreeMap<u64, Contributions>>,
    /// What groups were formed by, where that is kept.
    pub(crate) basis: Option<GroupingBasis>,
    /// Events: deliveries, commits, adoptions.
    pub(crate) events: u64,
}

impl Recorder {
    /// Records a federation whose `faulty` members may behave arbitrarily. A silo has read a
    /// Receipt `reading` after it arrived. The clock starts at `origin`.
    pub(crate) fn new(
        epoch: Arc<Epoch>,
        faulty: BTreeSet<MemberIndex>,
        origin: Instant,
        reading: Duration,
    ) -> Self {
        let monitor = Monitor::new(epoch, faulty, reading);
        let log = Recording {
            monitor,
            trace: blake3::Hasher::new(),
            signals: Vec::new(),
            entered: BTreeMap::new(),
            sightings: Vec::new(),
            seen: BTreeSet::new(),
            notices: Vec::new(),
            violation: None,
            linkage: LinkageCounter::default(),
            contributions: None,
            basis: None,
            events: 0,
        };
        Self {
            inner: Arc::new(Mutex::new(log)),
            bell: Arc::default(),
            origin,
        }
    }

    /// The time of the run, virtual or real.
    pub fn now(&self) -> Time {
        Time::since_start(self.origin.elapsed())
    }

    /// Returns when the clock started.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// The record so far.
    pub(crate) fn read(&self) -> MutexGuard<'_, Recording> {
        // A violation is recorded, not raised: nothing panics under this lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The manifest with this root, if any member ever sent it.
    pub(crate) fn manifest(&self, root: &Hash) -> Option<RoundManifest> {
        self.read().monitor.manifest(root)
    }

    /// A round became final with this block: compares its entries with those of the round before.
    /// `blob` returns models by hash.
    pub(crate) fn compare_entries(&self, block: &Hash, blob: impl Fn(&Hash) -> Option<Bytes>) {
        // A disk that commits waits for the log, so the log must wait neither for a disk nor for the
        // comparison.
        let entries = self.read().monitor.entries(block).into_iter();
        let shown = entries.filter_map(|(author, entry, losses)| {
            let document = blob(&entry.fields.blob)?;
            Some((author, entry, document, losses))
        });
        let shown = shown.collect();
        let rounds = self.read().linkage.rounds();
        // The thread ends before its sender only by a panic, which the result shows.
        let _ = rounds.send(shown);
    }

    /// Returns whether something of the contributions is kept.
    pub(crate) fn keeps_contributions(&self) -> bool {
        let log = self.read();
        log.contributions.is_some() || log.basis.is_some()
    }

    /// The manifest of a final block with the authors of its entries, where all of them are known.
    pub(crate) fn final_manifest(&self, block: &Hash) -> Option<(Vec<MemberIndex>, RoundManifest)> {
        let log = self.read();
        let entries = log.monitor.entries(block);
        let authors: Vec<_> = entries.iter().map(|(author, ..)| *author).collect();
        let manifest = log.monitor.final_manifest(block)?;
        (manifest.entries.len() == authors.len()).then_some((authors, manifest))
    }

    /// Returns what a member adopted with a round; the first to do so is enough, because all adopt the same.
    pub(crate) fn adopted(&self, of: u64) -> Option<(Hash, Arc<State>)> {
        let log = self.read();
        let mut notices = log.notices.iter().rev();
        notices.find_map(|(_, _, notice)| match notice {
            Notice::Adopted {
                round,
                outcome,
                state,
                ..
            } if *round == of => Some((*outcome, state.clone())),
            _ => None,
        })
    }

    /// A round became final with this block: keeps of its contributions what is to be kept. `blob` returns
    /// models by hash.
    pub(crate) fn keep_contributions(
        &self,
        round: u64,
        block: &Hash,
        merges: Option<AuthorMerges>,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) {
        let entries = self.read().monitor.entries(block);
        if let Some(basis) = &mut self.read().basis {
            let rows = entries.iter();
            let rows = rows.map(|(author, _, losses)| (*author, losses.clone()));
            let losses = CrossLosses::new(round, rows.collect());
            basis.note(round, losses, merges.clone());
        }
        if self.read().contributions.is_none() {
            return;
        }
        let each = entries.into_iter().filter_map(|(author, entry, losses)| {
            Some((author, blob(&entry.fields.blob)?, losses))
        });
        let mut contributions = Contributions::new(round, each.collect());
        contributions.merges = merges;
        if let Some(kept) = &mut self.read().contributions {
            kept.insert(round, contributions);
        }
    }

    /// The properties that are checked after every event.
    pub(crate) fn invariants(&self) -> Vec<&'static str> {
        self.read().monitor.names()
    }

    /// The view that a member entered last, its lead, and the round that it works on there.
    pub(crate) fn entered(&self, member: MemberIndex) -> Option<(u64, MemberIndex, u64)> {
        self.read().entered.get(&member).copied()
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

    /// `by` handed `frame` to the network, for one member or for all others.
    pub fn sent(&self, by: MemberIndex, to: Option<MemberIndex>, frame: &[u8]) {
        self.with(|monitor, now| monitor.sent(now, by, to, frame));
    }

    /// The run has ended: checks what can be checked only now.
    pub(crate) fn ended(&self) {
        self.with(|monitor, now| monitor.ended(now));
    }

    /// `frame`, whose hash is `id`, is delivered to `to`.
    pub fn delivered(&self, from: MemberIndex, to: MemberIndex, id: &Hash, frame: &[u8]) {
        self.event(1, &[from, to], id);
        if kind(frame) == Some(Kind::Contribution) {
            let now = self.now();
            let mut log = self.read();
            if log.seen.insert((to, from)) {
                log.sightings.push((now, to, from));
            }
        }
        self.with(|monitor, now| monitor.delivered(now, to, frame));
    }

    /// Adds any other event to the trace.
    pub(crate) fn event(&self, kind: u8, members: &[MemberIndex], what: &Hash) {
        let now = self.now().elapsed().as_micros() as u64;
        let mut log = self.read();
        log.events += 1;
        log.trace.update(&[kind]).update(&now.to_le_bytes());
        for member in members {
            log.trace.update(&member.0.to_le_bytes());
        }
        log.trace.update(&what.0);
    }

    /// `by` committed a record to its journal.
    pub fn persisted(&self, by: MemberIndex, record: &JournalRecord) {
        match record {
            JournalRecord::Protocol(record) => {
                self.with(|monitor, now| monitor.persisted(now, by, record))
            }
            JournalRecord::Adopted(adopted) => {
                let outcome = Hash(adopted.outcome);
                self.event(2, &[by], &outcome);
                self.with(|monitor, now| monitor.adopted(now, by, adopted.round, outcome));
            }
            JournalRecord::Trained { .. }
            | JournalRecord::Prepared { .. }
            | JournalRecord::Lost
            | JournalRecord::Begun => {}
        }
    }

    /// A silo crashed; its journal and blobs are lost too if `journal_lost`.
    pub(crate) fn crashed(&self, member: MemberIndex, journal_lost: bool) {
        self.event(3, &[member], &Hash([journal_lost.into(); 32]));
        self.with(|monitor, now| monitor.crashed(now, member, journal_lost));
    }

    /// A silo reports something.
    pub(crate) fn notice(&self, by: MemberIndex, at: Time, notice: &Notice) {
        if let Notice::Protocol(report) = notice {
            self.with(|monitor, now| monitor.reported(now, by, report));
        }
        let mut log = self.read();
        if let Notice::Protocol(Report::Entered { view, lead, round }) = notice {
            log.entered.insert(by, (*view, *lead, *round));
        }
        log.notices.push((at, by, notice.clone()));
        log.signals.push(Signal::Notice(by, notice.clone()));
        drop(log);
        self.bell.notify_one();
    }

    /// The hash of all events so far.
    pub(crate) fn trace(&self) -> Hash {
        Hash(*self.read().trace.finalize().as_bytes())
    }

    fn with(&self, check: impl FnOnce(&mut Monitor, Time) -> Result<(), Violation>) {
        let now = self.now();
        let mut log = self.read();
        if let Err(violation) = check(&mut log.monitor, now)
            && log.violation.is_none()
        {
            log.violation = Some(violation);
            log.signals.push(Signal::Violated);
            self.bell.notify_one();
        }
    }
}
