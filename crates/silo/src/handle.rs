//! The caller's handle to a running silo.

use std::rc::{Rc, Weak};

use actix::Addr;
use protocol::MemberIndex;
use protocol::message::Amendment;
use tokio::sync::oneshot;

use crate::activity::Activities;
use crate::actors::messages::{Approve, Halt, Recover, Stop};
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
        self.silo.do_send(Stop);
    }

    /// The institution approves an amendment of the agreement. To be said again after a restart, as
    /// long as the amendment is not in force.
    pub fn approve(&self, amendment: Amendment) {
        self.silo.do_send(Approve(Box::new(amendment)));
    }

    /// The institution wants to go on without these members, which are gone for good. The silo signs
    /// for it and does nothing more in this epoch; when all others that remain have signed too, the
    /// epoch is over. To be said again after a restart.
    pub fn recover(&self, lost: Vec<MemberIndex>) {
        self.silo.do_send(Recover(lost));
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

    /// What the silo works on, and the progress of its training.
    pub fn activities(&self) -> Activities {
        self.activities.clone()
    }
}
