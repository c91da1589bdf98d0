//! The result of an experiment, as one document that tables, pages and files are made from.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use task::metrics::MetricName;

use super::differences::MeanDifference;
use super::entry::ExperimentEntry;
use super::experiment::Experiment;
use super::file::Tune;
use super::paper_table::PaperTable;
use super::result::{ExperimentUnit, UnitResult};
use super::spread::Spread;
use crate::statistic::Interval;
use crate::summary::NoiseBound;

/// Fewest test rows, or persons, of a subgroup in every seed: results of smaller subgroups are suppressed.
pub const LEAST_ROWS: usize = 10;

/// The result of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the experiment.
    pub experiment: String,
    /// Purpose of the experiment.
    pub description: String,
    /// The program's version.
    pub version: &'static str,
    /// True if this is the experiment's reduced form, which is not to be quoted.
    pub quick: bool,
    /// Number of seeds.
    pub seeds: usize,
    /// Choice of settings.
    pub tune: Tune,
    /// The scenario that all strategies share.
    pub scenario: Value,
    /// The metrics, the most important first.
    pub metrics: Vec<MetricName>,
    /// The kinds of network that federations were trained over, by name: `"direct"`, without messages, or
    /// `"virtual"` where faults, links or times of work are asked for.
    pub meshes: BTreeSet<&'static str>,
    /// A table for every variant.
    pub variants: Vec<VariantTable>,
    /// Runs without a result: another part's, or not done yet.
    pub missing: Vec<ExperimentUnit>,
    /// Wall-clock seconds of this start.
    pub seconds: f64,
}

/// The table of one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantTable {
    /// Name of the variant; empty where there is one only.
    pub name: String,
    /// Names of the members of the first seed.
    pub members: Vec<String>,
    /// Names of the unseen silos.
    #[serde(rename = "unseen")]
    pub outside: Vec<String>,
    /// Test rows of the members, and of the unseen silos, on average over seeds.
    pub rows: (f64, f64),
    /// True if test rows are drawn in groups, such as all visits of a person (`split.group`).
    #[serde(skip_serializing_if = "is_false")]
    pub grouped: bool,
    /// Findings in the data of the first seed, in sentences without a full stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The strategies.
    pub strategies: Vec<ComparisonRow>,
    /// Label of the reference that counts: of the models that silos make alone (`own-fit`, `local`) those with the best
    /// mean over the members; where there are none, the first reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<String>,
    /// The best of several strategies, on seeds that did not choose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<BestOf>,
    /// Figures of papers for the same; of built-in experiments, not in their reduced form.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub papers: Vec<PaperTable>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The best strategy on some seeds, on others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BestOf {
    /// Its label.
    pub label: String,
    /// Number of strategies that were compared, without references.
    pub of: usize,
    /// Label of the reference that it is compared with.
    pub over: String,
    /// True if the unseen silos are compared, because members have no test rows.
    #[serde(rename = "unseen")]
    pub outside: bool,
    /// Its gain on the seeds that chose it.
    pub chosen: Interval,
    /// Seeds that did not choose it, and have its gain.
    pub seeds: usize,
    /// Its gain on these.
    pub confirmed: Option<Interval>,
}

/// A metric of the members, or of the unseen silos.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricScope {
    /// The mean over silos; for metrics that single silos may lack, over those that have it.
    pub silos: Option<Spread>,
    /// The metric over the union of all rows.
    pub rows: Option<Spread>,
    /// The worst silo.
    pub worst: Option<Spread>,
    /// Distance of silos from each other: the standard deviation over silos, within a seed. `None` where no
    /// seed has two silos with a value.
    pub apart: Option<Spread>,
    /// The mean over silos after the round that is best on test rows, which nobody knows beforehand.
    pub best: Option<Spread>,
    /// The metric by subgroup of the rows, over the union of silos; empty where rows have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subgroups: Vec<SubgroupResult>,
    /// The best subgroup's value minus the worst one's, without sign; of those that are not suppressed,
    /// if there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<Spread>,
}

/// A metric on the rows of one subgroup.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SubgroupResult {
    /// Name of the subgroup.
    pub name: String,
    /// Test rows of it, on average over seeds; `None` where a seed has fewer than [`LEAST_ROWS`] rows, or persons.
    pub rows: Option<f64>,
    /// The metric over them; `None`, too, where a seed has fewer.
    pub value: Option<Spread>,
}

/// One metric of a strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MetricResult {
    /// The metric.
    pub metric: MetricName,
    /// Of the members.
    pub inside: Option<MetricScope>,
    /// Of the unseen silos.
    #[serde(rename = "unseen")]
    pub outside: Option<MetricScope>,
}

impl MetricResult {
    /// Of the unseen silos, or of the members.
    pub fn scope(&self, outside: bool) -> Option<&MetricScope> {
        if outside { &self.outside } else { &self.inside }.as_ref()
    }
}

/// Difference of a strategy and a reference, in the most important metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Against {
    /// Label of the reference.
    pub over: String,
    /// For the members.
    pub inside: Option<MeanDifference>,
    /// For the unseen silos.
    #[serde(rename = "unseen")]
    pub outside: Option<MeanDifference>,
}

impl Against {
    /// For the unseen silos, or for the members.
    pub fn difference(&self, outside: bool) -> Option<&MeanDifference> {
        if outside { &self.outside } else { &self.inside }.as_ref()
    }
}

/// Settings that were chosen, and by how many seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChosenSettings {
    /// The settings, by key.
    pub settings: BTreeMap<String, Value>,
    /// Number of seeds.
    pub seeds: usize,
}

/// Settings that were tried, with their mean result over the seeds that tried them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TriedSettings {
    /// The settings, by key.
    pub settings: BTreeMap<String, Value>,
    /// Mean value of the choosing metric on validation rows.
    pub value: Option<f64>,
    /// Mean of the best round.
    pub round: Option<f64>,
    /// Number of seeds in which it failed.
    pub failed: usize,
}

/// A point of the mean course over rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The round.
    pub round: u64,
    /// Bytes that all members had sent.
    pub bytes: f64,
    /// Wall-clock seconds until then, where there were rounds.
    pub seconds: Option<f64>,
    /// Mean over members of the most important metric, on test rows.
    pub inside: Option<f64>,
    /// Mean over the unseen silos.
    #[serde(rename = "unseen")]
    pub outside: Option<f64>,
}

/// The cost of getting to a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostToReach {
    /// Rounds.
    pub rounds: Spread,
    /// Bytes that all members sent.
    pub bytes: Spread,
    /// Numbers that a member sent as models: trained parameters times rounds of training.
    pub parameters: Spread,
}

/// Models that the silos would serve: after a choice, on its own rows, each serves the strategy's model or one
/// that it makes alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServedSummary {
    /// The metrics of the served models.
    pub metrics: Vec<MetricResult>,
    /// The metrics of the best models that silos make alone, chosen by cross-validation.
    #[serde(rename = "local")]
    pub own: Vec<MetricResult>,
    /// Gain of the served models over these, for the members.
    pub inside: Option<ServedGain>,
    /// Gain of the served models over these, for the unseen silos.
    #[serde(rename = "unseen")]
    pub outside: Option<ServedGain>,
    /// Gains over the references.
    pub against: Vec<Against>,
    /// Members that serve each kind of model, on average over seeds, by its name.
    pub candidates: BTreeMap<String, f64>,
    /// Wall-clock seconds, without what another strategy had made before.
    pub seconds: f64,
}

/// Gain of served models over those that silos make alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServedGain {
    /// The difference. Silos that lose are those that are harmed.
    #[serde(flatten)]
    pub difference: MeanDifference,
    /// Silos, of those with enough rows to tell, that serve another model than their own in a seed at least.
    #[serde(rename = "not_local")]
    pub not_own: usize,
    /// Expected number of these that would seem harmed if all models were equally good.
    pub by_chance: f64,
}

/// One strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// Label of the strategy.
    pub label: String,
    /// Name of the strategy.
    pub strategy: String,
    /// Number of seeds with a result.
    pub seeds: usize,
    /// Metrics of the models learned in this way.
    pub metrics: Vec<MetricResult>,
    /// Differences between these models and the references.
    pub against: Vec<Against>,
    /// Models that the silos would serve, where they were measured.
    pub served: Option<ServedSummary>,
    /// Settings that were chosen, the most frequent first.
    pub chosen: Vec<ChosenSettings>,
    /// Settings that were tried.
    pub tried: Vec<TriedSettings>,
    /// Trainings of single silos for the choice, on average over the seeds that chose.
    pub tuning: f64,
    /// Cost of getting to the chosen round, the best one on validation rows.
    pub to_best: Option<CostToReach>,
    /// Cost of getting to the first round whose value on validation rows is within 1 % of the best one's.
    pub to_near: Option<CostToReach>,
    /// Cost of all rounds.
    pub to_end: Option<CostToReach>,
    /// The round that is best on test rows.
    pub best_round: Option<Spread>,
    /// Trained parameters of a model.
    pub parameters: u64,
    /// Wall-clock seconds of the training that is measured; of the choice, over the seeds that chose.
    pub seconds: (f64, f64),
    /// Number of coalitions after the chosen round.
    pub coalitions: Option<Spread>,
    /// Rounds, up to the chosen one, in which the grouping changed.
    pub changes: Option<Spread>,
    /// Agreement of the groupings of different seeds: the mean Rand index over pairs of seeds, 1 where
    /// all are the same; `None` for a single seed or silos that differ.
    pub stability: Option<f64>,
    /// The same as adjusted Rand index: 1 where all groupings are the same, about 0 where they are alike
    /// by chance only.
    pub agreement: Option<f64>,
    /// Numbers that the strategy kept after the chosen round.
    pub memory: BTreeMap<String, Spread>,
    /// Share of the seeds in which two members are in one coalition after the chosen round, member by
    /// member; `None` where there is one coalition or members differ between seeds.
    pub together: Option<Vec<Vec<f64>>>,
    /// The graph of members that the strategy kept in the first seed: pairs of members.
    pub graph: Option<Vec<[u32; 2]>>,
    /// Bound by the noise of its rounds; `None` without noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseBound>,
    /// Reasons for which a comparison with it is not finished, as clauses: the best round is the last, or a
    /// chosen setting is at the edge of the tried ones.
    pub unfinished: Vec<String>,
    /// The mean course over rounds.
    pub curve: Vec<CurvePoint>,
    /// Seeds that failed, with the reason.
    pub failed: Vec<(usize, String)>,
}

impl Comparison {
    pub(super) fn of(experiment: &Experiment, results: Vec<UnitResult>, seconds: f64) -> Self {
        let mut metrics = experiment.metrics.clone();
        // Beside a scenario's own metric that is no loss, such as an area under a curve, stands the loss.
        if metrics.is_empty() || experiment.of_scenario && !metrics.iter().copied().any(is_loss) {
            metrics.push(own_metric(&results));
        }
        let have: BTreeSet<&ExperimentUnit> = results.iter().map(|result| &result.unit).collect();
        let missing = experiment
            .units()
            .into_iter()
            .filter(|unit| !have.contains(unit))
            .collect();
        let variants = experiment.variants.iter().map(|variant| {
            let of = |label: &str| -> Vec<&UnitResult> {
                let mut own: Vec<_> = results
                    .iter()
                    .filter(|one| one.unit.variant == variant.name && one.unit.strategy == label)
                    .collect();
                own.sort_by_key(|one| one.unit.seed);
                own
            };
            let all: Vec<(&ExperimentEntry, Vec<&UnitResult>)> = experiment
                .entries
                .iter()
                .map(|entry| (entry, of(&entry.label)))
                .collect();
            let mut table = VariantTable::of(experiment, variant, &metrics, &all);
            table.notes.extend(experiment.remarks(variant));
            table.notes.extend(experiment.left_out.iter().cloned());
            if !experiment.quick {
                table.add_papers(&experiment.name, metrics[0]);
            }
            table
        });
        Self {
            experiment: experiment.name.clone(),
            description: experiment.description.clone(),
            version: env!("CARGO_PKG_VERSION"),
            quick: experiment.quick,
            seeds: experiment.seeds,
            tune: experiment.tune.clone(),
            scenario: serde_json::to_value(experiment.settings()).unwrap_or_default(),
            variants: variants.collect(),
            meshes: experiment.meshes(),
            metrics,
            missing,
            seconds,
        }
    }

    /// Seeds of strategies that failed.
    pub fn failures(&self) -> usize {
        let rows = self.variants.iter().flat_map(|variant| &variant.strategies);
        rows.map(|row| row.failed.len()).sum()
    }
}

/// The metric of an experiment that names none, and whose task agrees on none.
fn own_metric(results: &[UnitResult]) -> MetricName {
    let silo = results.iter().flat_map(|result| &result.silos).next();
    let has = |name: MetricName| silo.is_some_and(|silo| silo.values.contains_key(name.key()));
    let candidates = [MetricName::LogLoss, MetricName::Mae, MetricName::Dice];
    candidates
        .into_iter()
        .find(|&name| has(name))
        .unwrap_or(MetricName::Loss)
}

/// Returns whether a metric is the mean over rows of a loss: with few rows it tells more than others do.
pub(super) fn is_loss(metric: MetricName) -> bool {
    !matches!(
        metric,
        MetricName::Accuracy
            | MetricName::BalancedAccuracy
            | MetricName::CalibrationError
            | MetricName::RocAuc
            | MetricName::Concordance
            | MetricName::IntegratedBrier
            | MetricName::CalibrationAtTime
    )
}
