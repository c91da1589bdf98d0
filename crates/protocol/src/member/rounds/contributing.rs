//! This member's own part of a round: training, contributing, and what others contribute.

use std::time::Duration;

use bytes::Bytes;

use crate::effects::{Effect, Record, Report};
use crate::envelope;
use crate::hash::Hash;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::participation::ParticipationState;
use crate::member::consensus::views::View;
use crate::member::rounds::RoundKind;
use crate::member::rounds::round::Round;
use crate::member::{Config, Member};
use crate::message::{Body, Contribution, Keys, Kind, METRIC_NAME, METRICS, Message};
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::Trained;

use crate::evidence::Evidence;
use crate::member::rounds::own::{Lateness, OwnContribution, TrainingState};
use crate::refusal::Refusal;
/// Beats after which a member says again that it has nothing.
const AGAIN: u32 = 4;

/// What follows from a contribution that came again.
pub(in crate::member) enum Again {
    /// The sender signed two different contributions for a round.
    Contradiction(Box<Evidence>),
    /// The sender seems to lack the receipt.
    WithoutReceipt(MemberIndex),
}

/// This member's part of the round under way. Borrows what that depends on.
pub(in crate::member) struct Contributing<'a> {
    kind: &'static dyn RoundKind,
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) now: Time,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a Chain,
    pub(in crate::member) view: &'a View,
    pub(in crate::member) round: &'a mut Round,
    pub(in crate::member) receipt: &'a mut Option<Hash>,
    pub(in crate::member) participation: &'a ParticipationState,
    /// The last round is adopted here.
    pub(in crate::member) complete: bool,
    /// The institution has not signed the agreement in force.
    pub(in crate::member) paused: bool,
}

impl Member {
    /// Lends what this member's part of the round depends on.
    pub(in crate::member) fn contributing(&mut self) -> Contributing<'_> {
        Contributing {
            kind: self.rounds.kind,
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            view: &self.consensus.view,
            round: &mut self.rounds.round,
            receipt: &mut self.rounds.receipt,
            participation: &self.consensus.participation,
            complete: self.rounds.completion.reached,
            paused: self.governance.paused,
        }
    }
}

impl Contributing<'_> {
    /// Takes back the contribution that was made durable before a restart, if it is to this round.
    pub(in crate::member) fn restore(&mut self, message: Message) {
        if message.round != self.round.number {
            return;
        }
        let epoch = &self.config.epoch;
        let frame = envelope::reseal(epoch, &message);
        self.contributed(message, frame);
    }

    /// Keeps a signed contribution, with its bytes for the wire.
    fn contributed(&mut self, message: Message, frame: Bytes) {
        let federation = &self.config.epoch.federation;
        let (id, entry) = match &message.body {
            Body::Contribution(contribution) => {
                let entry = contribution.entry(federation, message.round);
                self.round.models.hold([entry.fields.blob]);
                (entry.id, Some(entry))
            }
            Body::Keys(keys) => (keys.id(federation, message.round, message.sender), None),
            _ => return,
        };
        self.round.own.training = TrainingState::Contributed(Box::new(OwnContribution {
            message,
            frame,
            id,
            entry,
            at: self.now,
        }));
    }

    /// Starts to train, once the plan is known and names this member.
    pub(in crate::member) fn train(&mut self) {
        let Some(plan) = self.round.plan() else {
            return;
        };
        let round = plan.round;
        let may_train = !self.complete && !self.participation.lost_journal() && !self.paused;
        let due = matches!(self.round.own.training, TrainingState::Due);
        if due && may_train && self.round.participates(self.config.me) {
            self.round.own.training = TrainingState::Running;
            self.out.push(Effect::Work(self.kind.work(round)));
        }
    }

    /// Training is over; it gave a model, or in a masked round the keys for its vector.
    pub(in crate::member) fn trained(&mut self, round: u64, result: Result<TrainingState, String>) {
        if round != self.round.number || !matches!(self.round.own.training, TrainingState::Running)
        {
            return;
        }
        self.round.own.training = match result {
            Ok(finished) => finished,
            Err(reason) => {
                let report = Report::TrainingFailed { round, reason };
                self.out.push(Effect::Report(report));
                TrainingState::Failed {
                    told: false,
                    heartbeats: 0,
                }
            }
        };
    }

    /// Signs a finished training, unless this member only listens, and sends it to the lead.
    pub(in crate::member) fn contribute(&mut self) {
        if self.participation.listening() || self.complete || self.paused {
            return;
        }
        let Some(plan) = self.round.plan().map(|plan| plan.plan) else {
            return;
        };
        if !self.chain.settled() {
            return;
        }
        let round = self.round.number;
        let (body, blob) = match &self.round.own.training {
            TrainingState::Finished(trained) => {
                let contribution = self.contribution(plan, trained.clone());
                let blob = contribution.fields.blob;
                (Body::Contribution(contribution), blob)
            }
            &TrainingState::Prepared(public) => {
                let keys = Keys { plan, public };
                let id = keys.id(&self.config.epoch.federation, round, self.config.me);
                (Body::Keys(keys), id)
            }
            _ => return,
        };
        let (message, frame) = self.config.sign(round, 0, body);
        self.out
            .push(Effect::Persist(Record::Contributed(message.clone())));
        self.out
            .push(Effect::Report(Report::Contributed { round, blob }));
        self.contributed(message, frame);
        self.send_contribution();
    }

    /// The contribution of a trained model.
    fn contribution(&self, plan: Hash, trained: Trained) -> Contribution {
        let Trained {
            fields,
            mut metrics,
        } = trained;
        let sane = |(name, value): &(String, f64)| value.is_finite() && name.len() <= METRIC_NAME;
        metrics.retain(sane);
        metrics.truncate(METRICS);
        let round = self.round.number;
        let nonce = self.config.nonce(round);
        Contribution {
            plan,
            fields,
            nonce,
            metrics,
        }
    }

    /// Sends the contribution to the lead of the view, unless the lead has given its receipt.
    pub(in crate::member) fn send_contribution(&mut self) {
        let TrainingState::Contributed(own) = &self.round.own.training else {
            return;
        };
        let silent = self.participation.listening() || self.complete || !self.chain.settled();
        if self.receipt.is_none() && !silent {
            let (message, frame) = (own.message.clone(), own.frame.clone());
            self.out.send(self.view.lead, &message, &frame);
        }
    }

    /// Once per heartbeat: sends the contribution again. While a block of the round may become final, its
    /// lead knows whose it is, and the next one need not: only after D, the `phase`, that one may need it.
    pub(in crate::member) fn repeat_contribution(&mut self, phase: Duration) {
        let early = self.now < self.view.entered + phase;
        let waits = early && self.chain.newest_notarised().is_some();
        if self.view.lead != self.config.me && !waits {
            self.send_contribution();
        }
    }

    /// Tells the others, once, that nothing comes of a training that failed, so that nobody waits for it.
    pub(in crate::member) fn say_nothing(&mut self) {
        let silent = self.participation.listening() || self.complete;
        let told = TrainingState::Failed {
            told: true,
            heartbeats: 0,
        };
        let untold = matches!(
            self.round.own.training,
            TrainingState::Failed { told: false, .. }
        );
        let known = Kind::Abstain.since() <= self.config.epoch.format;
        if untold && known && !silent {
            self.round.own.training = told;
            self.has_nothing(self.config.me, self.round.number);
            self.send_nothing(&self.config.others());
        }
    }

    /// Once per heartbeat: says it again every few heartbeats.
    pub(in crate::member) fn repeat_nothing(&mut self) {
        if let TrainingState::Failed {
            told: true,
            heartbeats,
        } = &mut self.round.own.training
        {
            *heartbeats += 1;
            if heartbeats.is_multiple_of(AGAIN) {
                self.send_nothing(&self.config.others());
            }
        }
    }

    /// Says to these members that this one contributes nothing to this round, if that is so.
    pub(in crate::member) fn send_nothing(&mut self, members: &[MemberIndex]) {
        if !matches!(
            self.round.own.training,
            TrainingState::Failed { told: true, .. }
        ) {
            return;
        }
        let (_, frame) = self.config.sign(self.round.number, 0, Body::Abstain);
        let send = |&to: &MemberIndex| Effect::Send {
            to,
            frame: frame.clone(),
        };
        self.out.extend(members.iter().map(send));
    }

    /// The lead of the view has this member's model.
    pub(in crate::member) fn receipt(&mut self, message: &Message) {
        let own = self.round.own.id();
        match message.body {
            Body::Receipt { entry } if own == Some(entry) => {
                *self.receipt = Some(entry);
                self.round.own.keep_receipt(message);
            }
            _ => {}
        }
    }

    /// A member contributes nothing to this round or the next: nobody waits for it.
    pub(in crate::member) fn has_nothing(&mut self, member: MemberIndex, round: u64) {
        let ahead = round.checked_sub(self.round.number);
        let of_round = ahead.and_then(|ahead| self.round.inbox.nothing.get_mut(ahead as usize));
        let new = of_round.is_some_and(|members| members.insert(member));
        if new && member != self.config.me {
            let report = Report::Nothing { member, round };
            self.out.push(Effect::Report(report));
        }
    }

    /// Keeps a contribution to this round or the next.
    pub(in crate::member) fn take(&mut self, message: Message) -> Option<Again> {
        let sender = message.sender;
        if !self.kind.takes(&message.body) {
            self.out.refuse(sender, message.round, Refusal::OtherMode);
            return None;
        }
        if matches!(&message.body, Body::Contribution(own) if !own.has_sane_metrics()) {
            self.out.refuse(sender, message.round, Refusal::Metrics);
            return None;
        }
        let inbox = &mut self.round.inbox;
        let (kept, current) = match message.round.checked_sub(self.round.number) {
            Some(0) => (&mut inbox.contributions, true),
            Some(1) => (&mut inbox.early, false),
            _ => {
                let (round, now) = (message.round, self.round.number);
                if round < now && inbox.stale.insert(sender) {
                    let reason = Refusal::StaleContribution { got: round, now };
                    self.out.refuse(sender, now, reason);
                }
                return None;
            }
        };
        match kept.get(&sender) {
            None => {
                kept.insert(sender, message);
                None
            }
            // Equal content has an equal signature.
            Some(earlier) if earlier.signature != message.signature => {
                let evidence = Evidence::of(earlier, &message)?;
                let reason = Refusal::Contradiction(evidence.charge());
                self.out.refuse(sender, message.round, reason);
                Some(Again::Contradiction(Box::new(evidence)))
            }
            Some(_) => current.then_some(Again::WithoutReceipt(sender)),
        }
    }

    /// The round under way became final without this member's contribution: reports that it came too late, or that
    /// the lead left it out, which had signed that it has it.
    pub(in crate::member) fn report_lateness(&mut self) {
        let me = self.config.me;
        if self.chain.learned.round != self.round.number {
            return;
        }
        if self.chain.learned.authors.binary_search(&me).is_ok() || self.participation.listening() {
            return;
        }
        let started = self.round.started;
        let ready = match self.round.own.lateness() {
            None => return,
            Some(Lateness::NotReady) => None,
            Some(Lateness::Ready(at)) => Some(at - started),
        };
        let (round, over) = (self.round.number, self.now - started);
        let receipt = self.round.own.receipt_of(self.chain.learned.view);
        if let Some(held) = receipt.filter(|held| held.message.sender != me) {
            let report = Report::ReceiptUnkept {
                round,
                receipt: Box::new(held.message.clone()),
                signed: held.signed,
            };
            return self.out.push(Effect::Report(report));
        }
        let late = Report::Late { round, ready, over };
        self.out.push(Effect::Report(late));
    }
}
