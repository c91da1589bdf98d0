//! Carries out effects: first makes records durable, then does the rest in order.

use actix::{ActorContext, AsyncContext, Context};
use protocol::net::Command;
use protocol::{Effect, Report};

use super::SiloActor;
use crate::activity::Activity;
use crate::actors::messages::{WorkRequest, WorkResult};
use crate::error::Stopped;
use crate::notice::Notice;
use crate::record::Record;

impl SiloActor {
    /// Carries out the effects of one step.
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
            // From here on the journal counts as lost, also after a restart.
            let lost = effects.iter().any(used).then_some(Record::Lost);
            if !self.commit(lost.into_iter().chain(records).collect(), ctx) {
                return;
            }
        }
        let (mut commands, mut notices) = (Vec::new(), Vec::new());
        let mut over = false;
        for effect in effects.drain(..) {
            match effect {
                Effect::Persist(_) => {}
                Effect::EpochOver(_) => over = true,
                Effect::Send { to, frame } => commands.push(Command::Send { to, frame }),
                Effect::Publish { frame } => commands.push(Command::Publish { frame }),
                Effect::Report(report) => {
                    self.counters.follow(&report);
                    self.spans.follow(&report);
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
                | Effect::Keep { .. }
                | Effect::Apply { .. } => {
                    if let Some(activity) = Activity::of(&effect) {
                        self.activities.begin(activity);
                        self.spans.begin(activity);
                    }
                    let reply = ctx.address().recipient();
                    self.worker.do_send(WorkRequest { effect, reply });
                }
            }
        }
        // The next step reuses the buffer.
        self.effects = effects;
        self.send(commands);
        self.notify(notices);
        if over {
            self.run_state.stop(Stopped::EpochOver);
            self.notify(vec![Notice::Stopped(Stopped::EpochOver)]);
            return ctx.terminate();
        }
        if self.worker.connected() {
            self.arm(ctx);
        } else {
            self.end(Stopped::Defect("the worker ended".into()), ctx);
        }
    }

    /// Takes the result of heavy work: first makes its records durable, then steps the state
    /// machine.
    pub(super) fn finish(&mut self, result: WorkResult, ctx: &mut Context<Self>) {
        if !result.records.is_empty() && !self.commit(result.records, ctx) {
            return;
        }
        let answered = result.input.as_ref().ok().and_then(Activity::answered_by);
        if let Some(activity) = answered {
            self.activities.end(activity);
            self.spans.end(activity);
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
        match result.input {
            Ok(input) => self.step(input, ctx),
            Err(why) => self.end(Stopped::Defect(why), ctx),
        }
    }

    /// Commits one transaction. False if the silo ended because it failed.
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
