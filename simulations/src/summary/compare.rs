//! Compares the measured models of all silos: second metric, models of no use, gains.

use std::collections::BTreeMap;
use std::sync::Arc;

use learn::{Metric, MetricName, Study};
use methods::learner::RowResults;

use super::classes::class_results;
use super::gains::{Compared as Comparing, gains};
use super::measured::{Constant, Measured, why_unusable};
use super::results::{MeanGain, ModelKind, SecondMetric, Unusable};
use super::silos::SiloResult;
use super::{MetricInfo, SiloInfo};
use crate::error::RunError;
use crate::pool::Threads;
use crate::scenario::Scenario;

/// The compared silos, and what follows for the federation.
pub(super) struct Compared {
    pub(super) silos: Vec<SiloInfo>,
    pub(super) second_metric: Option<MetricInfo>,
    pub(super) gains: Vec<MeanGain>,
    pub(super) unusable: Vec<Unusable>,
    pub(super) usable: bool,
}

/// Compares. `trainings` says how often a member trained.
pub(super) fn compare(
    scenario: &Scenario,
    study: &Study,
    trainings: impl Fn(usize) -> usize,
    results: Vec<SiloResult>,
    threads: &Arc<Threads>,
) -> Result<Compared, RunError> {
    let metric = &study.metric;
    let second_metric = second(metric, study.classes.len(), &results);
    let second = second_metric.as_ref().map(|second| second.name.as_str());
    let members = results.iter().filter(|one| one.member.is_some()).count();
    let constants = constants(&results, members);
    let reasons: Vec<Vec<(ModelKind, String)>> = results
        .iter()
        .zip(&constants)
        .map(|(result, constant)| no_use(result, metric.name, constant.as_ref(), &constants))
        .collect();
    let kinds = |reasons: &Vec<(ModelKind, String)>| -> Vec<ModelKind> {
        reasons.iter().map(|(kind, _)| *kind).collect()
    };
    let rows: Vec<_> = results
        .iter()
        .zip(&reasons)
        .map(|(result, reasons)| result.rows(&kinds(reasons)))
        .collect();
    let what = Comparing {
        metric: metric.name.key(),
        higher_is_better: metric.name.higher_is_better(),
        seed: scenario.seed,
        members,
    };
    let gains = gains(what, &rows, threads).map_err(RunError::Setup)?;
    let usable = usable(&results[..members], &reasons);
    let mut unusable = Vec::new();
    for (result, reasons) in results.iter().zip(reasons) {
        unusable.extend(reasons.into_iter().map(|(model, reason)| Unusable {
            silo: result.name.clone(),
            model,
            reason,
        }));
    }
    let infos = results.into_iter().zip(gains.silos);
    let infos = infos.map(|(result, gains)| {
        let value = |model| result.value(model, metric.name.key());
        let second = |model| result.value(model, second?);
        let rows = |model: ModelKind| -> Option<&RowResults> {
            result.models.get(&model)?.as_ref().ok()?.rows.as_deref()
        };
        let (local, coalition) = (rows(ModelKind::Local), rows(ModelKind::Coalition));
        SiloInfo {
            outside: result.member.is_none(),
            samples: result.rows.train,
            test_samples: result.rows.test,
            trainings: result.member.map_or(0, &trainings),
            local: value(ModelKind::Local),
            global: value(ModelKind::Global),
            coalition: value(ModelKind::Coalition),
            coalition_index: result.coalition_index,
            model: result.model.map(|hash| format!("{hash:#}")),
            pooled: value(ModelKind::Pooled),
            second: SecondMetric {
                local: second(ModelKind::Local),
                global: second(ModelKind::Global),
                coalition: second(ModelKind::Coalition),
            },
            gains,
            classes: coalition.and_then(|adopted| class_results(adopted, local)),
            name: result.name,
            served: result.served,
        }
    });
    Ok(Compared {
        silos: infos.collect(),
        second_metric,
        gains: gains.means,
        unusable,
        usable,
    })
}

/// A second metric beside the one that is compared, where the models have one.
fn second(metric: &Metric, classes: usize, results: &[SiloResult]) -> Option<MetricInfo> {
    use MetricName::{
        Accuracy, BalancedAccuracy, Brier, CalibrationError, Dice, LogLoss, Loss, Mae, Mse, RocAuc,
    };
    let candidates: &[&str] = match metric.name {
        Mae => &["rmse"],
        Mse => &["mae"],
        Accuracy if classes == 2 => &["roc-auc", "log-loss"],
        Accuracy => &["log-loss"],
        BalancedAccuracy | LogLoss | Brier | CalibrationError | RocAuc => &["accuracy"],
        Dice => &["loss"],
        Loss => &["mae", "accuracy", "dice"],
    };
    let measured = |key: &&&str| {
        let kinds = [ModelKind::Local, ModelKind::Coalition];
        let mut all = results
            .iter()
            .flat_map(|one| kinds.map(|kind| one.value(kind, key)));
        all.any(|value| value.is_some())
    };
    let name = *candidates.iter().find(measured)?;
    let squared = metric.unit.strip_prefix('(');
    let unit = match (
        metric.name,
        squared.and_then(|unit| unit.strip_suffix(")²")),
    ) {
        (Mse, Some(unit)) => unit.to_owned(),
        (Mae, _) => metric.unit.clone(),
        _ => String::new(),
    };
    Some(MetricInfo {
        name: name.into(),
        unit,
        higher_is_better: ["accuracy", "roc-auc", "dice"].contains(&name),
    })
}

/// What a constant prediction, the mean target of all members' training rows, gives at every silo.
fn constants(results: &[SiloResult], members: usize) -> Vec<Option<Constant>> {
    let mut total: Option<(Vec<f64>, f64)> = None;
    for targets in results[..members]
        .iter()
        .filter_map(|one| one.targets.as_ref())
    {
        let (sum, weight) = total.get_or_insert_with(|| (vec![0.0; targets.mean.len()], 0.0));
        if sum.len() != targets.mean.len() {
            return results.iter().map(|_| None).collect();
        }
        let each = sum.iter_mut().zip(&targets.mean);
        each.for_each(|(sum, mean)| *sum += targets.weight * mean);
        *weight += targets.weight;
    }
    let mean = total
        .map(|(sum, weight)| -> Vec<f64> { sum.into_iter().map(|sum| sum / weight).collect() });
    let constant = |one: &SiloResult| one.constant(mean.as_ref()?);
    results.iter().map(constant).collect()
}

/// The models of a silo that are of no use there, with the reasons.
fn no_use(
    result: &SiloResult,
    metric: MetricName,
    constant: Option<&Constant>,
    all: &[Option<Constant>],
) -> Vec<(ModelKind, String)> {
    let baseline = |key: &str| constant?.lenient(all, key);
    let why = |(kind, model): (&ModelKind, &Result<Measured, String>)| {
        let reason = match model {
            Ok(measured) => why_unusable(&measured.metrics, metric, baseline)?,
            Err(error) => error.clone(),
        };
        Some((*kind, reason))
    };
    result.models.iter().filter_map(why).collect()
}

/// Whether the federation's models are of use: every coalition's at more than half of its members.
fn usable(members: &[SiloResult], reasons: &[Vec<(ModelKind, String)>]) -> bool {
    let mut coalitions = BTreeMap::<u32, (usize, usize)>::new();
    for (result, reasons) in members.iter().zip(reasons) {
        if let Some(coalition) = result.coalition_index {
            let (all, bad) = coalitions.entry(coalition).or_default();
            *all += 1;
            *bad += usize::from(
                reasons
                    .iter()
                    .any(|(kind, _)| *kind == ModelKind::Coalition),
            );
        }
    }
    coalitions.values().all(|(all, bad)| 2 * bad < *all)
}
