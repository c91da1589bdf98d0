//! Builds the summary of a run from what its silos reported.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use formatting::numbers::plural;
use learn::Study;
use methods::learner::Task;
use methods::params::Params;
use methods::strategy::{State, findings};
use methods::{Learner, Role};
use protocol::certificate::Verdict;
use protocol::{MemberIndex, Report};
use serde_json::Value;
use silo::Notice;

use crate::participation::ParticipatingSilos;
use crate::reference::References;
use simulations::Federation;
use simulations::LinkageResult;
use simulations::Mesh;
use simulations::RoundRecord;
use simulations::RunError;
use simulations::RunRecord;
use simulations::pool::Threads;
use simulations::scenario::Scenario;

use super::basis::coalitions;
use super::compare::compare;
use super::heavy::heavy_note;
use super::left_out::left_out;
use super::metrics::{AdoptedModel, adopted_models, last_adopted, measure};
use super::newcomers::newcomers;
use super::noise::NoiseBound;
use super::results::{Settings, TrainingFailed};
use super::silos::silo_results;
use super::stops::stops;
use super::{
    Curve, FaultInfo, LastMerges, LeftOutMembers, MetricInfo, Nullified, Refused, RoundInfo,
    SiloLosses, SiloTraffic, Summary, ViewLead,
};

/// About how many points of curves are measured: in longer or larger federations not every round is.
const POINTS: usize = 2_000;

/// How many rounds lie between two that are measured, if so many models were adopted in all.
fn every(adopted: usize) -> u64 {
    adopted.div_ceil(POINTS).max(1) as u64
}

pub(crate) fn build(
    scenario: &Scenario,
    study: &Study,
    participation: &ParticipatingSilos,
    federation: &Federation,
    recorded: &RunRecord,
    references: &References,
    threads: &Arc<Threads>,
) -> Result<Summary, RunError> {
    let results = silo_results(
        scenario,
        study,
        participation,
        federation,
        recorded,
        references,
        threads,
    )?;
    let (whole, study) = (study, &participation.study);
    let reports = Reports {
        federation,
        recorded,
    };
    let all = adopted_models(&recorded.notices);
    let n = study.silos.len();
    let finals = last_adopted(&all, n);
    let protocol = recorded.protocol.as_ref();
    let messages = reports.messages();
    let newcomers = newcomers(scenario, whole, participation, federation, &all, threads)?;
    let rounds = reports.rounds(&all);
    let timeline = reports.timeline(&rounds);
    let first = scenario.strategy.standardise.into();
    let compared = compare(
        scenario,
        study,
        |member| reports.trainings(member, first),
        results,
        threads,
    )?;
    let notes = notes(scenario, study, &reports, references, (&rounds, all.len()));
    Ok(Summary {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        mesh: recorded.mesh,
        trace: protocol.map(|run| run.trace.clone()),
        events: protocol.map(|run| run.events),
        invariants: protocol.map_or(Vec::new(), |run| run.invariants.clone()),
        seconds: recorded.seconds,
        virtual_seconds: reports.virtual_seconds(),
        reference_seconds: 0.0,
        bytes: messages.zip(recorded.blobs).map(|(some, more)| some + more),
        bytes_messages: messages,
        bytes_blobs: recorded.blobs,
        strategy: scenario.strategy.name().into(),
        metric: metric(study),
        second_metric: compared.second_metric,
        settings: settings(scenario, study),
        usable: compared.usable,
        unusable: compared.unusable,
        training_failed: reports.training_failed(),
        gains: compared.gains,
        means: compared.means,
        harmed: compared.harmed,
        tuning: compared.tuning,
        linkage: protocol.and_then(|run| run.linkage.clone()),
        noise: NoiseBound::of(&federation.epoch.charter),
        notes,
        rounds,
        losses: reports.losses(),
        merges: reports.merges(&all),
        silos: compared.silos,
        newcomers,
        weights_abs_sum: weights(&finals),
        checks: protocol.map(|run| run.totals),
        refused: reports.refused(),
        faults: reports.faults(),
        left_out: reports.left_out(),
        nullified: reports.nullified(),
        curves: curves(study, &reports, &all, &finals, threads)?,
        timeline,
        stops: protocol.map_or(Vec::new(), stops),
        traffic: reports.traffic(),
    })
}

/// What to know about the results, in sentences: of a run with these rounds, in which so many models were
/// adopted in all.
fn notes(
    scenario: &Scenario,
    study: &Study,
    reports: &Reports<'_>,
    references: &References,
    (rounds, adopted): (&[RoundInfo], usize),
) -> Vec<String> {
    let mut notes = study.notes.clone();
    let strategy = &scenario.strategy;
    let remarks = strategy.remarks(scenario.rounds).into_iter();
    notes.extend(remarks.map(|remark| format!("{}: {remark}", strategy.name())));
    if let Some(stop) = scenario.strategy.stop
        && let Some(last) = rounds.last().filter(|last| last.round < scenario.rounds)
    {
        notes.push(format!(
            "early stopping after round {} of {}: for {} the models did not improve on validation rows (`stop`); \
             the last outcome has the models of the best round",
            last.round,
            scenario.rounds,
            plural(stop.patience as usize, "round"),
        ));
    }
    if every(adopted) > 1 {
        notes.push(format!(
            "curves show the held-out metric once every {} and for the last one, because all silos and rounds \
             together have {}",
            plural(every(adopted) as usize, "round"),
            plural(adopted, "model")
        ));
    }
    let noise = NoiseBound::of(&reports.federation.epoch.charter);
    notes.extend(noise.map(|noise| noise.sentence()));
    notes.extend(references.notes.clone());
    notes.extend(references.failed.iter().map(|(kind, reason)| {
        format!(
            "{} cannot be compared: its training failed {reason}",
            kind.words()
        )
    }));
    notes.extend(
        reports
            .recorded
            .protocol
            .as_ref()
            .and_then(|run| run.linkage.as_ref())
            .and_then(LinkageResult::sentence),
    );
    notes.extend(heavy_note(&reports.recorded.notices, reports.federation));
    notes.extend(reports.late());
    if study.silos.len() == 1 {
        notes.push(
            "there is only one silo, so nothing is learned from others: give a file for each silo, name the column \
             that has the silo of a row (`silo-column`), or split the rows into trial silos (`pretend-silos`)"
                .to_owned(),
        );
    }
    notes
}

/// The metric that reports compare.
fn metric(study: &Study) -> MetricInfo {
    MetricInfo {
        name: study.metric.name.key().into(),
        unit: study.metric.unit.clone(),
        higher_is_better: study.metric.name.higher_is_better(),
    }
}

fn settings(scenario: &Scenario, study: &Study) -> Settings {
    Settings {
        version: env!("CARGO_PKG_VERSION"),
        task: serde_json::to_value(&scenario.task).unwrap_or_default(),
        strategy: serde_json::to_value(&scenario.strategy).unwrap_or_default(),
        classes: study.classes.clone(),
    }
}

/// The sum over the final model, if all silos of the last round have the same one.
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
    reports: &Reports<'_>,
    all: &[AdoptedModel],
    finals: &[Option<AdoptedModel>],
    threads: &Arc<Threads>,
) -> Result<Vec<Curve>, RunError> {
    let mut points = BTreeMap::<(usize, u64), (Option<f64>, Option<f64>)>::new();
    for (_, silo, notice) in &reports.recorded.notices {
        if let Notice::Trained { round, loss, .. } = notice {
            points.entry((silo.at(), *round)).or_default().0 = Some(*loss);
        }
    }
    let every = every(all.len());
    let last = |adopted: &AdoptedModel| {
        let own = finals.get(adopted.silo).and_then(Option::as_ref);
        own.is_some_and(|own| own.round == adopted.round)
    };
    let wanted = |adopted: &&AdoptedModel| adopted.round.is_multiple_of(every) || last(adopted);
    let measured: Vec<&AdoptedModel> = all.iter().filter(wanted).collect();
    let models = measured
        .iter()
        .map(|adopted| (adopted.silo, adopted.model.clone()))
        .collect();
    for (adopted, value) in
        measured
            .iter()
            .zip(measure(study, &reports.learners(), models, threads)?)
    {
        points.entry((adopted.silo, adopted.round)).or_default().1 = value;
    }
    let point = |((silo, round), (loss, metric)): (_, (Option<f64>, Option<f64>))| Curve {
        silo: reports.name(MemberIndex(silo as u16)),
        round,
        loss: loss.filter(|loss| loss.is_finite()),
        metric,
    };
    Ok(points
        .into_iter()
        .map(|((silo, round), values): ((usize, u64), _)| point(((silo, round), values)))
        .collect())
}

/// What the silos of a federation reported, in the order of time.
struct Reports<'a> {
    federation: &'a Federation,
    recorded: &'a RunRecord,
}

impl Reports<'_> {
    fn name(&self, member: MemberIndex) -> String {
        self.federation.epoch.roster.name(member).into()
    }

    /// Seconds of virtual time that the run took, where time was virtual.
    fn virtual_seconds(&self) -> Option<f64> {
        let recorded = self.recorded;
        let protocol = recorded.protocol.as_ref()?;
        (recorded.mesh == Mesh::VIRTUAL).then(|| protocol.ended.elapsed().as_secs_f64())
    }

    /// Bytes of messages that all silos sent.
    fn messages(&self) -> Option<u64> {
        let protocol = self.recorded.protocol.as_ref()?;
        Some(protocol.traffic.iter().map(|sent| sent.messages).sum())
    }

    /// The losses that groups were formed by.
    fn losses(&self) -> Option<SiloLosses> {
        let losses = self.recorded.basis.losses.as_ref();
        losses.map(|losses| SiloLosses::new(losses, |member| self.name(member)))
    }

    /// The merges that groups were formed by.
    fn merges(&self, all: &[AdoptedModel]) -> Option<LastMerges> {
        let merges = &self.recorded.basis.merges;
        LastMerges::of(
            merges,
            |round| coalitions(all, round),
            |member| self.name(member),
        )
    }

    /// What every silo sent.
    fn traffic(&self) -> Vec<SiloTraffic> {
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

    /// What the strategy kept after a round, and what its models say of it.
    fn memory(&self, of: u64, all: &[AdoptedModel]) -> BTreeMap<String, Value> {
        let Some(adopted) = all.iter().find(|adopted| adopted.round == of) else {
            return BTreeMap::new();
        };
        let kept = adopted.state.memory.iter();
        let kept = kept.map(|(name, value)| (name.to_owned(), value.json()));
        let found = findings(&adopted.state).into_iter();
        kept.chain(found.map(|(name, value)| (name, value.json())))
            .collect()
    }

    fn rounds(&self, all: &[AdoptedModel]) -> Vec<RoundInfo> {
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

    /// Who came too late for rounds, in sentences.
    fn late(&self) -> Vec<String> {
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
                "{} was too late for {}: {} {:.1} s, and the others wait for {patience:.1} s (`patience`)",
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

    fn training_failed(&self) -> Vec<TrainingFailed> {
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

    fn left_out(&self) -> Vec<LeftOutMembers> {
        let reports = self.reports().map(|(_, by, report)| (by, report));
        left_out(reports, &self.federation.epoch.roster)
    }

    fn nullified(&self) -> Vec<Nullified> {
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

    fn timeline(&self, rounds: &[RoundInfo]) -> Vec<ViewLead> {
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
