//! Carries out effects, in order, once the records among them are durable.

use actix::{ActorContext, Addr, AsyncContext, Context};
use protocol::net::Command;
use protocol::{Effect, Input};

use super::SiloActor;
use crate::actors::messages::{WorkRequest, WorkResult};
use crate::error::Stopped;
use crate::notice::Notice;

impl SiloActor {
    /// Carries out the effects of one step, whose records are durable.
    pub(super) fn perform(&mut self, ctx: &mut Context<Self>) {
        let mut effects = self.take_effects();
        let (mut commands, mut notices) = (Vec::new(), Vec::new());
        let mut over = false;
        for effect in effects.drain(..) {
            match effect {
                Effect::Persist(_) => {}
                Effect::EpochOver(_) => over = true,
                Effect::Send { to, frame } => commands.push(Command::Send { to, frame }),
                Effect::Publish { frame } => commands.push(Command::Publish { frame }),
                Effect::Await { keys } => commands.push(Command::Await { keys }),
                Effect::Report(report) => {
                    self.counters.follow(&report);
                    self.spans.follow(&report);
                    notices.push(Notice::Protocol(report));
                }
                Effect::Work(request) => {
                    self.activities.begin(request.kind());
                    self.spans.begin(request.kind());
                    let reply = ctx.address().recipient();
                    // A member that takes no part in rounds asks for no work.
                    if let Some(worker) = &self.worker {
                        worker.do_send(WorkRequest { request, reply });
                    }
                }
            }
        }
        self.return_buffer(effects);
        self.send(commands);
        self.notify(notices);
        if over {
            self.run_state.stop(Stopped::EpochOver);
            self.notify(vec![Notice::Stopped(Stopped::EpochOver)]);
            return ctx.terminate();
        }
        if self.worker.as_ref().is_none_or(Addr::connected) {
            self.arm(ctx);
        } else {
            self.end(Stopped::Defect("the worker ended".into()), ctx);
        }
    }

    /// Takes the result of heavy work: first makes its records durable, then its line in the ledger,
    /// and then steps the state machine. Whoever is killed in between finds the records, and asks for
    /// the same line again.
    pub(super) fn finish(&mut self, mut result: WorkResult, ctx: &mut Context<Self>) {
        let records = std::mem::take(&mut result.records);
        let line = result.line.take();
        if records.is_empty() && line.is_none() {
            return self.finish_durable(result, ctx);
        }
        self.at_seat(
            ctx,
            move |seat| seat.commit_with(records, line),
            move |actor, ctx| {
                let result = match actor.take_refusal() {
                    Some(why) => result.refused(why),
                    None => result,
                };
                actor.finish_durable(result, ctx);
            },
        );
    }

    fn finish_durable(&mut self, result: WorkResult, ctx: &mut Context<Self>) {
        if let Ok(answer) = &result.answer {
            self.activities.end(answer.kind());
            self.spans.end(answer.kind());
        }
        let mut notices = result.notices;
        // Old blobs go only after the records that replace them are durable.
        if let Some(Err(error)) = result
            .retain
            .map(|(keep, mark)| self.blobs.retain(&keep, mark))
        {
            notices.push(Notice::Store {
                reason: error.to_string(),
            });
        }
        self.notify(notices);
        match result.answer {
            Ok(answer) => self.step(Input::Done(answer), ctx),
            Err(why) => self.end(Stopped::Defect(why), ctx),
        }
    }
}
