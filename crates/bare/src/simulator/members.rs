//! Members of a bare run: how they start, receive, send, crash and restart.

use std::time::Duration;

use bytes::Bytes;
use protocol::effects::{Effect, Input, Report};
use protocol::envelope::{OpenError, Opened};
use protocol::member::{Config, Member, Start};
use protocol::message::Passage;
use protocol::{MemberIndex, Record, envelope};

use crate::byzantine::Actions;

use super::super::faults::JournalLoss;
use super::super::work::{self, MemberStore};
use super::scripted::MemberKill;
use super::{BareEvent, FailureKind, HEARTBEAT, Simulator, violated};
use crate::moments::StepCut;

impl Simulator<'_> {
    pub(super) fn start(&mut self, at: usize) -> Result<(), FailureKind> {
        let hidden = self.options.faults.journal_loss == JournalLoss::Hidden;
        let node = &mut self.nodes[at];
        if node.member.is_some() || node.dead.is_some() || node.away {
            return Ok(());
        }
        // A lost journal is no trace of what was signed; that an epoch is over is told by others.
        if node.lost {
            node.journal.retain(Record::ends_epoch);
        }
        let records = self.catch_up(at)?;
        if self.seat(at).is_none() {
            if self.is_out(at) {
                self.schedule(Duration::ZERO, BareEvent::Farewell(at));
            }
            return Ok(());
        }
        let node = &mut self.nodes[at];
        let first = node.epoch == 0 && node.restarts == 0;
        let start = if first || self.options.journals_vanish {
            Start::New
        } else if node.lost && hidden {
            node.lost = false;
            self.lost_journals.unaware.insert(at);
            Start::New
        } else if node.lost {
            Start::Lost
        } else if node.journal.is_empty() {
            Start::New
        } else {
            Start::Kept(records)
        };
        self.tell(Some(at), || {
            let past = match &start {
                Start::New => "as a new member",
                Start::Kept(_) => "with its journal",
                Start::Lost => "without its journal",
            };
            format!("starts in epoch {} {past}", self.nodes[at].epoch)
        });
        self.begin_monitoring(at)?;
        let node = &mut self.nodes[at];
        node.restarts += 1;
        let seed = self.random.bytes();
        let config = Config::new(self.epoch_of(at).clone(), self.me(at), self.key(at), seed);
        let config = self
            .options
            .configure
            .as_ref()
            .map_or(config.clone(), |configure| configure(config));
        let mut effects = Vec::new();
        self.nodes[at].member = Some(Member::new(config, start, self.now, &mut effects));
        self.excuse_unaware();
        self.perform(at, effects)?;
        self.set_timer(at);
        self.recover(at)?;
        self.say_again(at)
    }

    /// A member crashes, and restarts after a while.
    pub(super) fn crash(&mut self, at: usize) -> Result<(), FailureKind> {
        let me = MemberIndex(at as u16);
        if self.nodes[at].member.is_none() {
            return Ok(());
        }
        let put_back = self.options.faults.journal_loss == JournalLoss::PutBack;
        let loses = self.losing_journals.iter().position(|&member| member == me);
        if let Some(first) = loses {
            self.losing_journals.remove(first);
            if !put_back {
                self.nodes[at].lost = true;
                self.nodes[at].store = MemberStore::default();
            }
        }
        let down = self.random.span(HEARTBEAT / 10, HEARTBEAT * 15);
        self.schedule(down, BareEvent::Restart(at));
        self.stop(at)?;
        if loses.is_some() && put_back {
            return self.put_back(at);
        }
        if self.nodes[at].lost && self.nodes[at].epoch > 0 {
            self.lose_journal(at)?;
        }
        Ok(())
    }

    /// A member stops and loses everything that is not durable.
    pub(super) fn stop(&mut self, at: usize) -> Result<(), FailureKind> {
        self.tell(Some(at), || "stops".into());
        let node = &mut self.nodes[at];
        node.member = None;
        node.restarts += 1;
        node.timer = None;
        let journal_lost = node.lost;
        self.lose_undurable(at);
        let (now, me) = (self.now, self.me(at));
        let crashed = self.monitor(at).crashed(now, me, journal_lost);
        crashed.map_err(violated)?;
        self.excuse_unaware();
        self.relink()
    }

    pub(super) fn deliver(
        &mut self,
        from: usize,
        to: usize,
        frame: &Bytes,
    ) -> Result<(), FailureKind> {
        let Some(member) = &self.nodes[to].member else {
            return Ok(());
        };
        let epoch = self.epoch_of(to);
        let opened = envelope::open(epoch, &*self.signatures, &member.known(), frame);
        if opened.is_ok() {
            // Frames that do not verify are not delivered.
            let (now, reader) = (self.now, self.me(to));
            let delivered = self.monitor(to).delivered(now, reader, frame);
            delivered.map_err(violated)?;
        }
        if let Ok(Opened::Message(message)) = &opened {
            self.note_binding(message, to);
        }
        match opened {
            Ok(opened) => match self.nodes[to].byzantine.as_mut() {
                None => self.feed(to, Input::Opened(opened)),
                Some(byzantine) => {
                    let actions = byzantine.incoming(self.now, opened);
                    self.perform_actions(to, actions)
                }
            },
            Err(OpenError::Epoch) => {
                self.answer_former(from, to, frame);
                Ok(())
            }
            Err(_) if self.nodes[from].byzantine.is_some() => Ok(()),
            Err(why) => Err(FailureKind::Unreadable {
                from: format!("node {from}"),
                to: format!("node {to}"),
                why: why.to_string(),
            }),
        }
    }

    pub(super) fn feed(&mut self, at: usize, input: Input) -> Result<(), FailureKind> {
        let Some(member) = self.nodes[at].member.as_mut() else {
            return Ok(());
        };
        let mut effects = Vec::new();
        member.step(self.now, input, &mut effects);
        self.perform(at, effects)?;
        self.set_timer(at);
        self.check_secrets(at)
    }

    fn set_timer(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let deadline = node.member.as_ref().and_then(Member::deadline);
        let deadline = deadline.map(|time| time.max(self.now + Duration::from_micros(1)));
        if deadline != node.timer {
            node.timer = deadline;
            let restarts = node.restarts;
            if let Some(time) = deadline {
                self.schedule(time - self.now, BareEvent::Timer { node: at, restarts });
            }
        }
    }

    /// Carries out the effects of a step, or part of them if the member crashes or dies in it.
    fn perform(&mut self, at: usize, effects: Vec<Effect>) -> Result<(), FailureKind> {
        if let Some(death) = self.due_death(at, &effects) {
            return self.die_within_step(at, effects, death);
        }
        if !self.options.script.is_empty()
            && let Some((kill, cut)) = self.due_kill(at, &effects, effects.iter().any(durable))
        {
            return self.stop_within_step(at, effects, kill, cut);
        }
        let (records, rest): (Vec<_>, Vec<_>) = effects.into_iter().partition(durable);
        let restarts = self.nodes[at].restarts;
        let inside = self.healed.is_none()
            && !records.is_empty()
            && self.random.chance(self.options.faults.inside);
        let late = self.random.chance(0.5);
        let (first, second) = if self.options.persist_last {
            (rest, records)
        } else {
            (records, rest)
        };
        if inside && !late && !self.options.persist_last {
            return self.crash(at);
        }
        for effect in first {
            self.effect(at, restarts, effect)?;
        }
        if inside {
            return self.crash(at);
        }
        second
            .into_iter()
            .try_for_each(|effect| self.effect(at, restarts, effect))
    }

    /// Carries out part of the effects of a step, and then a scripted stop.
    fn stop_within_step(
        &mut self,
        at: usize,
        effects: Vec<Effect>,
        kill: MemberKill,
        cut: StepCut,
    ) -> Result<(), FailureKind> {
        let restarts = self.nodes[at].restarts;
        let (records, rest): (Vec<_>, Vec<_>) = effects.into_iter().partition(durable);
        let done = match cut {
            StepCut::Before => Vec::new(),
            StepCut::Persisted => records,
            StepCut::UpToMoment | StepCut::After => records.into_iter().chain(rest).collect(),
        };
        for effect in done {
            self.effect(at, restarts, effect)?;
        }
        self.carry_out(kill, at)
    }

    pub(super) fn effect(
        &mut self,
        at: usize,
        restarts: u32,
        effect: Effect,
    ) -> Result<(), FailureKind> {
        if self.nodes[at].member.is_none() {
            // The step ended the epoch or the member.
            return Ok(());
        }
        let me = self.me(at);
        if let Effect::Report(report) = &effect {
            let now = self.now;
            let reported = self.monitor(at).reported(now, me, report);
            reported.map_err(violated)?;
            self.tell_report(at, report);
        }
        match effect {
            Effect::Persist(record) => self.persist(at, record),
            Effect::Send { to, frame } => self.send_or_tamper(at, Some(to), frame),
            Effect::Publish { frame } => self.send_or_tamper(at, None, frame),
            Effect::EpochOver(_) => self.epoch_over(at),
            Effect::Await { keys } => {
                for key in keys {
                    let after = self.random.span(Duration::ZERO, 5 * HEARTBEAT);
                    let arrives = BareEvent::Arrives {
                        node: at,
                        restarts,
                        key,
                    };
                    self.schedule(after, arrives);
                }
                Ok(())
            }
            Effect::Report(report) => self.take_report(at, report),
            Effect::Work(request) => {
                let takes = work::duration(&mut self.random, &request);
                self.schedule(
                    takes,
                    BareEvent::Work {
                        node: at,
                        restarts,
                        request,
                    },
                );
                Ok(())
            }
        }
    }

    /// Does what follows from a report outside of the member.
    fn take_report(&mut self, at: usize, report: Report) -> Result<(), FailureKind> {
        match report {
            Report::Entered { view, lead, round } => {
                self.ended.views = self.ended.views.max(view);
                let byzantine = self.nodes[at].byzantine.as_mut();
                let actions =
                    byzantine.map(|byzantine| byzantine.entered(self.now, (view, lead), round));
                actions.map_or(Ok(()), |actions| self.perform_actions(at, actions))
            }
            Report::Fault(evidence) if self.nodes[at].byzantine.is_none() => {
                let epoch = self.nodes[at].epoch;
                self.accused.insert((epoch, evidence.member));
                Ok(())
            }
            Report::Final { round, .. } if self.options.masked() => {
                self.note_final(at, round);
                Ok(())
            }
            Report::KeyUsedBefore => {
                self.lost_journals.unaware.remove(&at);
                self.nodes[at].lost = true;
                Ok(())
            }
            Report::Nullifying { view, reason } => {
                self.nodes[at].last = format!("voted against view {view}: {reason}");
                Ok(())
            }
            Report::Refused { member, reason, .. } => {
                let honest = self.nodes[at].byzantine.is_none();
                if honest && !self.options.groups.is_empty() {
                    let (run, _) = self.seat(at).expect("only members report");
                    let named = run.nodes[member.at()];
                    self.ended.named.insert((named, reason.to_string()));
                }
                let name = self.epoch_of(at).roster.name(member).to_owned();
                self.nodes[at].last = format!("refused {name}: {reason}");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn persist(&mut self, at: usize, record: Record) -> Result<(), FailureKind> {
        let me = self.me(at);
        let signed = match &record {
            Record::Vote(message) | Record::Proposed(message) | Record::Contributed(message) => {
                Some(message)
            }
            _ => None,
        };
        if let Some(message) = signed {
            self.check_vote(at, message)?;
            // It takes part again, so its loss is over.
            self.signs(at)?;
            self.nodes[at].lost = false;
            self.signatures.signed(self.epoch_of(at), message);
        }
        if let Record::Outdated(what) = record {
            self.noticed(at, what)?;
        }
        let now = self.now;
        let persisted = self.monitor(at).persisted(now, me, &record);
        persisted.map_err(violated)?;
        if let Record::Final { blocks, .. } = &record {
            let masked = blocks.iter().filter_map(|block| block.masked());
            masked.for_each(|masked| self.symbolic.settled(masked.list));
        }
        let passage = match &record {
            Record::Final { blocks, proof } => Passage::among(blocks, proof),
            _ => None,
        };
        self.nodes[at].journal.push(record);
        passage.map_or(Ok(()), |passage| self.add_passage(at, &passage))
    }

    /// A member sends a frame; a Byzantine one may send something else.
    fn send_or_tamper(
        &mut self,
        at: usize,
        to: Option<MemberIndex>,
        frame: Bytes,
    ) -> Result<(), FailureKind> {
        let me = self.me(at);
        self.check_signed(at, &frame)?;
        self.signatures.sealed(self.epoch_of(at), me, &frame);
        match self.nodes[at].byzantine.as_mut() {
            Some(byzantine) => {
                let actions = byzantine.outgoing(self.now, to, frame);
                self.perform_actions(at, actions)
            }
            None => self.send(at, to, frame),
        }
    }

    /// Carries out the behaviours of a Byzantine member at a heartbeat.
    pub(super) fn byzantine_heartbeat(&mut self, at: usize) -> Result<(), FailureKind> {
        let node = &mut self.nodes[at];
        if node.dead.is_some() {
            return Ok(());
        }
        let actions = match (&mut node.byzantine, &node.member) {
            (Some(byzantine), Some(member)) => byzantine.heartbeat(self.now, member.round()),
            _ => Actions::default(),
        };
        self.schedule(HEARTBEAT, BareEvent::ByzantineHeartbeat(at));
        self.perform_actions(at, actions)
    }

    fn perform_actions(&mut self, at: usize, actions: Actions) -> Result<(), FailureKind> {
        self.ended.faults += actions.misdeeds;
        for opened in actions.inject {
            self.schedule(Duration::ZERO, BareEvent::Inject { to: at, opened });
        }
        actions
            .out
            .into_iter()
            .try_for_each(|(to, frame)| self.send(at, to, frame))
    }

    fn send(
        &mut self,
        at: usize,
        to: Option<MemberIndex>,
        frame: Bytes,
    ) -> Result<(), FailureKind> {
        self.note_proposed(&frame);
        self.replay(at, &frame);
        let Some((run, me)) = self.seat(at) else {
            return Ok(());
        };
        let readers = match to {
            Some(to) => run.nodes.get(to.at()).copied().into_iter().collect(),
            None => run.nodes.clone(),
        };
        // A Byzantine member may send what it heard in a former epoch.
        if envelope::epoch_of(&frame) == Some(run.epoch.id) {
            let now = self.now;
            let sent = self.monitor(at).sent(now, me, to, &frame);
            sent.map_err(violated)?;
        }
        let with_twins = |to: usize| [Some(to), self.twins.get(&to).copied()];
        let readers: Vec<_> = readers.into_iter().flat_map(with_twins).flatten().collect();
        for to in readers.into_iter().filter(|&to| to != at) {
            for after in self.links.arrivals(at, to) {
                let frame = frame.clone();
                self.schedule(
                    after,
                    BareEvent::Deliver {
                        from: at,
                        to,
                        frame,
                    },
                );
            }
        }
        Ok(())
    }
}

/// Returns whether an effect is made durable before anything else of its step is done.
pub(super) fn durable(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Persist(_) | Effect::Report(Report::KeyUsedBefore)
    )
}
