//! Builds the summary of a run from what its silos reported.

use std::collections::BTreeMap;
use std::sync::Arc;

use formatting::numbers::{self, plural};
use learn::Study;
use methods::Role;
use methods::params::Params;
use protocol::MemberIndex;
use silo::Notice;

use crate::participation::ParticipatingSilos;
use crate::reference::References;
use simulations::Federation;
use simulations::LinkageResult;
use simulations::RunError;
use simulations::RunRecord;
use simulations::pool::Threads;
use simulations::scenario::Scenario;

use super::compare::{compare, unknown};
use super::heavy::heavy_note;
use super::metrics::{AdoptedModel, adopted_models, last_adopted, measure};
use super::newcomers::newcomers;
use super::noise::NoiseBound;
use super::reports::Reports;
use super::results::Settings;
use super::silo_result::SiloResult;
use super::silos::silo_results;
use super::stops::stops;
use super::{Curve, MetricInfo, RoundInfo, Summary};

/// About how many points of curves are measured: in longer or larger federations not every round is.
const POINTS: usize = 2_000;

/// Most silos that a sentence names.
const NAMED: usize = 3;

/// Returns how many rounds lie between two that are measured, if so many models were adopted in all.
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
    let never_trained = never_trained(&results);
    let compared = compare(
        scenario,
        study,
        |member| reports.trainings(member, first),
        results,
        threads,
    )?;
    let mut notes = notes(scenario, study, &reports, references, (&rounds, all.len()));
    notes.extend(never_trained);
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
        noise: NoiseBound::of(&federation.epoch.protocol),
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

/// Returns which members have a model of which parts were never trained, in a sentence.
fn never_trained(results: &[SiloResult]) -> Option<String> {
    let members = results.iter().filter(|one| one.member.is_some());
    let never: Vec<_> = members.filter(|one| one.never_trained).collect();
    let names: Vec<String> = never.iter().map(|one| one.name.clone()).collect();
    (!never.is_empty()).then(|| {
        format!(
            "no round drew {}, so the parts of the coalition's model that {} to {} were never trained: its values there \
             say nothing; more rounds, or more members in each, draw everybody",
            numbers::names(&names, NAMED),
            numbers::verb(never.len(), "it keeps", "they keep"),
            numbers::verb(never.len(), "itself", "themselves"),
        )
    })
}

/// Returns what to know about the results, in sentences: of a run with these rounds, in which so many models were
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
    let noise = NoiseBound::of(&reports.federation.epoch.protocol);
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
             that has the silo of a row (`silo-column`), or split the rows into trial silos (`split-into`)"
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
    let mut further = BTreeMap::<(usize, u64), BTreeMap<String, f64>>::new();
    for (_, silo, notice) in &reports.recorded.notices {
        if let Notice::Trained {
            round,
            loss,
            metrics,
            ..
        } = notice
        {
            points.entry((silo.at(), *round)).or_default().0 = Some(*loss);
            further.insert((silo.at(), *round), unknown(metrics));
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
    let mut point = |((silo, round), (loss, metric)): (_, (Option<f64>, Option<f64>))| Curve {
        silo: reports.name(MemberIndex(silo as u16)),
        round,
        loss: loss.filter(|loss| loss.is_finite()),
        metric,
        metrics: further.remove(&(silo, round)).unwrap_or_default(),
    };
    Ok(points
        .into_iter()
        .map(|((silo, round), values): ((usize, u64), _)| point(((silo, round), values)))
        .collect())
}
