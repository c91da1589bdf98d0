//! Advice for one federation: which strategy serves its members best, and whether any does.
//!
//! A small comparison within a time budget. Learning together has to beat the best that a silo can make
//! alone: the local model that it would serve, or a constant. What looks best among several strategies
//! looks better than it is, so the way, and what it has to beat, are chosen on one half of the seeds, and the
//! gain is measured on the other.

mod cautions;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use methods::strategy::{Names, build};
use methods::{State, Strategy};
use serde::Serialize;
use task::{ModelConfig, loss::RegressionLoss, metrics::MetricName};
use toml::{Table, Value};

use super::best_of::half;
use super::choices::Choices;
use super::comparison::{Comparison, ComparisonRow, is_loss};
use super::differences::{ComparedPair, MeanDifference, NoInterval};
use super::entry::{CONSTANT, ExperimentEntry, LOCAL, OWN};
use super::error::ExperimentError;
use super::experiment::Experiment;
use super::kept::RecentValues;
use super::result::{SiloModel, UnitResult};
use super::row_draws::SharedDraws;
use super::run::{CompareOptions, rows_of, run_units};
use super::steps::{STEPS, StepTime};
use crate::statistic::{BY_CHANCE, Interval};
use cautions::{cautions, table_of};
use simulations::scenario::Scenario;

pub use cautions::AdviceCaution;

/// Strategies that are tried beside the scenario's own and the references, the simplest first, each
/// with an option. Those that the model does not allow are left out.
const CANDIDATES: &[(&str, Option<(&str, &str)>)] = &[
    ("ditto", None),
    (MIXED, None),
    ("hcct", Some(("groups", "auto"))),
    ("cs-rcfl", Some(("coalitions", "auto"))),
];
/// The one of the candidates that is fitted in rounds of its own.
const MIXED: &str = "hierarchical";
/// Most rounds of it.
const MIXED_ROUNDS: i64 = 60;
/// A model whose loss it does not have.
const ABSOLUTE: ModelConfig = ModelConfig::Linear {
    loss: RegressionLoss::Absolute,
};
/// Fewest complete seeds that confirm: with fewer, nobody knows how much of a gain is luck.
pub const CONFIRMING: usize = 3;
/// With at least so many coalitions for each member, hardly anybody shares a model.
const APART: f64 = 0.75;

/// The answer to whether members are to learn together.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdviceVerdict {
    /// Learn together: clearly better than what silos make alone.
    Together,
    /// Stay alone: not clearly better.
    Alone,
    /// That is not known.
    NotKnown {
        /// Reason.
        why: WhyNotKnown,
        /// Minutes that it takes, about, where more time helps and it is known how much.
        minutes: Option<f64>,
    },
}

/// Reason for which it is not known if members are to learn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyNotKnown {
    /// So many seeds confirm the gain, fewer than [`CONFIRMING`].
    FewSeeds(usize),
    /// The gain has no interval.
    NoInterval(NoInterval),
    /// No strategy gave a model that can be compared.
    NotCompared,
    /// The local model could not be tuned at this many silos, so that none is left to compare with.
    Untuned(usize),
}

/// Advice for the members of a federation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The answer.
    pub verdict: AdviceVerdict,
    /// Label of what silos make alone, and what learning together has to beat.
    pub alone: String,
    /// True if a constant is as good as the models that silos fit alone, or within chance of them: what they fit
    /// has learned nothing.
    pub unlearned: bool,
    /// Mean gain of the way that looked best over that, per silo, on the seeds that did not choose it.
    pub gain: Option<Interval>,
    /// Label of the way that looked best on the seeds that choose.
    pub best: Option<String>,
    /// Ways in which nearly every silo is a coalition of its own: that is learning alone.
    pub apart: Vec<String>,
    /// Members whose own gain is clear, members in all, and members that are clearly worse off.
    pub members: (usize, usize, usize),
    /// Names of the members that are clearly worse off: they should stay alone.
    pub stay_alone: Vec<String>,
    /// Expected number of members that would be clearly worse off by chance.
    pub by_chance: f64,
    /// Bytes that a member sends in a federation of this length, on average.
    pub bytes: f64,
    /// Data that leave a silo, as clauses.
    pub exposure: Vec<String>,
    /// Cautions about the numbers.
    pub cautions: Vec<AdviceCaution>,
    /// Seeds for which every strategy was measured.
    pub seeds: usize,
    /// Settings tried for each strategy.
    pub points: usize,
    /// True if time was over before the comparison was complete; the advice is then by the runs that had
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
        let choices = Choices::default();
        // A scenario, where an experiment has the same name.
        let mut scenarios = simulations::scenario::BUILT_IN.iter();
        let mut experiment = match scenarios.find(|(own, _)| *own == name) {
            Some(scenario) => Self::built_in(scenario, &choices)?,
            None => Self::load(name, &choices)?,
        };
        if !experiment.of_scenario {
            return Err(experiment.fault(
                "advice is for a scenario, and this is an experiment: `rota compare` compares what it names",
            ));
        }
        // The share of right classes, or an area under a curve, tells too little with few rows.
        experiment.metrics.retain(|&metric| is_loss(metric));
        // The time is better spent on seeds. What is not finished is said.
        experiment.served = false;
        experiment.tune.widen = 0;
        for (name, option) in CANDIDATES {
            if experiment.entries.iter().any(|entry| entry.name() == *name) {
                continue;
            }
            let mut strategy = Table::new();
            strategy.insert("name".into(), (*name).into());
            strategy.extend(option.map(|(key, value)| (key.to_owned(), Value::from(value))));
            experiment
                .entries
                .push(ExperimentEntry::plain(name, strategy));
            if *name == MIXED {
                experiment.suit_mixed();
            }
            // For some the scenario has too few rounds, or rounds that they do not allow.
            experiment.keep_last_if_allowed();
        }
        Ok(experiment)
    }

    /// Settings of the last strategy, a mixed model. Its fits are exact, and it ends by itself.
    fn suit_mixed(&mut self) {
        let masked = self.is_masked();
        let absolute = table_of(self).is_some_and(|task| task.model == ABSOLUTE);
        if absolute {
            // Its loss is another one, and is compared with none.
            self.metrics.retain(|&metric| metric != MetricName::Loss);
        }
        let metric = self.metrics.first().copied().unwrap_or(MetricName::Mae);
        let Some(last) = self.entries.last_mut() else {
            return;
        };
        last.fixed = true;
        last.set
            .insert("rounds".into(), Value::Integer(MIXED_ROUNDS));
        if masked {
            last.strategy.insert("exponent".into(), Value::Integer(0));
        }
        // It has no absolute loss, and is measured like the others.
        if absolute {
            for (key, value) in [("model.linear.loss", "squared"), ("metric", metric.key())] {
                last.set.insert(format!("task.table.{key}"), value.into());
            }
        }
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
    let began = Instant::now();
    let studies = RecentValues::new(2);
    let study = |scenario: &Scenario| studies.get(&rows_of(scenario), || scenario.study(data));
    experiment.leave_out_unable(&study)?;
    experiment.check_members(&study)?;
    // The first step is run to learn how long the others take.
    let until = Some(began + budget);
    (experiment.seeds, experiment.tune.points) = STEPS[0];
    let mut results = run_units(&experiment, options(), until, &mut progress)?;
    let timed = |experiment: &Experiment, ended: &[UnitResult], took: Duration| StepTime {
        step: (experiment.seeds, experiment.tune.points),
        runs: (experiment.units().len(), ended.len()),
        took,
    };
    let first = timed(&experiment, &results, began.elapsed());
    let mut second = None;
    if let Some((seeds, points)) = first.next(budget) {
        let mut larger = experiment.clone();
        (larger.seeds, larger.tune.points) = (seeds, points);
        let more = run_units(&larger, options(), until, &mut progress)?;
        second = Some(timed(&larger, &more, began.elapsed() - first.took));
        // A guess of how long it takes may be wrong: what is complete counts.
        if complete(&larger, &more) >= complete(&experiment, &results) {
            (experiment, results) = (larger, more);
        }
    }
    let took = began.elapsed();
    let enough = StepTime::enough(&first, second.as_ref(), budget);
    Ok(Advice::of(&experiment, results, took, enough))
}

/// Seeds, from the first on, for which every strategy has a result.
pub(super) fn complete(experiment: &Experiment, results: &[UnitResult]) -> usize {
    let ways = experiment.entries.len();
    let of = |seed: usize| results.iter().filter(|one| one.unit.seed == seed).count();
    (0..experiment.seeds)
        .take_while(|&seed| of(seed) >= ways)
        .count()
}

impl Advice {
    /// `minutes` are those in which a comparison confirms anything, about, where that is known.
    fn of(
        experiment: &Experiment,
        mut results: Vec<UnitResult>,
        took: Duration,
        minutes: Option<f64>,
    ) -> Self {
        let (runs, seeds) = (experiment.units().len(), complete(experiment, &results));
        let cut_short = results.len() < runs;
        // Seeds that some strategies lack would favour others.
        if seeds > 1 {
            results.retain(|one| one.unit.seed < seeds);
        }
        let comparison = Comparison::of(experiment, results.clone(), took.as_secs_f64());
        let metric = comparison.metrics[0];
        // The seeds that choose, those that confirm, or both.
        let of_seeds = |label: &str, confirms: &[bool]| -> Vec<&UnitResult> {
            let own = results.iter().filter(|one| one.unit.strategy == label);
            let own: Vec<&UnitResult> = own.collect();
            let halves = confirms.iter().flat_map(|&odd| half(&own, odd));
            let mut own: Vec<&UnitResult> = halves.collect();
            own.sort_by_key(|one| one.unit.seed);
            own
        };
        let draws = SharedDraws::default();
        let difference = |label: &str, over: &str, confirms: &[bool]| -> Option<MeanDifference> {
            let (ours, theirs) = (of_seeds(label, confirms), of_seeds(over, confirms));
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
        // The best of what silos make alone, as in a table of a comparison, and a constant.
        let over_own = |label: &str| difference(label, OWN, &[false])?.interval();
        let constant = over_own(CONSTANT);
        let others = [(LOCAL, over_own(LOCAL)), (CONSTANT, constant)];
        let better = others.into_iter();
        let better =
            better.filter_map(|(label, one)| Some((label, one.filter(|one| one.by > 0.0)?)));
        let best = better.max_by(|a, b| a.1.by.total_cmp(&b.1.by));
        let alone = best.map_or(OWN, |(label, _)| label);
        let unlearned = seeds > 0 && constant.is_some_and(|constant| constant.high >= 0.0);
        let learned = experiment.entries.iter();
        let learned = learned.filter(|entry| !entry.is_reference() && entry.name() != LOCAL);
        let (apart, candidates): (Vec<_>, Vec<_>) = learned.partition(|entry| {
            let own = results.iter();
            is_apart(own.filter(|one| one.unit.strategy == entry.label))
        });
        let choosing: Vec<(&str, MeanDifference)> = candidates
            .iter()
            .filter_map(|entry| Some((&*entry.label, difference(&entry.label, alone, &[false])?)))
            .collect();
        let gains = choosing.iter();
        let gains = gains.filter_map(|(label, one)| Some((*label, one.interval()?)));
        let best = gains.max_by(|a, b| a.1.by.total_cmp(&b.1.by));
        // The confirming half decides whether it is better than being alone.
        let confirmed = best.and_then(|(label, _)| difference(label, alone, &[true]));
        let gain = confirmed.as_ref().and_then(MeanDifference::interval);
        let label = best.map(|(label, _)| label.to_owned());
        let rows = &comparison.variants[0].strategies;
        let members = comparison.variants[0].members.len();
        let untuned = untuned(&results).filter(|_| alone == OWN);
        let verdict = if seeds / 2 < CONFIRMING {
            let why = WhyNotKnown::FewSeeds(seeds / 2);
            AdviceVerdict::NotKnown { why, minutes }
        } else if candidates.is_empty() && !apart.is_empty() {
            AdviceVerdict::Alone
        } else {
            // Where nothing has an interval, the first one says why.
            let judged = match label {
                Some(_) => confirmed.as_ref(),
                None => choosing.first().map(|(_, one)| one),
            };
            verdict(judged, untuned)
        };
        let row = rows.iter().find(|row| Some(&row.label) == label.as_ref());
        // By all seeds. The table compares nobody with a constant.
        let whole = best.and_then(|(label, _)| difference(label, alone, &[false, true]));
        let tested = whole
            .as_ref()
            .map_or(0, |one| one.wins + one.ties + one.losses);
        Self {
            verdict,
            alone: alone.into(),
            unlearned,
            gain,
            best: label.clone(),
            apart: apart.iter().map(|entry| entry.label.clone()).collect(),
            members: whole
                .as_ref()
                .map_or((0, members, 0), |one| (one.wins, members, one.losses)),
            stay_alone: whole.map_or_else(Vec::new, |one| one.losers),
            by_chance: BY_CHANCE * tested as f64,
            bytes: row.map_or(0.0, |row| sent(row) / members.max(1) as f64),
            exposure: label.map_or_else(Vec::new, |label| exposure(experiment, &label, &results)),
            cautions: cautions(experiment, metric),
            seeds,
            points: experiment.tune.points,
            cut_short,
            comparison,
        }
    }
}

/// The answer that a gain on enough confirming seeds gives; where there is none, on the seeds that choose.
fn verdict(judged: Option<&MeanDifference>, untuned: Option<usize>) -> AdviceVerdict {
    let not_known = |why| AdviceVerdict::NotKnown { why, minutes: None };
    let Some(difference) = judged else {
        // Where no silo could tune its model, there is nothing to compare with.
        return not_known(untuned.map_or(WhyNotKnown::NotCompared, WhyNotKnown::Untuned));
    };
    match difference.interval() {
        None => {
            let reason = difference.no_interval;
            not_known(reason.map_or(WhyNotKnown::NotCompared, WhyNotKnown::NoInterval))
        }
        _ if difference.seeds < CONFIRMING => not_known(WhyNotKnown::FewSeeds(difference.seeds)),
        Some(gain) if gain.low > 0.0 => AdviceVerdict::Together,
        Some(_) => AdviceVerdict::Alone,
    }
}

/// Returns the number of members that could not tune the model that they make alone, in the seed where these
/// are most; `None` where all could.
fn untuned(results: &[UnitResult]) -> Option<usize> {
    let members = |one: &UnitResult| {
        let own = one
            .scope(false)
            .filter(|silo| one.untuned.contains(&silo.name));
        own.count()
    };
    results.iter().map(members).max().filter(|&most| most > 0)
}

/// True where nearly every member was a coalition of its own at the end, in most of these runs.
fn is_apart<'a>(results: impl Iterator<Item = &'a UnitResult>) -> bool {
    let (mut apart, mut all) = (0, 0);
    for last in results.filter_map(|one| one.curve.last()) {
        let coalitions: BTreeSet<u32> = last.coalitions.iter().flatten().copied().collect();
        let members = last.coalitions.iter().flatten().count();
        all += 1;
        apart += usize::from(are_apart(coalitions.len(), members));
    }
    2 * apart > all
}

/// Returns whether nearly every one of these members is a coalition of its own: that is learning alone.
pub fn are_apart(coalitions: usize, members: usize) -> bool {
    members > 1 && coalitions as f64 >= APART * members as f64
}

fn sent(row: &ComparisonRow) -> f64 {
    row.to_best.map_or(0.0, |best| best.bytes.mean)
}

/// Returns what leaves a silo under a strategy, by its contract.
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
    let seen = match experiment.is_masked() {
        true => "of which members can read the sum over all silos",
        false => "which all members can read",
    };
    if strategy.name() == MIXED {
        return vec![
            format!(
                "in every round sums over its rows, {seen}: of products of columns and outcome, or for classes the \
                 gradient and the curvature of their likelihood (docs/methods/hierarchical.md)"
            ),
            "the number of its training rows".into(),
        ];
    }
    let mut clauses = vec![format!(
        "a model of {} numbers in every round, {seen}",
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
            "its losses of all members' models, from which its local model can be guessed".into(),
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

#[cfg(test)]
mod tests;
