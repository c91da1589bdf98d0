//! Advice for one federation: which way of learning serves its members best, and whether any does.
//!
//! A small comparison within a time budget. What looks best among several ways of learning looks
//! better than it is, so the way is chosen on one half of the seeds, and its gain is measured on the
//! other.

use std::path::Path;
use std::time::{Duration, Instant};

use methods::strategy::{Names, build};
use methods::{State, Strategy};
use serde::Serialize;
use toml::{Table, Value};

use super::comparison::{Comparison, ComparisonRow};
use super::differences::{ComparedPair, MeanDifference};
use super::error::ExperimentError;
use super::experiment::{Choices, Experiment, ExperimentEntry};
use super::file::RunSettings;
use super::result::{SiloModel, UnitResult};
use super::row_draws::SharedDraws;
use super::run::{CompareOptions, run_units};
use crate::statistic::{BY_CHANCE, Interval};

/// Ways of learning that are tried beside the scenario's own and the references, the simplest first.
const CANDIDATES: &[(&str, &str)] = &[("ditto", ""), ("hcct", ""), ("cs-rcfl", "auto")];
/// The label of local training.
const ALONE: &str = "local";
/// Steps by which the comparison grows with the budget: seeds, and settings tried for each way.
const STEPS: [(usize, usize); 7] = [(2, 1), (4, 1), (4, 3), (6, 3), (8, 4), (12, 6), (20, 6)];

/// Advice for the members of a federation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Label of the recommended way of learning; `None`: every silo alone.
    pub recommended: Option<String>,
    /// Mean gain of it over local training, per silo, on the seeds that did not choose it; where
    /// nobody is better off together, that of the way that looked best.
    pub gain: Option<Interval>,
    /// Label of the way that looked best on the seeds that choose.
    pub best: Option<String>,
    /// Members whose own gain is clear, members in all, and members that are clearly worse off.
    pub members: (usize, usize, usize),
    /// Names of the members that are clearly worse off: they should stay alone.
    pub stay_alone: Vec<String>,
    /// How many would be clearly worse off by chance.
    pub by_chance: f64,
    /// Bytes that a member sends in a federation of this length, on average.
    pub bytes: f64,
    /// What leaves a silo, as clauses.
    pub exposure: Vec<String>,
    /// Seeds for which every way of learning was measured.
    pub seeds: usize,
    /// Settings tried for each way of learning.
    pub points: usize,
    /// Whether time was over before the comparison was complete; the advice is then by the runs that had
    /// ended.
    pub cut_short: bool,
    /// The comparison.
    pub comparison: Comparison,
}

impl Experiment {
    /// The comparison that advice for a scenario rests on.
    ///
    /// # Errors
    /// As [`Experiment::load`]; an experiment in place of a scenario.
    pub fn for_advice(name: &str) -> Result<Self, ExperimentError> {
        let mut experiment = Self::load(name, &Choices::default())?;
        // The time is better spent on seeds.
        experiment.served = false;
        for (name, coalitions) in CANDIDATES {
            if experiment.entries.iter().any(|entry| entry.name() == *name) {
                continue;
            }
            let mut strategy = Table::new();
            strategy.insert("name".into(), (*name).into());
            if !coalitions.is_empty() {
                strategy.insert("coalitions".into(), Value::from(*coalitions));
            }
            let entry = ExperimentEntry::plain(name, strategy);
            // What this scenario has too few rounds for is not tried.
            let variant = &experiment.variants[0];
            if experiment
                .scenario(variant, &entry, &RunSettings::new(), 0)
                .is_ok()
            {
                experiment.entries.push(entry);
            }
        }
        Ok(experiment)
    }
}

/// Compares for at most `budget`, and advises on what was measured until then. `data` is the folder of data
/// sets. Runs that have not ended by then go on in the background until they end or the process does.
///
/// # Errors
/// As [`compare`](super::compare()).
pub fn advise(
    mut experiment: Experiment,
    data: Option<&Path>,
    budget: Duration,
    mut progress: impl FnMut(&super::CompareProgress),
) -> Result<Advice, ExperimentError> {
    let options = || CompareOptions {
        data: data.map(Path::to_owned),
        ..CompareOptions::default()
    };
    // The first step is run to learn how long the others take.
    let began = Instant::now();
    let until = Some(began + budget);
    (experiment.seeds, experiment.tune.points) = STEPS[0];
    let mut results = run_units(&experiment, options(), until, &mut progress)?;
    let first = began.elapsed();
    let cost = |(seeds, points): (usize, usize)| (seeds * (points + 1)) as f64;
    let fits = |step: &&(usize, usize)| {
        let takes = first.mul_f64(cost(**step) / cost(STEPS[0]));
        first + takes <= budget
    };
    let step = STEPS.iter().skip(1).rev().find(fits).copied();
    if let Some((seeds, points)) = step {
        let mut larger = experiment.clone();
        (larger.seeds, larger.tune.points) = (seeds, points);
        let more = run_units(&larger, options(), until, &mut progress)?;
        // A guess of how long it takes may be wrong: what is complete counts.
        if complete(&larger, &more) >= complete(&experiment, &results) {
            (experiment, results) = (larger, more);
        }
    }
    Ok(Advice::of(&experiment, results, began.elapsed()))
}

/// Seeds, from the first on, for which every way of learning has a result.
pub(super) fn complete(experiment: &Experiment, results: &[UnitResult]) -> usize {
    let ways = experiment.entries.len();
    let of = |seed: usize| results.iter().filter(|one| one.unit.seed == seed).count();
    (0..experiment.seeds)
        .take_while(|&seed| of(seed) >= ways)
        .count()
}

impl Advice {
    fn of(experiment: &Experiment, mut results: Vec<UnitResult>, took: Duration) -> Self {
        let (runs, seeds) = (experiment.units().len(), complete(experiment, &results));
        let cut_short = results.len() < runs;
        // Seeds that some ways of learning lack would favour others.
        if seeds > 1 {
            results.retain(|one| one.unit.seed < seeds);
        }
        let comparison = Comparison::of(experiment, results.clone(), took.as_secs_f64());
        let metric = comparison.metrics[0];
        let half = |label: &str, odd: bool| -> Vec<&UnitResult> {
            let own = results
                .iter()
                .filter(|one| one.unit.strategy == label && one.failed.is_none());
            let mut own: Vec<_> = own.filter(|one| (one.unit.seed % 2 == 1) == odd).collect();
            own.sort_by_key(|one| one.unit.seed);
            own
        };
        let draws = SharedDraws::default();
        let difference = |label: &str, odd: bool| -> Option<MeanDifference> {
            let (ours, theirs) = (half(label, odd), half(ALONE, odd));
            let pair = ComparedPair {
                metric: metric.key(),
                higher_is_better: metric.higher_is_better(),
                outside: false,
                ours: (&ours, SiloModel::Strategy),
                theirs: (&theirs, SiloModel::Strategy),
                draws: &draws,
            };
            pair.difference()
        };
        let candidates = experiment.entries.iter().filter(|entry| {
            let reference = entry.is_reference() || entry.label == ALONE;
            !reference
        });
        let gains: Vec<(&str, Interval)> = candidates
            .filter_map(|entry| {
                let difference = difference(&entry.label, false)?;
                Some((
                    entry.label.as_str(),
                    difference.per_silo.or(difference.per_row)?,
                ))
            })
            .collect();
        let best = gains.iter().max_by(|a, b| a.1.by.total_cmp(&b.1.by));
        // The confirming half decides whether it is better than being alone.
        let confirmed = best.and_then(|(label, _)| Some((*label, difference(label, true)?)));
        let gain = confirmed
            .as_ref()
            .and_then(|(_, one)| one.per_silo.or(one.per_row));
        let label = best.map(|(label, _)| (*label).to_owned());
        let recommended = label
            .clone()
            .filter(|_| gain.is_some_and(|gain| gain.low > 0.0));
        let rows = &comparison.variants[0].strategies;
        let row = rows.iter().find(|row| Some(&row.label) == label.as_ref());
        let whole = row.and_then(|row| {
            let against = row.against.iter().find(|against| against.over == ALONE)?;
            against.inside.clone()
        });
        let tested = whole
            .as_ref()
            .map_or(0, |one| one.wins + one.ties + one.losses);
        let members = comparison.variants[0].members.len();
        Self {
            recommended,
            gain,
            best: label.clone(),
            members: whole
                .as_ref()
                .map_or((0, members, 0), |one| (one.wins, members, one.losses)),
            stay_alone: whole.map_or_else(Vec::new, |one| one.losers),
            by_chance: BY_CHANCE * tested as f64,
            bytes: row.map_or(0.0, |row| sent(row) / members.max(1) as f64),
            exposure: label.map_or_else(Vec::new, |label| exposure(experiment, &label, &results)),
            seeds,
            points: experiment.tune.points,
            cut_short,
            comparison,
        }
    }
}

fn sent(row: &ComparisonRow) -> f64 {
    row.to_best.map_or(0.0, |best| best.bytes.mean)
}

/// What leaves a silo under a strategy, by its contract.
fn exposure(experiment: &Experiment, label: &str, results: &[UnitResult]) -> Vec<String> {
    let entry = experiment.entries.iter().find(|entry| entry.label == label);
    let scenario = entry.and_then(|entry| {
        let point = experiment.points(entry).into_iter().next()?;
        experiment
            .scenario(&experiment.variants[0], entry, &point, 0)
            .ok()
    });
    let members = experiment_members(results);
    let built = scenario.and_then(|scenario| build(&scenario.strategy, members).ok());
    let (Some(strategy), Some(result)) =
        (built, results.iter().find(|one| one.unit.strategy == label))
    else {
        return Vec::new();
    };
    let mut clauses = vec![format!(
        "a model of {} numbers in every round, which all members can read",
        result.parameters
    )];
    clauses.push(match strategy.names() {
        Names::Removed => "its models are published without its name".into(),
        Names::Shown => {
            "its models are published with its name, because the strategy keeps state for every member"
                .into()
        }
    });
    let plan = |round| {
        let layout = methods::Params::empty();
        Strategy::plan(&*strategy, &State::genesis(layout), round)
    };
    if plan(1).weights {
        clauses.push("the number of its training rows".into());
    }
    if (1..=3).any(|round| plan(round).cross_evaluate) {
        clauses.push(
            "its losses of all members' models, from which its own model can be guessed".into(),
        );
    }
    clauses
}

fn experiment_members(results: &[UnitResult]) -> usize {
    let silos = results
        .iter()
        .map(|one| one.silos.iter().filter(|silo| !silo.outside).count());
    silos.max().unwrap_or(1).max(1)
}
