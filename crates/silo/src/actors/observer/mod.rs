//! Passes the notices of a silo to the log and to its [`Feed`].

mod log;

use std::rc::Rc;

use actix::{Actor, ActorContext, Context, Handler};

use super::messages::{Halt, Notices};
use crate::notice::{Feed, Notice};
use crate::run_state::RunState;
use crate::spans::Spans;

/// Logs notices, and passes them to the feed.
pub(crate) struct ObserverActor {
    spans: Rc<Spans>,
    feed: Feed,
    run_state: Rc<RunState>,
    /// Current round and view, for notices without their own.
    round: u64,
    view: u64,
}

impl ObserverActor {
    pub(crate) fn new(spans: Rc<Spans>, feed: Feed, run_state: Rc<RunState>) -> Self {
        Self {
            spans,
            feed,
            run_state,
            round: 0,
            view: 0,
        }
    }
}

impl Actor for ObserverActor {
    type Context = Context<Self>;
}

impl Handler<Notices> for ObserverActor {
    type Result = ();

    fn handle(&mut self, Notices { at, list }: Notices, _: &mut Context<Self>) {
        for notice in &list {
            // A notice is an effect too: after the end only the reason is passed on.
            if self.run_state.is_running() || matches!(notice, Notice::Stopped(_)) {
                let _entered = self.spans.current().entered();
                log::log(notice, &mut self.round, &mut self.view);
                (self.feed)(at, notice);
            }
        }
    }
}

impl Handler<Halt> for ObserverActor {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Context<Self>) {
        ctx.terminate();
    }
}
