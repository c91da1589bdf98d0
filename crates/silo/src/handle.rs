//! What is left in the hands of whoever brought a silo to life.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, PoisonError};

use actix::Addr;
use methods::Progress;
use protocol::Report;
use tokio::sync::oneshot;

use crate::actors::silo::{Halt, SiloActor, Stop};
use crate::surroundings::StoreError;

/// Why a silo is no more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// [`SiloHandle::stop`].
    #[error("the silo was stopped")]
    Asked,
    /// [`SiloHandle::kill`].
    #[error("the silo was killed")]
    Killed,
    /// The journal refused an entry. Going on could break a promise made to the others.
    #[error("the silo stopped because its journal cannot be written: {0}")]
    Journal(#[from] StoreError),
    /// The network went away.
    #[error("the silo stopped because its network ended")]
    Network,
    /// Something that must not happen: a defect of this program.
    #[error("the silo stopped because of a defect: {0}")]
    Defect(String),
}

/// A living silo. Dropping it leaves the silo alone.
pub struct SiloHandle {
    pub(crate) silo: Addr<SiloActor>,
    pub(crate) life: Weak<Life>,
    pub(crate) gone: oneshot::Receiver<Stopped>,
    pub(crate) reason: Option<Stopped>,
    pub(crate) counters: Rc<Counters>,
    pub(crate) progress: Arc<Mutex<Option<Progress>>>,
}

impl SiloHandle {
    /// Asks the silo to stop: it finishes the step it is in; everything of it is durable.
    pub fn stop(&self) {
        self.silo.do_send(Stop);
    }

    /// Ends the silo between two instants, like a power cut: no effect runs any more.
    pub fn kill(&self) {
        if let Some(life) = self.life.upgrade() {
            life.end(Stopped::Killed);
        }
        self.silo.do_send(Halt);
    }

    /// Waits until nothing of the silo is left (its journal is closed), and says why.
    pub async fn stopped(&mut self) -> Stopped {
        if self.reason.is_none() {
            let reason = (&mut self.gone).await;
            let torn = |_| Stopped::Defect("its runtime ended".into());
            self.reason = Some(reason.unwrap_or_else(torn));
        }
        self.reason.clone().unwrap_or(Stopped::Asked)
    }

    /// What went through the silo so far.
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// How far the training under way is, or the last one was.
    pub fn progress(&self) -> Option<Progress> {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shared by the actors of a silo; when the last of them is gone, so is the silo.
pub(crate) struct Life {
    alive: Cell<bool>,
    reason: RefCell<Option<Stopped>>,
    gone: RefCell<Option<oneshot::Sender<Stopped>>>,
}

impl Life {
    pub(crate) fn new(gone: oneshot::Sender<Stopped>) -> Rc<Self> {
        Rc::new(Self {
            alive: Cell::new(true),
            reason: RefCell::new(None),
            gone: RefCell::new(Some(gone)),
        })
    }

    /// Whether effects may run.
    pub(crate) fn alive(&self) -> bool {
        self.alive.get()
    }

    /// No effect may run from here on.
    pub(crate) fn end(&self, reason: Stopped) {
        self.alive.set(false);
        self.leave(reason);
    }

    /// What is under way may still go out.
    pub(crate) fn leave(&self, reason: Stopped) {
        self.reason.borrow_mut().get_or_insert(reason);
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        let unexpected = || Stopped::Defect("an actor ended by itself; see the panic above".into());
        let reason = self.reason.take().unwrap_or_else(unexpected);
        if let Some(gone) = self.gone.take() {
            // Nobody may be waiting.
            let _ = gone.send(reason);
        }
    }
}

/// What went through a silo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Frames from the network.
    pub received: u64,
    /// Frames that were not let in.
    pub unopened: u64,
    /// Frames that were dropped unread: over a budget, of the past, or of a member that is muted.
    pub dropped: u64,
    /// Times that a member was muted.
    pub mutes: u64,
    /// Frames for one member.
    pub sent: u64,
    /// Frames for all members.
    pub published: u64,
    /// Commands that did not fit into the way out.
    pub lost: u64,
    /// Blobs fetched.
    pub fetched: u64,
    /// Bytes of blobs fetched.
    pub fetched_bytes: u64,
    /// Blobs that nobody gave.
    pub missing: u64,
    /// Blobs served to others.
    pub served: u64,
    /// Questions for blobs that were refused.
    pub unserved: u64,
    /// Transactions of the journal.
    pub commits: u64,
}

/// Where the state machine is, as far as its reports say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// Its view.
    pub(crate) view: u64,
    /// The view of the last final block with a round.
    pub(crate) last_final: u64,
}

/// [`Counts`] in the making, and where the silo is.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    counts: Cell<Counts>,
    place: Cell<Place>,
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

    pub(crate) fn place(&self) -> Place {
        self.place.get()
    }

    /// Takes note of where the state machine says that it is.
    pub(crate) fn follow(&self, report: &Report) {
        let mut place = self.place.get();
        match report {
            Report::Entered { view, .. } => place.view = *view,
            Report::Final { view, .. } => place.last_final = *view,
            _ => return,
        }
        self.place.set(place);
    }
}
