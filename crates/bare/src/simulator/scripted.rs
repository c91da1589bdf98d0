//! Faults that are scripted, in the words of a scenario, beside those that are drawn.

use std::time::Duration;

use protocol::MemberIndex;
use protocol::effects::Effect;

use crate::cuts::split;
use crate::moments::{Moment, StepCut};
use crate::script::{Fault, FaultTime, KillTarget};

use super::super::deaths::reached;
use super::super::faults::ScriptedFault;
use super::super::work::MemberStore;
use super::{BareEvent, FailureKind, Simulator};

/// A scripted stop of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberKill {
    /// The node; `None`: whoever leads.
    who: Option<usize>,
    when: StopAt,
    back: Option<Duration>,
    journal_lost: bool,
}

#[derive(Debug, Clone, Copy)]
enum StopAt {
    Round(u64, Moment),
    Commit(u64, StepCut),
}

/// The node that a scenario names: by its position from 0, or as "silo 3".
fn node(name: &str, n: usize) -> Option<usize> {
    let number = name.strip_prefix("silo ").unwrap_or(name);
    number.parse().ok().filter(|&at: &usize| at < n)
}

impl Simulator<'_> {
    /// Plans the scripted faults. Names that are no node are passed over.
    pub(super) fn plan_script(&mut self) {
        let n = self.options.members;
        for fault in self.options.script.clone() {
            match fault {
                Fault::Kill {
                    who,
                    when,
                    restart_after: back,
                    journal_lost,
                } => {
                    let who = match who {
                        KillTarget::Lead => None,
                        KillTarget::Silo(name) => node(&name, n),
                    };
                    let when = match when {
                        FaultTime::At(time) => {
                            let fault = ScriptedFault::Kill {
                                who,
                                back,
                                journal_lost,
                            };
                            self.schedule(time, BareEvent::Fault(fault));
                            continue;
                        }
                        FaultTime::Round { round, moment } => StopAt::Round(round, moment),
                        FaultTime::Commit { nth, cut } => StopAt::Commit(nth, cut),
                    };
                    self.kills.push(MemberKill {
                        who,
                        when,
                        back,
                        journal_lost,
                    });
                }
                Fault::Split {
                    members,
                    at,
                    lasts,
                    one_way,
                } => {
                    let apart: Vec<_> = members.iter().filter_map(|name| node(name, n)).collect();
                    let links = split(n, one_way, |node| apart.contains(&node));
                    self.schedule(at, BareEvent::Fault(ScriptedFault::Cut(links.clone())));
                    self.schedule(at + lasts, BareEvent::Fault(ScriptedFault::Mend(links)));
                }
                Fault::Byzantine { member, behaviour } => {
                    if let Some(at) = node(&member, n) {
                        let behaviours = self.byzantine.entry(MemberIndex(at as u16)).or_default();
                        behaviours.push(behaviour);
                    }
                }
            }
        }
    }

    /// The scripted stop that is due in this step of a node: it carries out only part of it, or all.
    /// `records`: whether the step makes something durable.
    pub(super) fn due_kill(
        &mut self,
        at: usize,
        effects: &[Effect],
        records: bool,
    ) -> Option<(MemberKill, StepCut)> {
        self.nodes[at].commits += u64::from(records);
        let node = &self.nodes[at];
        let member = node.member.as_ref()?;
        let leads = member.lead_now() == self.me(at);
        let due = |kill: &MemberKill| match kill.when {
            StopAt::Commit(nth, _) => kill.who == Some(at) && records && node.commits == nth,
            StopAt::Round(round, moment) => {
                leads
                    && member.round() == round
                    && effects.iter().any(|effect| reached(moment, effect, leads))
            }
        };
        let first = self.kills.iter().position(due)?;
        let kill = self.kills.remove(first);
        let cut = match kill.when {
            StopAt::Commit(_, cut) => cut,
            StopAt::Round(..) => StepCut::After,
        };
        Some((kill, cut))
    }

    /// Carries out a scripted stop: of the node that it names, or of the lead that showed its moment.
    pub(super) fn carry_out(&mut self, kill: MemberKill, lead: usize) -> Result<(), FailureKind> {
        self.ended.faults += 1;
        self.kill(kill.who.unwrap_or(lead), kill.back, kill.journal_lost)
    }

    /// A member stops, for good or for a while, with its journal or without.
    pub(super) fn kill(
        &mut self,
        at: usize,
        back: Option<Duration>,
        journal_lost: bool,
    ) -> Result<(), FailureKind> {
        let Some(down) = back else {
            return self.die(at, "as scripted");
        };
        if self.nodes[at].member.is_none() {
            return Ok(());
        }
        if journal_lost {
            self.nodes[at].lost = true;
            self.nodes[at].store = MemberStore::default();
        }
        self.schedule(down, BareEvent::Restart(at));
        self.stop(at)?;
        if self.nodes[at].lost && self.nodes[at].epoch > 0 {
            self.lose_journal(at)
        } else {
            Ok(())
        }
    }

    /// The node that leads the highest view that any node is in.
    pub(super) fn lead_of_all(&self) -> usize {
        let views = (0..self.nodes.len()).filter_map(|at| {
            let member = self.nodes[at].member.as_ref()?;
            let place = (self.nodes[at].epoch, member.view());
            let lead = member.lead_now();
            let node = self.epochs[self.nodes[at].epoch].nodes.get(lead.at())?;
            Some((place, *node))
        });
        views.max().map_or(0, |(_, node)| node)
    }
}
