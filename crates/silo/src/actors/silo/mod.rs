//! Owns the state machine: feeds it what happened, and does what it says.

mod effects;
mod messages;

use std::rc::Rc;
use std::sync::Arc;

use actix::{
    Actor, ActorContext, Addr, AsyncContext, Context, Handler, MessageResult, SpawnHandle,
};
use protocol::net::Command;
use protocol::{Effect, Input, Member, Time};

pub(crate) use messages::{Answer, Halt, Stop};

use super::mesh::{Heard, Listen, MeshActor, Outgoing, WhatIsKnown};
use super::observer::{Notices, ObserverActor};
use super::worker::WorkerActor;
use crate::clock::Clock;
use crate::handle::{Counters, Life, Stopped};
use crate::notice::Notice;
use crate::surroundings::{Blobs, Journal};

/// Messages that may wait; then the network does.
const MAILBOX: usize = 256;

/// The silo's member of the federation.
pub(crate) struct SiloActor {
    pub(crate) member: Member,
    pub(crate) journal: Box<dyn Journal>,
    /// It came as new, and nothing is in the journal yet.
    pub(crate) begins: bool,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) mesh: Addr<MeshActor>,
    pub(crate) worker: Addr<WorkerActor>,
    pub(crate) observer: Addr<ObserverActor>,
    pub(crate) clock: Clock,
    pub(crate) life: Rc<Life>,
    pub(crate) counters: Rc<Counters>,
    /// Effects not done yet: of coming to life, then empty between steps.
    pub(crate) effects: Vec<Effect>,
    /// When the state machine is next told that time has passed, if nothing else happens.
    pub(crate) timer: Option<(Time, SpawnHandle)>,
}

impl SiloActor {
    /// One step of the state machine, and its effects.
    fn step(&mut self, input: Input, ctx: &mut Context<Self>) {
        self.member.step(self.clock.now(), input, &mut self.effects);
        self.perform(ctx);
    }

    /// Sees to it that the actor wakes at the member's deadline. A timer that is too early only
    /// looks again, so the many messages that move the deadline back cost nothing.
    fn arm(&mut self, ctx: &mut Context<Self>) {
        let Some(deadline) = self.member.deadline() else {
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
        if !self.life.alive() {
            return;
        }
        if self
            .member
            .deadline()
            .is_some_and(|deadline| deadline <= self.clock.now())
        {
            self.step(Input::Time, ctx);
        } else {
            self.arm(ctx);
        }
    }

    fn tell(&self, list: Vec<Notice>) {
        if !list.is_empty() {
            self.observer.do_send(Notices {
                at: self.clock.now(),
                list,
            });
        }
    }

    /// Stops here; nothing more is done.
    fn end(&mut self, reason: Stopped, ctx: &mut Context<Self>) {
        self.life.end(reason.clone());
        self.tell(vec![Notice::Stopped(reason)]);
        ctx.terminate();
    }
}

impl Actor for SiloActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
        let me = ctx.address();
        self.mesh.do_send(Listen {
            heard: me.clone().recipient(),
            known: me.recipient(),
        });
        self.perform(ctx);
    }
}

impl Drop for SiloActor {
    fn drop(&mut self) {
        // However it ended, a panic included: no actor outlives it.
        self.mesh.do_send(Halt);
        self.worker.do_send(Halt);
        self.observer.do_send(Halt);
    }
}

impl Handler<Heard> for SiloActor {
    type Result = ();

    fn handle(&mut self, heard: Heard, ctx: &mut Context<Self>) {
        if !self.life.alive() {
            return;
        }
        match heard {
            Heard::Input(input) => self.step(*input, ctx),
            Heard::Wanted { by, blobs, ticket } => {
                let serve = |hash: &protocol::Hash| {
                    let may = self.member.may_serve(by, hash);
                    may.then(|| self.blobs.get(hash)).flatten()
                };
                let blobs = blobs.iter().map(serve).collect();
                self.say(vec![Command::Serve { ticket, blobs }]);
            }
            Heard::End => self.end(Stopped::Network, ctx),
        }
    }
}

impl Handler<WhatIsKnown> for SiloActor {
    type Result = MessageResult<WhatIsKnown>;

    fn handle(&mut self, _: WhatIsKnown, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.member.known())
    }
}

impl Handler<Answer> for SiloActor {
    type Result = ();

    fn handle(&mut self, answer: Answer, ctx: &mut Context<Self>) {
        if self.life.alive() {
            self.answered(answer, ctx);
        }
    }
}

impl Handler<Stop> for SiloActor {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Context<Self>) {
        self.life.leave(Stopped::Asked);
        self.tell(vec![Notice::Stopped(Stopped::Asked)]);
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
    /// Hands commands to the mesh. What does not fit is lost.
    fn say(&mut self, commands: Vec<Command>) {
        if commands.is_empty() {
            return;
        }
        let messages = commands.len() as u64;
        if self.mesh.try_send(Outgoing(commands)).is_err() {
            self.counters.add(|counts| counts.lost += messages);
            self.tell(vec![Notice::Lost { messages }]);
        }
    }
}
