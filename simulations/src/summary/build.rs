//! Puts the summary together from what the silos told.

use std::collections::BTreeMap;
use std::sync::Arc;

use learn::Study;
use methods::learner::Task;
use methods::params::Params;
use methods::strategy::State;
use methods::{Learner, Role};
use protocol::certificate::Verdict;
use protocol::{MemberIndex, Report};
use silo::Notice;

use crate::error::RunError;
use crate::federate::Recorded;
use crate::federation::{Division, Federation};
use crate::pool::Threads;
use crate::scenario::Scenario;
use crate::world::Mesh;

use super::ends::{End, Reference, ends};
use super::metrics::{AdoptedModel, adopted, last, measure};
use super::{
    Curve, FaultInfo, Lead, LeftOut, MetricInfo, Nullified, Refused, RoundInfo, SiloInfo,
    SiloTraffic, Summary,
};

/// Points of curves that are measured at most; larger federations show the last round only.
const POINTS: usize = 2_000;

pub(crate) fn build(
    scenario: &Scenario,
    study: &Study,
    division: &Division,
    federation: &Federation,
    recorded: &Recorded,
    reference: &Reference,
    threads: &Arc<Threads>,
) -> Result<Summary, RunError> {
    let ends = ends(
        scenario, study, division, federation, recorded, reference, threads,
    )?;
    let study = &division.inside;
    let told = Told {
        federation,
        recorded,
    };
    let all = adopted(&recorded.notices);
    let n = study.silos.len();
    let finals = last(&all, n);
    let messages = recorded.traffic.iter().map(|sent| sent.messages).sum();
    let blobs = recorded.traffic.iter().map(|sent| sent.blobs).sum();
    let rounds = told.rounds(&all);
    let timeline = told.timeline(&rounds);
    Ok(Summary {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        mesh: recorded.mesh,
        trace: recorded.trace.clone(),
        events: recorded.events,
        invariants: recorded.invariants.clone(),
        seconds: recorded.seconds,
        virtual_seconds: (recorded.mesh == Mesh::VIRTUAL)
            .then(|| recorded.ended.elapsed().as_secs_f64()),
        reference_seconds: 0.0,
        bytes: messages + blobs,
        bytes_messages: messages,
        bytes_blobs: blobs,
        strategy: scenario.strategy.name().into(),
        metric: MetricInfo {
            name: study.metric.name.key().into(),
            unit: study.metric.unit.clone(),
            higher_is_better: study.metric.name.higher_is_better(),
        },
        rounds,
        silos: silos(scenario, &told, ends),
        weights_abs_sum: weights(&finals),
        checks: recorded.totals,
        refused: told.refused(),
        faults: told.faults(),
        left_out: told.left_out(),
        nullified: told.nullified(),
        curves: curves(study, &told, &all, &finals, threads)?,
        timeline,
        traffic: federation
            .epoch
            .roster
            .silos()
            .iter()
            .zip(&recorded.traffic)
            .map(|(silo, &sent)| SiloTraffic {
                silo: silo.name.clone(),
                sent,
            })
            .collect(),
    })
}

fn silos(scenario: &Scenario, told: &Told<'_>, ends: Vec<End>) -> Vec<SiloInfo> {
    let plain = scenario.strategy.is_plain_average();
    let rounds = scenario.strategy.standardise.into();
    ends.into_iter()
        .map(|end| SiloInfo {
            name: end.name,
            outside: end.member.is_none(),
            samples: end.rows.train,
            test_samples: end.rows.test,
            trainings: end.member.map_or(0, |at| told.trainings(at, rounds)),
            local: end.local,
            global: if plain { end.coalition } else { end.global },
            coalition: end.coalition,
            coalition_index: end.coalition_index,
            model: end.model.map(|hash| format!("{hash:#}")),
            pooled: end.pooled,
            served: end.served,
        })
        .collect()
}

/// The sum over the one final model, if all silos of the last round have the same.
fn weights(finals: &[Option<AdoptedModel>]) -> Option<f64> {
    let newest = finals.iter().flatten().map(|adopted| adopted.round).max()?;
    let mut models = finals
        .iter()
        .flatten()
        .filter(|adopted| adopted.round == newest);
    let first = &models.next()?.model.0;
    let one = models.all(|adopted| adopted.model.0.hash() == first.hash());
    one.then(|| abs_sum(first))
}

fn abs_sum(model: &Params) -> f64 {
    let tensors = model.layout().tensors().iter().enumerate();
    tensors
        .filter(|(_, tensor)| tensor.role != Role::Buffer)
        .flat_map(|(index, _)| &model.values()[model.layout().range(index)])
        .map(|value| f64::from(value.abs()))
        .sum()
}

fn curves(
    study: &Study,
    told: &Told<'_>,
    all: &[AdoptedModel],
    finals: &[Option<AdoptedModel>],
    threads: &Arc<Threads>,
) -> Result<Vec<Curve>, RunError> {
    let mut points = BTreeMap::<(usize, u64), (Option<f64>, Option<f64>)>::new();
    for (_, silo, notice) in &told.recorded.notices {
        if let Notice::Trained { round, loss, .. } = notice {
            points.entry((silo.at(), *round)).or_default().0 = Some(*loss);
        }
    }
    let measured: Vec<&AdoptedModel> = if all.len() <= POINTS {
        all.iter().collect()
    } else {
        finals.iter().flatten().collect()
    };
    let models = measured
        .iter()
        .map(|adopted| (adopted.silo, adopted.model.clone()))
        .collect();
    for (adopted, value) in measured
        .iter()
        .zip(measure(study, &told.learners(), models, threads)?)
    {
        points.entry((adopted.silo, adopted.round)).or_default().1 = value;
    }
    let point = |((silo, round), (loss, metric)): (_, (Option<f64>, Option<f64>))| Curve {
        silo: told.name(MemberIndex(silo as u16)),
        round,
        loss: loss.filter(|loss| loss.is_finite()),
        metric,
    };
    Ok(points
        .into_iter()
        .map(|((silo, round), values): ((usize, u64), _)| point(((silo, round), values)))
        .collect())
}

/// What the silos told.
struct Told<'a> {
    federation: &'a Federation,
    recorded: &'a Recorded,
}

impl Told<'_> {
    fn name(&self, member: MemberIndex) -> String {
        self.federation.epoch.roster.name(member).into()
    }

    /// What the silos learn with.
    fn learners(&self) -> Vec<Arc<dyn Learner>> {
        let members = self.federation.members.iter();
        members.map(|member| member.learner.clone()).collect()
    }

    fn names(&self, members: &[MemberIndex]) -> Vec<String> {
        members.iter().map(|&member| self.name(member)).collect()
    }

    fn reports(&self) -> impl Iterator<Item = (f64, MemberIndex, &Report)> {
        self.recorded
            .notices
            .iter()
            .filter_map(|(time, member, notice)| match notice {
                Notice::Protocol(report) => Some((time.elapsed().as_secs_f64(), *member, report)),
                _ => None,
            })
    }

    /// How often a silo trained in a round after these first ones.
    fn trainings(&self, silo: usize, after: u64) -> usize {
        let trained =
            |notice: &Notice| matches!(notice, Notice::Trained { round, .. } if *round > after);
        let notices = self.recorded.notices.iter();
        notices
            .filter(|(_, by, notice)| by.at() == silo && trained(notice))
            .count()
    }

    /// The outcome that was adopted with a round.
    fn outcome(&self, of: u64) -> String {
        let mut notices = self.recorded.notices.iter();
        let outcome = notices.find_map(|(_, _, notice)| match notice {
            Notice::Adopted { round, outcome, .. } if *round == of => Some(outcome),
            _ => None,
        });
        outcome.map_or(String::new(), |outcome| format!("{outcome:#}"))
    }

    /// What the strategy remembered after a round.
    fn memory(&self, of: u64, all: &[AdoptedModel]) -> BTreeMap<String, Vec<f64>> {
        let adopted = all.iter().find(|adopted| adopted.round == of);
        adopted.map_or_else(BTreeMap::new, |adopted| adopted.state.memory.clone())
    }

    fn rounds(&self, all: &[AdoptedModel]) -> Vec<RoundInfo> {
        let silo = &self.federation.members[0];
        let start = State::genesis(silo.learner.initial(silo.initial_seed));
        let strategy = &silo.strategy;
        let mut rounds = BTreeMap::new();
        for (at, _, report) in self.reports() {
            let Report::Final {
                round,
                view,
                lead,
                authors,
                ..
            } = report
            else {
                continue;
            };
            rounds.entry(*round).or_insert_with(|| {
                let mut coalitions = BTreeMap::<u32, BTreeMap<usize, String>>::new();
                for adopted in all.iter().filter(|adopted| adopted.round == *round) {
                    let name = self.name(MemberIndex(adopted.silo as u16));
                    coalitions
                        .entry(adopted.coalition)
                        .or_default()
                        .insert(adopted.silo, name);
                }
                let plan = strategy.plan(&start, *round);
                RoundInfo {
                    round: *round,
                    view: *view,
                    lead: self.name(*lead),
                    kind: match plan.task {
                        Task::Summarise => "summarise",
                        Task::Keep => "keep",
                        Task::Train(_) => "train",
                    },
                    at,
                    cross_evaluated: plan.cross_evaluate,
                    coalitions: coalitions
                        .into_values()
                        .map(|members| members.into_values().collect())
                        .collect(),
                    authors: self.names(authors),
                    outcome: self.outcome(*round),
                    memory: self.memory(*round, all),
                }
            });
        }
        rounds.into_values().collect()
    }

    fn refused(&self) -> Vec<Refused> {
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

    fn faults(&self) -> Vec<FaultInfo> {
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

    fn left_out(&self) -> Vec<LeftOut> {
        self.reports()
            .filter_map(|(_, lead, report)| match report {
                Report::LeftOut {
                    view,
                    round,
                    members,
                    reason,
                } => Some(LeftOut {
                    round: *round,
                    view: *view,
                    lead: self.name(lead),
                    members: self.names(members),
                    reason: reason.to_string(),
                }),
                _ => None,
            })
            .collect()
    }

    fn nullified(&self) -> Vec<Nullified> {
        self.reports()
            .filter_map(|(_, silo, report)| match report {
                Report::Nullifying { view, reason } => Some(Nullified {
                    view: *view,
                    lead: self.name(self.federation.epoch.lead(*view)),
                    silo: self.name(silo),
                    reason: reason.to_string(),
                }),
                _ => None,
            })
            .collect()
    }

    fn timeline(&self, rounds: &[RoundInfo]) -> Vec<Lead> {
        let mut views = BTreeMap::<u64, Lead>::new();
        for (at, _, report) in self.reports() {
            if let Report::Entered { view, lead, round } = report {
                views.entry(*view).or_insert_with(|| Lead {
                    view: *view,
                    lead: self.name(*lead),
                    from: at,
                    to: self.recorded.ended.elapsed().as_secs_f64(),
                    round: *round,
                    result: "open",
                });
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
                    Verdict::Notarised(_) => {}
                },
                _ => {}
            }
        }
        // The round that a view worked on is the first that became final from it or a later one:
        // what its first member knew on entering may be a round behind.
        for lead in views.values_mut() {
            let next = rounds.iter().find(|round| round.view >= lead.view);
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
