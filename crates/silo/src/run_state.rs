//! State shared by the actors of one silo: whether it still runs, and its counters.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use protocol::Report;
use tokio::sync::oneshot;

use crate::error::Stopped;

/// State of a silo: running or ended. When the last actor has dropped it, nothing of the silo is left, and the
/// handle gets the reason.
pub(crate) struct RunState {
    running: Cell<bool>,
    reason: RefCell<Option<Stopped>>,
    ended: RefCell<Option<oneshot::Sender<Stopped>>>,
}

impl RunState {
    pub(crate) fn new(ended: oneshot::Sender<Stopped>) -> Rc<Self> {
        Rc::new(Self {
            running: Cell::new(true),
            reason: RefCell::new(None),
            ended: RefCell::new(Some(ended)),
        })
    }

    /// Returns whether effects may run.
    pub(crate) fn is_running(&self) -> bool {
        self.running.get()
    }

    /// Stops the silo at once: no further effect runs.
    pub(crate) fn end(&self, reason: Stopped) {
        self.running.set(false);
        self.stop(reason);
    }

    /// Notes why the silo stops; effects under way are still carried out.
    pub(crate) fn stop(&self, reason: Stopped) {
        self.reason.borrow_mut().get_or_insert(reason);
    }
}

impl Drop for RunState {
    fn drop(&mut self) {
        let unexpected = || Stopped::Defect("an actor ended by itself; see the panic above".into());
        let reason = self.reason.take().unwrap_or_else(unexpected);
        if let Some(ended) = self.ended.take() {
            // The handle may have been dropped.
            let _ = ended.send(reason);
        }
    }
}

/// Traffic of one silo since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Frames received from the network.
    pub received: u64,
    /// Frames that could not be opened: malformed, or a signature that does not verify.
    pub unopened: u64,
    /// Frames dropped unread: over a budget, outdated, or from a muted member.
    pub dropped: u64,
    /// Times that a member was muted.
    pub mutes: u64,
    /// Frames sent to one member.
    pub sent: u64,
    /// Frames published to all members.
    pub published: u64,
    /// Commands lost because the queue to the network was full.
    pub lost: u64,
    /// Blobs fetched.
    pub fetched: u64,
    /// Bytes of blobs fetched.
    pub fetched_bytes: u64,
    /// Blobs that no member gave.
    pub missing: u64,
    /// Blobs served to other members.
    pub served: u64,
    /// Requests for blobs that were refused.
    pub unserved: u64,
    /// Transactions of the journal.
    pub commits: u64,
}

/// The position of the state machine, by its reports.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Position {
    /// The view that the state machine is in.
    pub(crate) view: u64,
    /// The view of the last final block with a round.
    pub(crate) last_final: u64,
}

/// The running [`Counts`] and [`Position`] of a silo.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    counts: Cell<Counts>,
    position: Cell<Position>,
}

impl Counters {
    pub(crate) fn read(&self) -> Counts {
        self.counts.get()
    }

    pub(crate) fn add(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    pub(crate) fn position(&self) -> Position {
        self.position.get()
    }

    /// Updates the position from a report.
    pub(crate) fn follow(&self, report: &Report) {
        let mut position = self.position.get();
        match report {
            Report::Entered { view, .. } => position.view = *view,
            Report::Final { view, .. } => position.last_final = *view,
            _ => return,
        }
        self.position.set(position);
    }
}
