//! Pumps the network in both directions.

mod guard;
mod messages;
mod pump;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use actix::fut::wrap_future;
use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Recipient};
use protocol::Epoch;
use protocol::net::Command;
use tokio::sync::mpsc;

use guard::Guard;
pub(crate) use messages::{Arrived, Fetch, Heard, Listen, Outgoing, WhatIsKnown};
use pump::Pump;

use super::observer::Notices;
use super::silo::Halt;
use crate::checks::Checks;
use crate::clock::Clock;
use crate::handle::{Counters, Life};
use crate::notice::Notice;
use crate::surroundings::{Network, Pool};

/// Steps whose commands may wait here; the actor never waits itself, so they rarely do.
const MAILBOX: usize = 1024;

/// Who waits for blobs: one actor asks for all of them.
type Waiting = Rc<RefCell<Option<Recipient<Arrived>>>>;

/// What opening envelopes takes.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) epoch: Arc<Epoch>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) pool: Arc<dyn Pool>,
}

/// The way to the network and back.
pub(crate) struct MeshActor {
    network: Network,
    door: Door,
    waiting: Waiting,
    observer: Recipient<Notices>,
    clock: Clock,
    life: Rc<Life>,
    counters: Rc<Counters>,
    guard: Rc<RefCell<Guard>>,
}

impl MeshActor {
    pub(crate) fn new(
        network: Network,
        door: Door,
        observer: Recipient<Notices>,
        clock: Clock,
        life: Rc<Life>,
        counters: Rc<Counters>,
    ) -> Self {
        let waiting = Waiting::default();
        let guard = Guard::new(&door.epoch, clock.now(), counters.clone());
        Self {
            guard: Rc::new(RefCell::new(guard)),
            network,
            door,
            waiting,
            observer,
            clock,
            life,
            counters,
        }
    }

    /// Hands one command over; false if it did not fit.
    fn command(&self, command: Command) -> bool {
        let kind = count(&command);
        let fits = self.network.commands.try_send(command).is_ok();
        self.counters
            .add(|counts| if fits { kind(counts) } else { counts.lost += 1 });
        fits
    }

    fn report_lost(&self, messages: u64) {
        if messages > 0 {
            let list = vec![Notice::Lost { messages }];
            self.observer.do_send(Notices {
                at: self.clock.now(),
                list,
            });
        }
    }
}

fn count(command: &Command) -> impl FnOnce(&mut crate::handle::Counts) + use<> {
    let (mut sent, mut published, mut served, mut unserved) = (0, 0, 0, 0);
    match command {
        Command::Send { .. } => sent = 1,
        Command::Publish { .. } => published = 1,
        Command::Fetch { .. } | Command::Judge { .. } | Command::Mute { .. } => {}
        Command::Serve { blobs, .. } => {
            served = blobs.iter().flatten().count() as u64;
            unserved = blobs.len() as u64 - served;
        }
    }
    move |counts| {
        counts.sent += sent;
        counts.published += published;
        counts.served += served;
        counts.unserved += unserved;
    }
}

impl Actor for MeshActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Listen> for MeshActor {
    type Result = ();

    fn handle(&mut self, to: Listen, ctx: &mut Context<Self>) {
        // The actor keeps an end of nothing in place of the events; it hears them only here.
        let events = std::mem::replace(&mut self.network.events, mpsc::channel(1).1);
        let pump = Pump {
            door: self.door.clone(),
            to,
            commands: self.network.commands.clone(),
            guard: self.guard.clone(),
            waiting: self.waiting.clone(),
            observer: self.observer.clone(),
            clock: self.clock,
            life: self.life.clone(),
            counters: self.counters.clone(),
        };
        ctx.spawn(wrap_future(pump.run(events)));
    }
}

impl Handler<Outgoing> for MeshActor {
    type Result = ();

    fn handle(&mut self, Outgoing(commands): Outgoing, _: &mut Context<Self>) {
        if !self.life.alive() {
            return;
        }
        let mut lost = 0;
        for command in commands {
            if let Command::Send { frame, .. } | Command::Publish { frame } = &command {
                self.door.checks.made(&self.door.epoch, frame);
            }
            if let Command::Send { to, frame } = &command {
                self.guard.borrow_mut().said(*to, frame);
            }
            lost += u64::from(!self.command(command));
        }
        self.report_lost(lost);
    }
}

impl Handler<Fetch> for MeshActor {
    type Result = ();

    fn handle(&mut self, fetch: Fetch, _: &mut Context<Self>) {
        if !self.life.alive() {
            return;
        }
        let Fetch { blobs, from, reply } = fetch;
        let missing = blobs.iter().map(|wish| wish.hash).collect();
        if !self.command(Command::Fetch { blobs, from }) {
            let blobs = Vec::new();
            reply.do_send(Arrived { blobs, missing });
            self.report_lost(1);
        }
        self.waiting.replace(Some(reply));
    }
}

impl Handler<Halt> for MeshActor {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Context<Self>) {
        ctx.terminate();
    }
}
