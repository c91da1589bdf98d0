//! How members come to life, hear and speak, and stop for a while.

use std::time::Duration;

use bytes::Bytes;
use protocol::effects::{Effect, Input, Report};
use protocol::envelope::Opened;
use protocol::member::{Config, Member, Start};
use protocol::{MemberIndex, Record, envelope};

use super::super::byzantine::Act as Deed;
use super::super::faults::Amnesia;
use super::super::work::{self, Shelf};
use super::{BEAT, Event, World, Wrong, violated};

impl World<'_> {
    pub(super) fn start(&mut self, at: usize) -> Result<(), Wrong> {
        let hidden = self.options.faults.amnesia == Amnesia::Hidden;
        let node = &mut self.nodes[at];
        if node.member.is_some() || node.dead.is_some() {
            return Ok(());
        }
        let start = if node.life == 0 || self.options.forget {
            Start::New
        } else if node.lost && hidden {
            node.journal.clear();
            node.lost = false;
            self.forgotten.unaware.insert(at);
            Start::New
        } else if node.lost {
            node.journal.clear();
            Start::Lost
        } else if node.journal.is_empty() {
            Start::New
        } else {
            Start::Kept(node.journal.clone())
        };
        node.life += 1;
        let seed = self.random.bytes();
        let config = Config::new(
            self.epoch.clone(),
            MemberIndex(at as u16),
            node.key.clone(),
            seed,
        );
        let config = self
            .options
            .alter
            .as_ref()
            .map_or(config.clone(), |alter| alter(config));
        let mut effects = Vec::new();
        node.member = Some(Member::new(config, start, self.now, &mut effects));
        self.excuse();
        self.perform(at, effects)?;
        self.arm(at);
        Ok(())
    }

    /// A member stops, and comes back after a while.
    pub(super) fn crash(&mut self, at: usize) -> Result<(), Wrong> {
        let me = MemberIndex(at as u16);
        if self.nodes[at].member.is_none() {
            return Ok(());
        }
        if let Some(first) = self.amnesiac.iter().position(|&member| member == me) {
            self.amnesiac.remove(first);
            self.nodes[at].lost = true;
            self.nodes[at].shelf = Shelf::default();
        }
        let down = self.random.span(BEAT / 10, BEAT * 15);
        self.schedule(down, Event::Restart(at));
        self.stop(at)
    }

    /// A member is gone, with all that it did not make durable.
    pub(super) fn stop(&mut self, at: usize) -> Result<(), Wrong> {
        let node = &mut self.nodes[at];
        node.member = None;
        node.life += 1;
        node.armed = None;
        let emptied = node.lost;
        self.watch
            .crashed(self.now, MemberIndex(at as u16), emptied)
            .map_err(violated)?;
        self.excuse();
        self.relink()
    }

    pub(super) fn deliver(&mut self, from: usize, to: usize, frame: &Bytes) -> Result<(), Wrong> {
        let Some(member) = &self.nodes[to].member else {
            return Ok(());
        };
        let opened = envelope::open(&self.epoch, &*self.oracle, &member.known(), frame);
        let reader = MemberIndex(to as u16);
        if opened.is_ok() {
            // What is forged is not heard.
            self.watch
                .heard(self.now, reader, frame)
                .map_err(violated)?;
        }
        if let Ok(Opened::Message(message)) = &opened {
            self.remember(message, to);
        }
        match opened {
            Ok(opened) => match self.nodes[to].liar.as_mut() {
                None => self.feed(to, Input::Opened(opened)),
                Some(liar) => {
                    let deed = liar.incoming(self.now, opened);
                    self.do_deed(to, deed)
                }
            },
            Err(_) if self.nodes[from].liar.is_some() => Ok(()),
            Err(why) => Err(Wrong::Unreadable {
                from: self.epoch.roster.name(MemberIndex(from as u16)).into(),
                to: self.epoch.roster.name(reader).into(),
                why: why.to_string(),
            }),
        }
    }

    pub(super) fn feed(&mut self, at: usize, input: Input) -> Result<(), Wrong> {
        let Some(member) = self.nodes[at].member.as_mut() else {
            return Ok(());
        };
        let mut effects = Vec::new();
        member.step(self.now, input, &mut effects);
        self.perform(at, effects)?;
        self.arm(at);
        Ok(())
    }

    fn arm(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let deadline = node.member.as_ref().and_then(Member::deadline);
        let deadline = deadline.map(|time| time.max(self.now + Duration::from_micros(1)));
        if deadline != node.armed {
            node.armed = deadline;
            let life = node.life;
            if let Some(time) = deadline {
                self.schedule(time - self.now, Event::Timer { node: at, life });
            }
        }
    }

    /// Carries out the effects of a step, unless its member crashes or dies in it.
    fn perform(&mut self, at: usize, effects: Vec<Effect>) -> Result<(), Wrong> {
        if let Some(death) = self.doom(at, &effects) {
            return self.perish(at, effects, death);
        }
        let (records, rest): (Vec<_>, Vec<_>) = effects.into_iter().partition(durable);
        let life = self.nodes[at].life;
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
            self.effect(at, life, effect)?;
        }
        if inside {
            return self.crash(at);
        }
        second
            .into_iter()
            .try_for_each(|effect| self.effect(at, life, effect))
    }

    pub(super) fn effect(&mut self, at: usize, life: u32, effect: Effect) -> Result<(), Wrong> {
        let me = MemberIndex(at as u16);
        match effect {
            Effect::Persist(record) => self.keep(at, record),
            Effect::Send { to, frame } => self.say(at, Some(to), frame),
            Effect::Publish { frame } => self.say(at, None, frame),
            Effect::Report(report) => match report {
                Report::Fault(evidence) => self
                    .watch
                    .accused(self.now, me, &evidence)
                    .map_err(violated),
                Report::Entered { view, round, .. } => {
                    self.ended.views = self.ended.views.max(view);
                    let liar = self.nodes[at].liar.as_mut();
                    let deed = liar.map(|liar| liar.entered(self.now, view, round));
                    deed.map_or(Ok(()), |deed| self.do_deed(at, deed))
                }
                Report::KeyUsedBefore => {
                    self.forgotten.unaware.remove(&at);
                    self.nodes[at].lost = true;
                    Ok(())
                }
                Report::Nullifying { view, reason } => {
                    self.nodes[at].last = format!("voted against view {view}: {reason}");
                    Ok(())
                }
                Report::Refused { member, reason, .. } => {
                    let name = self.epoch.roster.name(member);
                    self.nodes[at].last = format!("refused {name}: {reason}");
                    Ok(())
                }
                _ => Ok(()),
            },
            work => {
                let takes = work::duration(&mut self.random, &work);
                self.schedule(
                    takes,
                    Event::Work {
                        node: at,
                        life,
                        effect: work,
                    },
                );
                Ok(())
            }
        }
    }

    fn keep(&mut self, at: usize, record: Record) -> Result<(), Wrong> {
        let me = MemberIndex(at as u16);
        let signed = match &record {
            Record::Vote(message) | Record::Proposed(message) | Record::Contributed(message) => {
                Some(message)
            }
            _ => None,
        };
        if let Some(message) = signed {
            // It takes part again.
            self.nodes[at].lost = false;
            self.oracle.signed(&self.epoch, message);
        }
        self.watch.kept(self.now, me, &record).map_err(violated)?;
        self.nodes[at].journal.push(record);
        Ok(())
    }

    /// A member says something; a liar says what it likes.
    fn say(&mut self, at: usize, to: Option<MemberIndex>, frame: Bytes) -> Result<(), Wrong> {
        let me = MemberIndex(at as u16);
        self.oracle.sealed(&self.epoch, me, &frame);
        match self.nodes[at].liar.as_mut() {
            Some(liar) => {
                let deed = liar.outgoing(self.now, to, frame);
                self.do_deed(at, deed)
            }
            None => self.send(at, to, frame),
        }
    }

    /// A liar does what it does once per beat, and does it again with the next.
    pub(super) fn lie(&mut self, at: usize) -> Result<(), Wrong> {
        let node = &mut self.nodes[at];
        if node.dead.is_some() {
            return Ok(());
        }
        let deed = match (&mut node.liar, &node.member) {
            (Some(liar), Some(member)) => liar.beat(self.now, member.round()),
            _ => Deed::default(),
        };
        self.schedule(BEAT, Event::Lie(at));
        self.do_deed(at, deed)
    }

    fn do_deed(&mut self, at: usize, deed: Deed) -> Result<(), Wrong> {
        self.ended.faults += deed.bad;
        for opened in deed.inject {
            self.schedule(Duration::ZERO, Event::Inject { to: at, opened });
        }
        deed.out
            .into_iter()
            .try_for_each(|(to, frame)| self.send(at, to, frame))
    }

    fn send(&mut self, at: usize, to: Option<MemberIndex>, frame: Bytes) -> Result<(), Wrong> {
        let me = MemberIndex(at as u16);
        self.watch.said(self.now, me, &frame).map_err(violated)?;
        let readers = match to {
            Some(to) => to.at()..to.at() + 1,
            None => 0..self.nodes.len(),
        };
        for to in readers.filter(|&to| to != at) {
            for after in self.links.arrivals(at, to) {
                let frame = frame.clone();
                self.schedule(
                    after,
                    Event::Deliver {
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

/// Whether an effect is part of what a step makes durable before anything else of it is done.
pub(super) fn durable(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Persist(_) | Effect::Report(Report::KeyUsedBefore)
    )
}
