//! Cautions about advice: where the scenario was read otherwise than it says, and what the numbers do not show.

use serde::Serialize;
use task::data::Standardise;
use task::metrics::MetricName;
use task::{TableTask, TaskConfig};

use super::super::experiment::Experiment;
use super::super::file::RunSettings;
use super::{ABSOLUTE, MIXED};

/// One of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdviceCaution {
    /// The metric of the scenario is no loss of single rows, and others decided.
    AnotherMetric(MetricName),
    /// The mixed model was fitted by squared errors, where the scenario has absolute ones.
    SquaredErrors,
    /// The mixed model takes rows of one person as independent.
    RowsOfPersons,
    /// Every seed holds out the same rows.
    SameRows,
    /// Every silo scales its columns by its own rows.
    OwnScales,
}

/// The table of a scenario that advice is for; `None` for other data.
pub(super) fn table_of(experiment: &Experiment) -> Option<TableTask> {
    let entry = experiment.entries.first()?;
    let first = experiment.scenario(&experiment.variants[0], entry, &RunSettings::new(), 0);
    match first.ok()?.task {
        TaskConfig::Table(task) => Some(*task),
        _ => None,
    }
}

/// Everything of the kind about advice by this metric, in the order in which it is said.
pub(super) fn cautions(experiment: &Experiment, judged_by: MetricName) -> Vec<AdviceCaution> {
    let Some(task) = table_of(experiment) else {
        return Vec::new();
    };
    // The mean absolute error is an absolute loss in the target's unit.
    let another = task
        .metric
        .filter(|&metric| metric != judged_by && metric != MetricName::Loss);
    let mixed = experiment.entries.iter().any(|entry| entry.name() == MIXED);
    let split = &task.split;
    let same_rows = split.column.is_some() || split.test_from.is_some() || split.seed.is_some();
    let more = [
        (
            mixed && task.model == ABSOLUTE,
            AdviceCaution::SquaredErrors,
        ),
        (mixed && split.group.is_some(), AdviceCaution::RowsOfPersons),
        (same_rows, AdviceCaution::SameRows),
        (
            task.scaling() == Standardise::Silo,
            AdviceCaution::OwnScales,
        ),
    ];
    let more = more.into_iter().filter(|(applies, _)| *applies);
    let another = another.map(AdviceCaution::AnotherMetric);
    another
        .into_iter()
        .chain(more.map(|(_, one)| one))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The cautions about advice for this task, judged by this metric, and the metrics that decide.
    fn of(task: &str, judged_by: MetricName) -> (Vec<AdviceCaution>, Vec<MetricName>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known.toml");
        let text = format!(
            "name = \"known\"
            rounds = 2
            [task.table]
            {task}
            [strategy]
            name = \"fedavg\"
            training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.1 }} }}"
        );
        std::fs::write(&file, text).unwrap();
        let experiment = Experiment::for_advice(file.to_str().unwrap()).unwrap();
        let found = cautions(&experiment, judged_by);
        (found, experiment.metrics)
    }

    #[test]
    fn what_was_read_otherwise_is_cautioned() {
        use AdviceCaution::{AnotherMetric, OwnScales, SameRows, SquaredErrors};
        let classes = "data = \"breast-cancer\"\nmodel = \"logistic\"\nstandardise = ";
        let common = format!("{classes}\"federation\"");
        assert_eq!(of(&common, MetricName::LogLoss), (vec![], vec![]));
        let own = of(&format!("{classes}\"silo\""), MetricName::LogLoss);
        assert_eq!(own.0, [OwnScales]);
        // An area under a curve does not decide, and a loss of its own does.
        let curve = of(
            &format!("{common}\nmetric = \"roc-auc\""),
            MetricName::LogLoss,
        );
        assert_eq!(curve, (vec![AnotherMetric(MetricName::RocAuc)], vec![]));
        let brier = of(&format!("{common}\nmetric = \"brier\""), MetricName::Brier);
        assert_eq!(brier, (vec![], vec![MetricName::Brier]));
        let absolute = "data = \"diabetes\"\nmodel = { linear = { loss = \"absolute\" } }\nstandardise = \"federation\"";
        let numbers = of(
            &format!("{absolute}\nsplit = {{ seed = 1 }}"),
            MetricName::Mae,
        );
        assert_eq!(numbers.0, [SquaredErrors, SameRows]);
        // The mixed model's squared loss is not compared with absolute ones.
        let loss = of(&format!("{absolute}\nmetric = \"loss\""), MetricName::Mae);
        assert_eq!(loss, (vec![SquaredErrors], vec![]));
    }
}
