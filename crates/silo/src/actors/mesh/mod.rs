//! Connects a silo to its network, in both directions.

mod guard;
mod pump;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use actix::fut::wrap_future;
use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Recipient};
use bytes::Bytes;
use protocol::net::Command;
use protocol::{Epoch, Frame, Hash};
use tokio::sync::mpsc;

use guard::Guard;
use pump::Pump;

use super::messages::{Fetch, Fetched, Halt, Notices, Outgoing, Subscribe};
use crate::checks::Checks;
use crate::clock::Clock;
use crate::environment::{Network, Pool};
use crate::notice::Notice;
use crate::run_state::{Counters, Counts, RunState};

/// Steps whose commands may wait in the mailbox. The actor never waits, so they rarely do.
const MAILBOX: usize = 1024;

/// The worker, once it has asked for blobs.
type FetchRecipient = Rc<RefCell<Option<Recipient<Fetched>>>>;

/// What is needed to open envelopes.
#[derive(Clone)]
pub(crate) struct Opener {
    pub(crate) epoch: Arc<Epoch>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) pool: Arc<dyn Pool>,
    /// Answers to members of former epochs.
    pub(crate) former: Arc<[(Hash, Bytes)]>,
}

/// Sends commands to the network; its [`Pump`] receives the events.
pub(crate) struct MeshActor {
    network: Network,
    opener: Opener,
    waiting: FetchRecipient,
    observer: Recipient<Notices>,
    clock: Clock,
    run_state: Rc<RunState>,
    counters: Rc<Counters>,
    guard: Rc<RefCell<Guard>>,
}

impl MeshActor {
    pub(crate) fn new(
        network: Network,
        opener: Opener,
        observer: Recipient<Notices>,
        clock: Clock,
        run_state: Rc<RunState>,
        counters: Rc<Counters>,
    ) -> Self {
        let waiting = FetchRecipient::default();
        let guard = Guard::new(&opener.epoch, clock.now(), counters.clone());
        Self {
            guard: Rc::new(RefCell::new(guard)),
            network,
            opener,
            waiting,
            observer,
            clock,
            run_state,
            counters,
        }
    }

    /// Sends one command to the network. False if its queue is full.
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

/// The counters that a sent command raises.
fn count(command: &Command) -> impl FnOnce(&mut Counts) + use<> {
    let (mut sent, mut published, mut served, mut unserved) = (0, 0, 0, 0);
    match command {
        Command::Send { .. } => sent = 1,
        Command::Publish { .. } => published = 1,
        Command::Fetch { .. }
        | Command::Judge { .. }
        | Command::Await { .. }
        | Command::Mute { .. } => {}
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

impl Handler<Subscribe> for MeshActor {
    type Result = ();

    fn handle(&mut self, subscriber: Subscribe, ctx: &mut Context<Self>) {
        // The pump takes the events; the actor keeps a closed channel in their place.
        let events = std::mem::replace(&mut self.network.events, mpsc::channel(1).1);
        let pump = Pump {
            opener: self.opener.clone(),
            subscriber,
            commands: self.network.commands.clone(),
            guard: self.guard.clone(),
            waiting: self.waiting.clone(),
            observer: self.observer.clone(),
            clock: self.clock,
            run_state: self.run_state.clone(),
            counters: self.counters.clone(),
        };
        ctx.spawn(wrap_future(pump.run(events)));
    }
}

impl Handler<Outgoing> for MeshActor {
    type Result = ();

    fn handle(&mut self, Outgoing(commands): Outgoing, _: &mut Context<Self>) {
        if !self.run_state.is_running() {
            return;
        }
        let mut lost = 0;
        for command in commands {
            if let Command::Send { frame, .. } | Command::Publish { frame } = &command {
                let frame = Frame::from(frame);
                self.opener.checks.signed(&self.opener.epoch, &frame);
                if let Command::Send { to, .. } = &command {
                    self.guard.borrow_mut().sent(*to, &frame);
                }
            }
            lost += u64::from(!self.command(command));
        }
        self.report_lost(lost);
    }
}

impl Handler<Fetch> for MeshActor {
    type Result = ();

    fn handle(&mut self, fetch: Fetch, _: &mut Context<Self>) {
        if !self.run_state.is_running() {
            return;
        }
        let Fetch { blobs, from, reply } = fetch;
        let missing = blobs.iter().map(|wish| wish.hash).collect();
        if !self.command(Command::Fetch { blobs, from }) {
            let blobs = Vec::new();
            reply.do_send(Fetched { blobs, missing });
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
