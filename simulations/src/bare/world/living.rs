//! What members do, and what is done to them.

use std::time::Duration;

use bytes::Bytes;
use protocol::effects::{Effect, Input, Report};
use protocol::member::{Config, Member, Start};
use protocol::{Hash, MemberIndex, Record, envelope};

use super::super::Failure;
use super::super::byzantine::Act as Deed;
use super::super::work::{self, Shelf};
use super::{BEAT, Event, World};

impl World<'_> {
    pub(super) fn start(&mut self, at: usize) -> Result<(), Failure> {
        let node = &mut self.nodes[at];
        if node.member.is_some() {
            return Ok(());
        }
        let start = if node.life == 0 || self.options.forget {
            Start::New
        } else if node.lost {
            node.journal.clear();
            Start::Lost
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
        self.perform(at, effects)?;
        self.arm(at);
        Ok(())
    }

    pub(super) fn crash(&mut self, at: usize) -> Result<(), Failure> {
        let me = MemberIndex(at as u16);
        if self.nodes[at].member.take().is_none() {
            return Ok(());
        }
        self.nodes[at].life += 1;
        self.nodes[at].armed = None;
        let emptied = self.amnesiac == Some(me) && !self.nodes[at].lost;
        if emptied {
            self.amnesiac = None;
            self.nodes[at].lost = true;
            self.nodes[at].shelf = Shelf::default();
        }
        let emptied = self.nodes[at].lost;
        self.watch
            .crashed(self.now, me, emptied)
            .map_err(|v| self.violated(v))?;
        let down = self.random.span(BEAT / 10, BEAT * 15);
        self.schedule(down, Event::Restart(at));
        self.relink()
    }

    pub(super) fn deliver(&mut self, from: usize, to: usize, frame: &Bytes) -> Result<(), Failure> {
        let Some(member) = &self.nodes[to].member else {
            return Ok(());
        };
        let opened = envelope::open(&self.epoch, &self.oracle, &member.known(), frame);
        let reader = MemberIndex(to as u16);
        if opened.is_ok() {
            // What is forged is not heard.
            self.watch
                .heard(self.now, reader, frame)
                .map_err(|v| self.violated(v))?;
        }
        match opened {
            Ok(opened) => match self.nodes[to].liar.as_mut() {
                None => self.feed(to, Input::Opened(opened)),
                Some(liar) => {
                    let deed = liar.incoming(opened);
                    self.do_deed(to, deed)
                }
            },
            Err(_) if self.nodes[from].liar.is_some() => Ok(()),
            Err(why) => Err(Failure::Unreadable {
                seed: self.seed,
                from: self.epoch.roster.name(MemberIndex(from as u16)).into(),
                to: self.epoch.roster.name(reader).into(),
                why: why.to_string(),
            }),
        }
    }

    pub(super) fn feed(&mut self, at: usize, input: Input) -> Result<(), Failure> {
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

    fn perform(&mut self, at: usize, effects: Vec<Effect>) -> Result<(), Failure> {
        let (records, rest): (Vec<_>, Vec<_>) = effects
            .into_iter()
            .partition(|effect| matches!(effect, Effect::Persist(_)));
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

    fn effect(&mut self, at: usize, life: u32, effect: Effect) -> Result<(), Failure> {
        let me = MemberIndex(at as u16);
        match effect {
            Effect::Persist(record) => self.keep(at, record),
            Effect::Send { to, frame } => self.say(at, Some(to), frame),
            Effect::Publish { frame } => self.say(at, None, frame),
            Effect::Report(report) => match report {
                Report::Fault(evidence) => self
                    .watch
                    .accused(self.now, me, &evidence)
                    .map_err(|v| self.violated(v)),
                Report::Entered { view, .. } => {
                    self.ended.views = self.ended.views.max(view);
                    let deed = self.nodes[at].liar.as_mut().map(|liar| liar.entered(view));
                    deed.map_or(Ok(()), |deed| self.do_deed(at, deed))
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

    fn keep(&mut self, at: usize, record: Record) -> Result<(), Failure> {
        let me = MemberIndex(at as u16);
        let signed = match &record {
            Record::Vote(message) => {
                self.nodes[at].lost = false;
                Some(message)
            }
            Record::Proposed(message) | Record::Contributed(message) => Some(message),
            _ => None,
        };
        if let Some(message) = signed {
            self.oracle.signed(&self.epoch, message);
        }
        self.watch
            .kept(self.now, me, &record)
            .map_err(|v| self.violated(v))?;
        self.nodes[at].journal.push(record);
        Ok(())
    }

    /// A member says something; a liar says what it likes.
    fn say(&mut self, at: usize, to: Option<MemberIndex>, frame: Bytes) -> Result<(), Failure> {
        match self.nodes[at].liar.as_mut() {
            Some(liar) => {
                let deed = liar.outgoing(to, frame);
                self.do_deed(at, deed)
            }
            None => {
                self.oracle
                    .sealed(&self.epoch, MemberIndex(at as u16), &frame);
                self.send(at, to, frame)
            }
        }
    }

    fn do_deed(&mut self, at: usize, deed: Deed) -> Result<(), Failure> {
        self.ended.faults += u64::from(deed.bad);
        for opened in deed.inject {
            self.schedule(Duration::ZERO, Event::Inject { to: at, opened });
        }
        deed.out
            .into_iter()
            .try_for_each(|(to, frame)| self.send(at, to, frame))
    }

    fn send(&mut self, at: usize, to: Option<MemberIndex>, frame: Bytes) -> Result<(), Failure> {
        let me = MemberIndex(at as u16);
        self.watch
            .said(self.now, me, &frame)
            .map_err(|v| self.violated(v))?;
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

    pub(super) fn work(&mut self, at: usize, effect: &Effect) -> Result<(), Failure> {
        let me = MemberIndex(at as u16);
        let mut shelf = std::mem::take(&mut self.nodes[at].shelf);
        let fetch = |blob: &Hash, holders: &[MemberIndex]| {
            self.nodes[at]
                .liar
                .as_ref()
                .is_some_and(|liar| liar.blobs.contains(blob))
                || holders.iter().any(|&holder| {
                    let node = &self.nodes[holder.at()];
                    let reached =
                        self.links.open(at, holder.at()) && self.links.open(holder.at(), at);
                    let given = node.member.as_ref().is_some_and(|member| {
                        let liar = node.liar.as_ref();
                        liar.is_some_and(|liar| liar.blobs.contains(blob))
                            || node.shelf.outcomes.contains(blob)
                            || node.shelf.blobs.contains(blob) && member.may_serve(me, blob)
                    });
                    holder != me && reached && given
                })
        };
        let input = work::answer(me, &mut shelf, self.options.cross_evaluate, effect, &fetch);
        self.nodes[at].shelf = shelf;
        let Some(mut input) = input else {
            return Ok(());
        };
        match (&mut input, effect) {
            (Input::Trained { round, .. }, _) if self.nodes[at].liar.is_none() => {
                self.ended.trainings[*round as usize - 1] += 1;
            }
            (
                Input::Decided {
                    result: Ok(decision),
                    ..
                },
                _,
            ) => {
                if let Some(liar) = self.nodes[at].liar.as_mut() {
                    *decision = liar.decide(std::mem::take(decision));
                }
            }
            (
                Input::Applied {
                    round,
                    result: Ok(()),
                },
                Effect::Apply { rounds, .. },
            ) => {
                self.watch
                    .applied(self.now, me, rounds)
                    .map_err(|v| self.violated(v))?;
                self.nodes[at]
                    .journal
                    .push(Record::Applied { round: *round });
            }
            _ => {}
        }
        self.feed(at, input)
    }
}
