//! Doing what the state machine says: first what must be durable, then the rest in order.

use actix::{AsyncContext, Context};
use protocol::net::Command;
use protocol::{Effect, Report};

use super::{Answer, SiloActor};
use crate::actors::worker::Do;
use crate::handle::Stopped;
use crate::notice::Notice;
use crate::record::Record;

impl SiloActor {
    /// Does the effects of one step.
    pub(super) fn perform(&mut self, ctx: &mut Context<Self>) {
        let mut effects = std::mem::take(&mut self.effects);
        let lasting = |effect: &Effect| {
            matches!(
                effect,
                Effect::Persist(_) | Effect::Report(Report::KeyUsedBefore)
            )
        };
        if effects.iter().any(lasting) {
            let records = effects.iter().filter_map(|effect| match effect {
                Effect::Persist(record) => Some(Record::Protocol(record.clone())),
                _ => None,
            });
            let used = |effect: &Effect| matches!(effect, Effect::Report(Report::KeyUsedBefore));
            // From here on it is a silo without its journal, also in its next life.
            let lost = effects.iter().any(used).then_some(Record::Lost);
            if !self.commit(lost.into_iter().chain(records).collect(), ctx) {
                return;
            }
        }
        let (mut commands, mut notices) = (Vec::new(), Vec::new());
        for effect in effects.drain(..) {
            match effect {
                Effect::Persist(_) => {}
                Effect::Send { to, frame } => commands.push(Command::Send { to, frame }),
                Effect::Publish { frame } => commands.push(Command::Publish { frame }),
                Effect::Report(report) => {
                    self.counters.follow(&report);
                    notices.push(Notice::Protocol(report));
                }
                Effect::Plan { .. }
                | Effect::Train { .. }
                | Effect::Admit { .. }
                | Effect::Evaluate { .. }
                | Effect::Hold { .. }
                | Effect::Decide { .. }
                | Effect::Check { .. }
                | Effect::Settle { .. }
                | Effect::Apply { .. } => {
                    let reply = ctx.address().recipient();
                    self.worker.do_send(Do { effect, reply });
                }
            }
        }
        // The buffer is used again by the next step.
        self.effects = effects;
        self.say(commands);
        self.tell(notices);
        if self.worker.connected() {
            self.arm(ctx);
        } else {
            self.end(Stopped::Defect("the worker ended".into()), ctx);
        }
    }

    /// Takes the answer to a job: durable first, then the state machine.
    pub(super) fn answered(&mut self, answer: Answer, ctx: &mut Context<Self>) {
        if !answer.keep.is_empty() && !self.commit(answer.keep, ctx) {
            return;
        }
        let mut notices = answer.notices;
        // Only now that what replaces them is durable.
        if let Some(Err(error)) = answer.retain.map(|keep| self.blobs.retain(&keep)) {
            notices.push(Notice::Store {
                reason: error.to_string(),
            });
        }
        self.tell(notices);
        match answer.input {
            Ok(input) => self.step(input, ctx),
            Err(why) => self.end(Stopped::Defect(why), ctx),
        }
    }

    /// One transaction. False if the silo ended with it.
    fn commit(&mut self, mut records: Vec<Record>, ctx: &mut Context<Self>) -> bool {
        if std::mem::take(&mut self.begins) {
            records.insert(0, Record::Begun);
        }
        self.counters.add(|counts| counts.commits += 1);
        let committed = self.journal.commit(records);
        committed
            .map_err(|error| self.end(Stopped::Journal(error), ctx))
            .is_ok()
    }
}
