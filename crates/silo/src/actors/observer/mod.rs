//! Tells people and measurements what a silo does.

mod messages;
mod telling;

use std::rc::Rc;

use actix::{Actor, ActorContext, Context, Handler};
use tracing::Span;

pub(crate) use messages::Notices;

use super::silo::Halt;
use crate::handle::Life;
use crate::notice::{Feed, Notice};

/// Turns notices into events, and passes them on.
pub(crate) struct ObserverActor {
    span: Span,
    feed: Feed,
    life: Rc<Life>,
    /// Where the silo is, for events that do not say it themselves.
    round: u64,
    view: u64,
}

impl ObserverActor {
    pub(crate) fn new(span: Span, feed: Feed, life: Rc<Life>) -> Self {
        Self {
            span,
            feed,
            life,
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
            // Telling is an effect too; only why it stopped is still said.
            if self.life.alive() || matches!(notice, Notice::Stopped(_)) {
                let _entered = self.span.enter();
                telling::tell(notice, &mut self.round, &mut self.view);
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
