//! The course of a run: from the first event to the end, and where everybody stands then.

use std::time::Duration;

use protocol::member::Member;
use protocol::{Hash, MemberIndex, Time};

use super::super::ending::{self, Held};
use super::super::{Diagnosis, Ended, Failure, Standing, Wrong};
use super::{BEAT, Event, Node, PATIENCE, World};

/// Events that may happen at one moment.
const AT_ONCE: u64 = 20_000;
/// Events that a run may have.
const IN_ALL: u64 = 4_000_000;

impl World<'_> {
    pub(in crate::bare) fn run(mut self) -> Result<Ended, Box<Failure>> {
        let result = self.play();
        result.and_then(|()| self.finish()).map_err(|wrong| {
            Box::new(Failure {
                seed: self.seed,
                wrong,
                diagnosis: self.diagnosis(),
            })
        })?;
        self.ended.time = self.now;
        self.ended.faults += self.links.played;
        self.ended.trace = Hash(*self.trace.finalize().as_bytes());
        Ok(self.ended)
    }

    /// Plays events until everybody that counts has finished, or the run is given up.
    fn play(&mut self) -> Result<(), Wrong> {
        for node in 0..self.nodes.len() {
            self.start(node)?;
        }
        self.relink()?;
        for (at, node) in self.nodes.iter().enumerate() {
            if node.liar.is_some() {
                self.sequence += 1;
                let first = Time::ZERO + self.random.span(Duration::ZERO, BEAT);
                self.queue.insert((first, self.sequence), Event::Lie(at));
            }
        }
        let mut at_once = 0;
        while let Some(((time, _), event)) = self.queue.pop_first() {
            if self.lawless() || self.hopeless(time)? {
                self.ended.stalled = Some(self.diagnosis());
                break;
            }
            at_once = if time == self.now { at_once + 1 } else { 0 };
            if at_once > AT_ONCE {
                return Err(busy(at_once, "without time passing"));
            }
            if self.ended.events > IN_ALL {
                return Err(busy(self.ended.events, "in one run"));
            }
            self.now = time;
            self.ended.events += 1;
            self.event(event)?;
            if self
                .nodes
                .iter()
                .filter(|node| node.counts())
                .all(Node::complete)
            {
                break;
            }
        }
        Ok(())
    }

    /// What must be true when a run is over.
    fn finish(&self) -> Result<(), Wrong> {
        let honest = self.nodes.iter().zip(self.epoch.roster.silos());
        let held: Vec<_> = honest
            .filter(|(node, _)| node.counts())
            .map(|(node, silo)| Held {
                name: &silo.name,
                complete: node.complete(),
                chain: ending::chain(&node.journal),
            })
            .collect();
        ending::check(&self.epoch, &held).map_err(Wrong::Chains)
    }

    /// Whether healing takes longer than it may: for every round 2f + 4 views of the longest kind.
    /// That is wrong unless more members are missing than the federation can bear.
    fn hopeless(&self, at: Time) -> Result<bool, Wrong> {
        let Some(healed) = self.healed else {
            return Ok(false);
        };
        let f = self.epoch.roster.faulty() as u32;
        let view = BEAT * (2 * PATIENCE + 8 * (f + 4));
        let beyond = self.options.faults.beyond > 0;
        let rounds = if beyond {
            1
        } else {
            self.options.rounds as u32 + 2
        };
        let bound = view * (2 * f + 4) * rounds;
        if at <= healed + bound {
            return Ok(false);
        }
        if beyond {
            return Ok(true);
        }
        Err(Wrong::NotLive {
            healed: healed.elapsed(),
            ended: at.elapsed(),
        })
    }

    /// Where everybody stands.
    fn diagnosis(&self) -> Diagnosis {
        let members = self.nodes.iter().zip(self.epoch.roster.members());
        let standing = |(node, me): (&Node, MemberIndex)| {
            let mut flaws = Vec::new();
            if let Some(behaviours) = self.byzantine.get(&me) {
                flaws.push(format!("lies: {behaviours:?}"));
            }
            flaws.extend(node.dead.clone());
            if node.lost {
                flaws.push("lost its journal".into());
            }
            let at = |member: &Member| (member.view(), member.round());
            Standing {
                name: self.epoch.roster.name(me).into(),
                flaw: flaws.join(", "),
                at: node.member.as_ref().map(at),
                complete: node.complete(),
                last: node.last.clone(),
            }
        };
        Diagnosis {
            members: members.map(standing).collect(),
        }
    }
}

fn busy(events: u64, span: &'static str) -> Wrong {
    Wrong::Busy { events, span }
}
