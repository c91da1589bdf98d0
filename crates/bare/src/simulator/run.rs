//! A run from its first event to the final checks.

use std::time::Duration;

use protocol::member::Member;
use protocol::parameters::Rotation;
use protocol::privacy::Voids;
use protocol::{Hash, MemberIndex, Time};

use super::super::ending::{self, MemberChain};
use super::super::{DiagnosedMember, Diagnosis, Ended, FailureKind, RunFailure};
use super::{BareEvent, BareNode, HEARTBEAT, PATIENCE, Simulator, violated};

/// Most events at one moment of virtual time.
const EVENTS_AT_ONCE: u64 = 20_000;
/// Most events of a run.
const EVENTS_PER_RUN: u64 = 4_000_000;

impl Simulator<'_> {
    pub(crate) fn run(mut self) -> Result<Ended, Box<RunFailure>> {
        let result = self.run_events();
        let now = self.now;
        let mut monitors = self.epochs.iter_mut().map(|run| &mut run.monitor);
        let result = result.and_then(|()| {
            let mut ended = monitors.by_ref().map(|monitor| monitor.ended(now));
            ended.try_for_each(|ended| ended.map_err(violated))
        });
        result.and_then(|()| self.finish()).map_err(|kind| {
            Box::new(RunFailure {
                seed: self.seed,
                kind,
                diagnosis: self.diagnosis(),
            })
        })?;
        self.ended.time = self.now;
        self.ended.epochs = self.epochs.len() as u64;
        self.ended.faults += self.links.played;
        self.ended.accused = self.accused.len() as u64;
        self.ended.put_back = self.put_back.len() as u64;
        self.ended.outdated = self.outdated.len() as u64;
        self.ended.byzantine = self.byzantine.keys().map(|member| member.at()).collect();
        self.ended.trace = Hash(*self.trace.finalize().as_bytes());
        Ok(self.ended)
    }

    /// Processes events until every member that must finish has finished, or the run is given up.
    fn run_events(&mut self) -> Result<(), FailureKind> {
        for node in 0..self.nodes.len() {
            self.start(node)?;
        }
        self.relink()?;
        for (at, node) in self.nodes.iter().enumerate() {
            if node.byzantine.is_some() {
                self.sequence += 1;
                let first = Time::ZERO + self.random.span(Duration::ZERO, HEARTBEAT);
                self.queue
                    .insert((first, self.sequence), BareEvent::ByzantineHeartbeat(at));
            }
        }
        let mut at_once = 0;
        while let Some(((time, _), event)) = self.queue.pop_first() {
            let many = self.ended.events > EVENTS_PER_RUN;
            // Members that wait for a group send on as long as others flood them.
            let waits = many && !self.some_group_whole();
            if self.too_many_faulty() || waits || self.past_bound(time)? {
                self.ended.stalled = Some(self.diagnosis());
                break;
            }
            at_once = if time == self.now { at_once + 1 } else { 0 };
            if at_once > EVENTS_AT_ONCE {
                return Err(busy(at_once, "without time passing"));
            }
            if many {
                return Err(busy(self.ended.events, "in one run"));
            }
            self.now = time;
            self.ended.events += 1;
            self.event(event)?;
            self.check_settling()?;
            if self.all_done() {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether all changes are final and all members that must finish have finished.
    fn all_done(&self) -> bool {
        let done = |at: usize| {
            let node = &self.nodes[at];
            let newest = node.epoch + 1 == self.epochs.len();
            !node.must_finish() || self.is_out(at) || newest && node.complete()
        };
        let changed = self.epochs.len() > self.options.changes as usize;
        // A new member may wait in vain, if another change was final first.
        let waits = |at: usize| !self.newest().nodes.contains(&at) && self.nodes[at].restarts == 0;
        changed && (0..self.nodes.len()).all(|at| done(at) || waits(at))
    }

    /// Checks the chains of honest members after the run.
    fn finish(&self) -> Result<(), FailureKind> {
        // What those that are given up know and the others do not is lost.
        let chains: Vec<_> = (0..self.nodes.len())
            .filter(|at| !self.nodes[*at].given_up)
            .map(|at| MemberChain {
                name: format!("node {at}"),
                honest: self.nodes[at].must_finish(),
                // Rounds are those of the newest epoch. A run may be given up while nodes go over to it.
                complete: self.nodes[at].epoch + 1 == self.epochs.len()
                    && self.nodes[at].complete(),
                chain: ending::chain(&self.nodes[at].journal),
            })
            .collect();
        let epochs: Vec<_> = self.epochs.iter().map(|run| &*run.epoch).collect();
        let ended = self.options.recoveries || self.options.gives_up;
        ending::check(&epochs, &chains, ended).map_err(FailureKind::Chains)
    }

    /// Returns whether progress takes longer after the faults ended than L1 allows: 2f + 4 views of the
    /// longest kind for every round. That is an error unless more members are faulty than the
    /// federation tolerates.
    fn past_bound(&self, at: Time) -> Result<bool, FailureKind> {
        let Some(healed) = self.healed else {
            return Ok(false);
        };
        let f = self.newest().epoch.roster.faulty() as u32;
        let view = HEARTBEAT * (2 * PATIENCE + 8 * (f + 4));
        let beyond = self.options.faults.beyond > 0;
        // Without its fixed lead a federation need not finish.
        let marked_absent =
            beyond || self.options.rotation == Rotation::Fixed || !self.some_group_whole();
        let rounds = if beyond {
            1
        } else {
            // A change takes a view like a round, after its approvals have gone round.
            self.options.rounds as u32 + 2 + 4 * self.options.changes
        };
        let bound = view * (2 * f + 4) * rounds;
        if at <= healed.max(self.decided) + bound {
            return Ok(false);
        }
        if marked_absent {
            return Ok(true);
        }
        Err(FailureKind::NotLive {
            healed: healed.elapsed(),
            ended: at.elapsed(),
        })
    }

    /// Whether secure-aggregation rounds can go on: a group is whole whose members are all honest, alive, never had to do
    /// without a journal, and do not know that theirs is outdated: these sign nothing more in the epoch. With
    /// noise, as many members are like that as a sum needs, apart from one that a search left alone, and the budget
    /// of voids is not spent. Clear rounds can in any case.
    fn some_group_whole(&self) -> bool {
        let groups = &self.options.groups;
        let whole = |node: &usize| {
            let of = &self.nodes[*node];
            let lost = of.lost || self.put_back.contains(node) || self.twins.contains_key(node);
            let outdated = self.outdated.contains(&(*node, self.epochs.len() - 1));
            of.must_finish() && !lost && !outdated && self.newest().nodes.contains(node)
        };
        // Fewer than four members do not go on with secure-aggregation rounds.
        let enough = self.nodes.iter().filter(|node| node.must_finish()).count() >= 4;
        if let Some(fewest) = self.options.fewest_authors {
            let quorum = self.newest().epoch.roster.quorum();
            let newest = self.newest();
            let voids = || self.voids.of_epoch(&newest.epoch.id);
            let alone: Vec<_> = voids().filter_map(Voids::left_out).collect();
            let alone = |node: &usize| alone.iter().any(|by| newest.nodes[by.at()] == *node);
            let whole = (0..self.nodes.len()).filter(|node| whole(node) && !alone(node));
            let members = newest.epoch.roster.len();
            let suspended = voids().any(|voids| voids.suspended(0, members));
            return enough && whole.count() >= quorum.max(fewest.into()) && !suspended;
        }
        groups.is_empty() || enough && groups.iter().any(|group| group.iter().all(whole))
    }

    /// The state of every member.
    fn diagnosis(&self) -> Diagnosis {
        let members = self.nodes.iter().enumerate();
        let standing = |(at, node): (usize, &BareNode)| {
            let me = MemberIndex(at as u16);
            let mut flaws = Vec::new();
            if let Some(behaviours) = self.byzantine.get(&me) {
                flaws.push(format!("Byzantine: {behaviours:?}"));
            }
            flaws.extend(node.dead.clone());
            if node.given_up {
                flaws.push("the others continue without it".into());
            }
            if self.put_back.contains(&at) {
                flaws.push("its journal was put back".into());
            }
            if node.lost {
                flaws.push("lost its journal".into());
            }
            let epoch = node.epoch;
            if self.options.changes > 0 {
                flaws.push(format!("epoch {epoch}"));
            }
            let at = |member: &Member| (member.view(), member.round());
            DiagnosedMember {
                name: format!("silo {}", me.0),
                fault: flaws.join(", "),
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

fn busy(events: u64, span: &'static str) -> FailureKind {
    FailureKind::Busy { events, span }
}
