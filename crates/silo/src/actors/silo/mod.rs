//! Owns the state machine: gives it inputs, and carries out its effects.

mod effects;
mod member_and_journal;

use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, ActorContext, Addr, AsyncContext, Context, Handler, MessageResult, SpawnHandle,
};
use protocol::net::Command;
use protocol::{Input, Time};

pub(crate) use member_and_journal::MemberAndJournal;

use super::mesh::MeshActor;
use super::messages::{
    Halt, Incoming, Notices, Outgoing, StopSilo, Subscribe, VerifiedCertificates, WishMessage,
    WorkResult,
};
use super::observer::ObserverActor;
use super::worker::WorkerActor;
use crate::activity::Activities;
use crate::clock::Clock;
use crate::environment::{Blobs, Pool};
use crate::error::Stopped;
use crate::notice::Notice;
use crate::rounds::PreparedRound;
use crate::run_state::{Counters, RunState};
use crate::spans::Spans;

/// Messages that may wait in the mailbox; the network waits when it is full.
const MAILBOX: usize = 256;

/// Runs the [`Member`](protocol::Member) of one silo.
pub(crate) struct SiloActor {
    /// Away while a step is taken on another thread.
    pub(crate) seat: Option<Box<MemberAndJournal>>,
    pub(crate) pool: Arc<dyn Pool>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) mesh: Addr<MeshActor>,
    /// The worker that trains; none where the silo takes no part in rounds.
    pub(crate) worker: Option<Addr<WorkerActor>>,
    pub(crate) observer: Addr<ObserverActor>,
    pub(crate) clock: Clock,
    pub(crate) run_state: Rc<RunState>,
    pub(crate) counters: Rc<Counters>,
    pub(crate) activities: Activities,
    pub(crate) spans: Rc<Spans>,
    /// The timer of the next [`Input::Time`], if nothing else happens before.
    pub(crate) timer: Option<(Time, SpawnHandle)>,
}

impl SiloActor {
    /// Takes one step of the state machine, and carries out its effects.
    fn step(&mut self, input: Input, ctx: &mut Context<Self>) {
        let now = self.clock.now();
        self.at_seat(ctx, move |seat| seat.step(now, input), Self::perform);
    }

    /// Sets the timer to the member's deadline. A timer that fires too early is set again, so that
    /// the many messages that move the deadline back cost nothing.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let Some(deadline) = self.seat().member.deadline() else {
            return;
        };
        if self.timer.is_some_and(|(at, _)| at <= deadline) {
            return;
        }
        if let Some((_, timer)) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let wait = deadline - self.clock.now();
        self.timer = Some((deadline, ctx.run_later(wait, Self::wake)));
    }

    fn wake(&mut self, ctx: &mut Context<Self>) {
        self.timer = None;
        // Without the seat a step is being taken on another thread. Its end sets the timer.
        let Some(seat) = self.seat.as_ref().filter(|_| self.run_state.is_running()) else {
            return;
        };
        let deadline = seat.member.deadline();
        if deadline.is_some_and(|deadline| deadline <= self.clock.now()) {
            self.step(Input::Time, ctx);
        } else {
            self.arm(ctx);
        }
    }

    fn notify(&self, list: Vec<Notice>) {
        if !list.is_empty() {
            self.observer.do_send(Notices {
                at: self.clock.now(),
                list,
            });
        }
    }

    /// Ends the silo at once.
    fn end(&mut self, reason: Stopped, ctx: &mut Context<Self>) {
        self.run_state.end(reason.clone());
        self.notify(vec![Notice::Stopped(reason)]);
        ctx.terminate();
    }
}

impl Actor for SiloActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
        let me = ctx.address();
        self.mesh.do_send(Subscribe {
            events: me.clone().recipient(),
            verified: me.recipient(),
        });
        self.at_seat(ctx, MemberAndJournal::persist, Self::perform);
    }
}

impl Drop for SiloActor {
    fn drop(&mut self) {
        // However it ended, even by a panic, the other actors end with it.
        self.mesh.do_send(Halt);
        if let Some(worker) = &self.worker {
            worker.do_send(Halt);
        }
        self.observer.do_send(Halt);
    }
}

impl Handler<Incoming> for SiloActor {
    type Result = ();

    fn handle(&mut self, incoming: Incoming, ctx: &mut Context<Self>) {
        if !self.run_state.is_running() {
            return;
        }
        match incoming {
            Incoming::Input(input) => self.step(*input, ctx),
            Incoming::Wanted { by, blobs, ticket } => {
                let blob = |hash: &protocol::Hash| {
                    let may = self.seat().member.may_serve(by, hash);
                    let blob = may.then(|| self.blobs.get(hash)).flatten();
                    blob.filter(|blob| !PreparedRound::is(blob))
                };
                let blobs = blobs.iter().map(blob).collect();
                self.send(vec![Command::Serve { ticket, blobs }]);
            }
            Incoming::End => self.end(Stopped::Network, ctx),
        }
    }
}

impl Handler<VerifiedCertificates> for SiloActor {
    type Result = MessageResult<VerifiedCertificates>;

    fn handle(&mut self, _: VerifiedCertificates, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.seat().member.known())
    }
}

impl Handler<WorkResult> for SiloActor {
    type Result = ();

    fn handle(&mut self, result: WorkResult, ctx: &mut Context<Self>) {
        if self.run_state.is_running() {
            self.finish(result, ctx);
        }
    }
}

impl Handler<WishMessage> for SiloActor {
    type Result = ();

    fn handle(&mut self, WishMessage(input): WishMessage, ctx: &mut Context<Self>) {
        if self.run_state.is_running() {
            self.step(input, ctx);
        }
    }
}

impl Handler<StopSilo> for SiloActor {
    type Result = ();

    fn handle(&mut self, _: StopSilo, ctx: &mut Context<Self>) {
        self.run_state.stop(Stopped::Asked);
        self.notify(vec![Notice::Stopped(Stopped::Asked)]);
        ctx.terminate();
    }
}

impl Handler<Halt> for SiloActor {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Context<Self>) {
        ctx.terminate();
    }
}

impl SiloActor {
    /// Sends commands to the mesh. They are lost if its mailbox is full.
    fn send(&mut self, commands: Vec<Command>) {
        if commands.is_empty() {
            return;
        }
        let messages = commands.len() as u64;
        if self.mesh.try_send(Outgoing(commands)).is_err() {
            self.counters.add(|counts| counts.lost += messages);
            self.notify(vec![Notice::Lost { messages }]);
        }
    }
}
