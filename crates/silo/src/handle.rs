//! The caller's handle to a running silo.

use std::rc::{Rc, Weak};

use actix::Addr;
use protocol::message::Amendment;
use protocol::{Hash, Input, MemberIndex};
use tokio::sync::oneshot;

use crate::activity::Activities;
use crate::actors::messages::{Halt, StopSilo, WishMessage};
use crate::actors::silo::SiloActor;
use crate::error::Stopped;
use crate::run_state::{Counters, Counts, RunState};

/// A running silo. It runs on when this is dropped.
pub struct SiloHandle {
    pub(crate) silo: Addr<SiloActor>,
    pub(crate) run_state: Weak<RunState>,
    pub(crate) ended: oneshot::Receiver<Stopped>,
    pub(crate) reason: Option<Stopped>,
    pub(crate) counters: Rc<Counters>,
    pub(crate) activities: Activities,
}

impl SiloHandle {
    /// Asks the silo to stop. It finishes its current step, all records of which are durable.
    pub fn stop(&self) {
        self.silo.do_send(StopSilo);
    }

    /// The institution approves an amendment of the agreement. To be said again after a restart with the
    /// same number, as long as the amendment is not in force. Numbers grow with every approval and
    /// withdrawal of the institution.
    pub fn approve(&self, amendment: Amendment, number: u64) {
        let amendment = Box::new(amendment);
        self.wish(Input::Approve { amendment, number });
    }

    /// The institution does not approve an amendment any more, of which this is the hash. To be said
    /// again after a restart, like an approval.
    pub fn withdraw(&self, amendment: Hash, number: u64) {
        self.wish(Input::Withdraw { amendment, number });
    }

    /// The institution has signed the agreement in force: a paused silo contributes again.
    pub fn resume(&self) {
        self.wish(Input::Resume);
    }

    /// The institution wants to go on without these members, which are gone for good. The silo signs
    /// for it and does nothing more in this epoch; when all others that remain have signed too, the
    /// epoch is over. Another wish takes its place, any number of times. To be said again after a
    /// restart. `abandon` is that of [`Input::Recover`].
    pub fn recover(&self, lost: Vec<MemberIndex>, abandon: bool) {
        self.wish(Input::Recover { lost, abandon });
    }

    /// The institution gives a final secure-aggregation round up whose outcome no quorum certifies: see
    /// [`Input::GiveUp`]. To be said again after a restart.
    pub fn give_up(&self, round: u64) {
        self.wish(Input::GiveUp { round });
    }

    fn wish(&self, input: Input) {
        self.silo.do_send(WishMessage(input));
    }

    /// Ends the silo like a power cut: no further effect runs.
    pub fn kill(&self) {
        if let Some(state) = self.run_state.upgrade() {
            state.end(Stopped::Killed);
        }
        self.silo.do_send(Halt);
    }

    /// Waits until nothing of the silo is left and its journal is closed. Returns the reason.
    pub async fn stopped(&mut self) -> Stopped {
        if self.reason.is_none() {
            let reason = (&mut self.ended).await;
            let torn = |_| Stopped::Defect("its runtime ended".into());
            self.reason = Some(reason.unwrap_or_else(torn));
        }
        self.reason.clone().unwrap_or(Stopped::Asked)
    }

    /// The silo's traffic so far.
    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// Returns what the silo works on, and the progress of its training.
    pub fn activities(&self) -> Activities {
        self.activities.clone()
    }
}
