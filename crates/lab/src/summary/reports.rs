//! Reports of the silos of a run, sorted for its summary.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use formatting::numbers::plural;
use methods::Learner;
use methods::learner::Task;
use methods::strategy::{State, findings};
use protocol::certificate::Verdict;
use protocol::{MemberIndex, Report};
use serde_json::Value;
use silo::Notice;

use simulations::Federation;
use simulations::Mesh;
use simulations::RoundRecord;
use simulations::RunRecord;

use super::basis::coalitions;
use super::left_out::left_out;
use super::metrics::AdoptedModel;
use super::results::TrainingFailed;
use super::{
    FaultInfo, LastMerges, LeftOutMembers, Nullified, Refused, RoundInfo, SiloLosses, SiloTraffic,
    ViewLead,
};

/// Reports of the silos of a federation, in the order of time.
pub(super) struct Reports<'a> {
    pub(super) federation: &'a Federation,
    pub(super) recorded: &'a RunRecord,
}

impl Reports<'_> {
    pub(super) fn name(&self, member: MemberIndex) -> String {
        self.federation.epoch.roster.name(member).into()
    }

    /// Seconds of virtual time that the run took, where time was virtual.
    pub(super) fn virtual_seconds(&self) -> Option<f64> {
        let recorded = self.recorded;
        let protocol = recorded.protocol.as_ref()?;
        (recorded.mesh == Mesh::VIRTUAL).then(|| protocol.ended.elapsed().as_secs_f64())
    }

    /// Bytes of messages that all silos sent.
    pub(super) fn messages(&self) -> Option<u64> {
        let protocol = self.recorded.protocol.as_ref()?;
        Some(protocol.traffic.iter().map(|sent| sent.messages).sum())
    }

    /// The losses that groups were formed by.
    pub(super) fn losses(&self) -> Option<SiloLosses> {
        let losses = self.recorded.basis.losses.as_ref();
        losses.map(|losses| SiloLosses::new(losses, |member| self.name(member)))
    }

    /// The merges that groups were formed by.
    pub(super) fn merges(&self, all: &[AdoptedModel]) -> Option<LastMerges> {
        let merges = &self.recorded.basis.merges;
        LastMerges::of(
            merges,
            |round| coalitions(all, round),
            |member| self.name(member),
        )
    }

    /// Returns what every silo sent.
    pub(super) fn traffic(&self) -> Vec<SiloTraffic> {
        self.federation
            .epoch
            .roster
            .silos()
            .iter()
            .zip(self.recorded.protocol.iter().flat_map(|run| &run.traffic))
            .map(|(silo, &sent)| SiloTraffic {
                silo: silo.name.clone(),
                sent,
            })
            .collect()
    }

    /// The learners of the silos, wrapped by the strategy.
    pub(super) fn learners(&self) -> Vec<Arc<dyn Learner>> {
        let members = self.federation.members.iter();
        members.map(|member| member.learner.clone()).collect()
    }

    pub(super) fn names(&self, members: &[MemberIndex]) -> Vec<String> {
        members.iter().map(|&member| self.name(member)).collect()
    }

    pub(super) fn reports(&self) -> impl Iterator<Item = (f64, MemberIndex, &Report)> {
        self.recorded
            .notices
            .iter()
            .filter_map(|(time, member, notice)| match notice {
                Notice::Protocol(report) => Some((time.elapsed().as_secs_f64(), *member, report)),
                _ => None,
            })
    }

    /// Returns how often a silo trained in a round after these first ones.
    pub(super) fn trainings(&self, silo: usize, after: u64) -> usize {
        let trained =
            |notice: &Notice| matches!(notice, Notice::Trained { round, .. } if *round > after);
        let notices = self.recorded.notices.iter();
        notices
            .filter(|(_, by, notice)| by.at() == silo && trained(notice))
            .count()
    }

    /// The outcome that was adopted with a round.
    pub(super) fn outcome(&self, of: u64) -> String {
        let mut notices = self.recorded.notices.iter();
        let outcome = notices.find_map(|(_, _, notice)| match notice {
            Notice::Adopted { round, outcome, .. } if *round == of => Some(outcome),
            _ => None,
        });
        outcome.map_or(String::new(), |outcome| format!("{outcome:#}"))
    }

    /// Returns what the strategy kept after a round, and what its models say of it.
    pub(super) fn memory(&self, of: u64, all: &[AdoptedModel]) -> BTreeMap<String, Value> {
        let Some(adopted) = all.iter().find(|adopted| adopted.round == of) else {
            return BTreeMap::new();
        };
        let kept = adopted.state.memory.iter();
        let kept = kept.map(|(name, value)| (name.to_owned(), value.json()));
        let found = findings(&adopted.state).into_iter();
        kept.chain(found.map(|(name, value)| (name, value.json())))
            .collect()
    }

    pub(super) fn rounds(&self, all: &[AdoptedModel]) -> Vec<RoundInfo> {
        let silo = &self.federation.members[0];
        let start = State::genesis(silo.learner.initial(silo.initial_seed));
        let strategy = &silo.strategy;
        let round = |recorded: &RoundRecord| {
            let round = recorded.round;
            let mut coalitions = BTreeMap::<u32, BTreeMap<usize, String>>::new();
            for adopted in all.iter().filter(|adopted| adopted.round == round) {
                let name = self.name(MemberIndex(adopted.silo as u16));
                coalitions
                    .entry(adopted.coalition)
                    .or_default()
                    .insert(adopted.silo, name);
            }
            let plan = strategy.plan(&start, round);
            RoundInfo {
                round,
                led: recorded.led.clone(),
                kind: match plan.task {
                    Task::Summarise => "summarise",
                    Task::Keep => "keep",
                    Task::Answer(_) => "answer",
                    Task::Train(_) => "train",
                },
                cross_evaluated: plan.cross_evaluate,
                coalitions: coalitions
                    .into_values()
                    .map(|members| members.into_values().collect())
                    .collect(),
                authors: self.names(&recorded.authors),
                outcome: self.outcome(round),
                memory: self.memory(round, all),
            }
        };
        self.recorded.rounds.iter().map(round).collect()
    }

    pub(super) fn refused(&self) -> Vec<Refused> {
        let mut times = BTreeMap::<(MemberIndex, u64, String), u64>::new();
        for (_, _, notice) in &self.recorded.notices {
            let (key, more) = match notice {
                Notice::Protocol(Report::Refused {
                    member,
                    round,
                    reason,
                }) => ((*member, *round, reason.to_string()), 1),
                Notice::Unopened {
                    from,
                    reason,
                    times,
                }
                | Notice::Dropped {
                    from,
                    reason,
                    times,
                } => ((*from, 0, reason.clone()), *times),
                _ => continue,
            };
            *times.entry(key).or_default() += more;
        }
        times
            .into_iter()
            .map(|((member, round, reason), times)| Refused {
                member: self.name(member),
                round,
                reason,
                times,
            })
            .collect()
    }

    /// Returns who came too late for rounds, in sentences.
    pub(super) fn late(&self) -> Vec<String> {
        // Rounds, the longest time that a model took, and whether it was ready then.
        let mut late = BTreeMap::<MemberIndex, (usize, Duration, bool)>::new();
        for (_, by, report) in self.reports() {
            if let Report::Late { ready, over, .. } = report {
                let own = late.entry(by).or_default();
                let took = ready.unwrap_or(*over);
                let longest = took.max(own.1);
                let known = if took >= own.1 {
                    ready.is_some()
                } else {
                    own.2
                };
                *own = (own.0 + 1, longest, known);
            }
        }
        let patience = self.federation.epoch.patience().as_secs_f64();
        let words = |(by, (rounds, took, known)): (MemberIndex, (usize, Duration, bool))| {
            format!(
                "{} was too late for {}: {} {:.1} s, and the others wait for {patience:.1} s (`straggler-timeout`)",
                self.name(by),
                plural(rounds, "round"),
                if known {
                    "it was ready after"
                } else {
                    "it was not ready after"
                },
                took.as_secs_f64()
            )
        };
        late.into_iter().map(words).collect()
    }

    pub(super) fn training_failed(&self) -> Vec<TrainingFailed> {
        self.reports()
            .filter_map(|(_, silo, report)| match report {
                Report::TrainingFailed { round, reason } => Some(TrainingFailed {
                    silo: self.name(silo),
                    round: *round,
                    reason: reason.clone(),
                }),
                _ => None,
            })
            .collect()
    }

    pub(super) fn faults(&self) -> Vec<FaultInfo> {
        let mut seen = BTreeMap::<(MemberIndex, String), Vec<String>>::new();
        for (_, by, report) in self.reports() {
            if let Report::Fault(evidence) = report {
                let name = self.name(by);
                let by = seen
                    .entry((evidence.member, evidence.charge()))
                    .or_default();
                if !by.contains(&name) {
                    by.push(name);
                }
            }
        }
        seen.into_iter()
            .map(|((member, charge), seen_by)| FaultInfo {
                member: self.name(member),
                charge,
                seen_by,
            })
            .collect()
    }

    pub(super) fn left_out(&self) -> Vec<LeftOutMembers> {
        let reports = self.reports().map(|(_, by, report)| (by, report));
        left_out(reports, &self.federation.epoch.roster)
    }

    pub(super) fn nullified(&self) -> Vec<Nullified> {
        let mut leads = BTreeMap::new();
        let mut votes = Vec::new();
        for (_, silo, report) in self.reports() {
            match report {
                Report::Entered { lead, .. } => {
                    leads.insert(silo, *lead);
                }
                Report::Nullifying { view, reason } => votes.push(Nullified {
                    view: *view,
                    lead: leads
                        .get(&silo)
                        .map_or(String::new(), |&lead| self.name(lead)),
                    silo: self.name(silo),
                    reason: reason.to_string(),
                }),
                _ => {}
            }
        }
        votes
    }

    pub(super) fn timeline(&self, rounds: &[RoundInfo]) -> Vec<ViewLead> {
        let protocol = self.recorded.protocol.as_ref();
        let ended = protocol.map_or(0.0, |run| run.ended.elapsed().as_secs_f64());
        let mut views = BTreeMap::<u64, ViewLead>::new();
        for (at, _, report) in self.reports() {
            if let Report::Entered { view, lead, round } = report {
                let entered = views.entry(*view).or_insert_with(|| ViewLead {
                    view: *view,
                    lead: self.name(*lead),
                    from: at,
                    to: ended,
                    round: *round,
                    result: "open",
                });
                if *round > entered.round {
                    // A round became final within the view, which may give it another lead.
                    (entered.lead, entered.round) = (self.name(*lead), *round);
                }
            }
        }
        let mut result = |view: &u64, result: &'static str| {
            if let Some(lead) = views.get_mut(view)
                && lead.result != "final"
            {
                lead.result = result;
            }
        };
        for (_, _, report) in self.reports() {
            match report {
                Report::Final { view, .. } => result(view, "final"),
                Report::Certified(certificate) => match certificate.verdict {
                    Verdict::Nullified => result(&certificate.view, "nullified"),
                    Verdict::Final(_) => result(&certificate.view, "empty"),
                    Verdict::Notarised(_) | Verdict::Outcome { .. } => {}
                },
                _ => {}
            }
        }
        // The round that a view worked on is the first that became final in it or in a later view:
        // the first member that entered it may have been a round behind.
        for lead in views.values_mut() {
            let after = |round: &&RoundInfo| round.view().is_some_and(|view| view >= lead.view);
            let next = rounds.iter().find(after);
            lead.round = next.map_or(lead.round, |round| round.round);
        }
        let starts: Vec<_> = views.values().map(|lead| lead.from).collect();
        let mut timeline: Vec<_> = views.into_values().collect();
        for (lead, next) in timeline.iter_mut().zip(starts.into_iter().skip(1)) {
            lead.to = next;
        }
        timeline
    }
}
