//! Compares the measured models of all silos: second metric, models of no use, gains.

use std::collections::BTreeMap;
use std::sync::Arc;

use learn::Study;
use methods::learner::RowResults;
use methods::serving::{Candidate, Tuned, Way};
use task::{metrics::Metric, metrics::MetricName};

use super::classes::class_results;
use super::gains::{GainSettings as Comparing, gains};
use super::measured::{Constant, HeldOutResults, constants, why_unusable};
use super::results::{
    Gain, Harmed, MeanGain, ModelKind, ModelMean, SecondMetric, Tuning, Unusable,
};
use super::silo_result::SiloResult;
use super::{MetricInfo, SiloInfo};
use crate::statistic::BY_CHANCE;
use simulations::RunError;
use simulations::pool::Threads;
use simulations::scenario::Scenario;

/// The compared silos, and what follows for the federation.
pub(super) struct ComparedSilos {
    pub(super) silos: Vec<SiloInfo>,
    pub(super) second_metric: Option<MetricInfo>,
    pub(super) gains: Vec<MeanGain>,
    pub(super) means: Vec<ModelMean>,
    pub(super) harmed: Option<Harmed>,
    pub(super) tuning: Option<Tuning>,
    pub(super) unusable: Vec<Unusable>,
    pub(super) usable: bool,
}

/// Compares. `trainings` says how often a member trained.
pub(super) fn compare(
    scenario: &Scenario,
    study: &Study,
    trainings: impl Fn(usize) -> usize,
    mut results: Vec<SiloResult>,
    threads: &Arc<Threads>,
) -> Result<ComparedSilos, RunError> {
    let metric = &study.metric;
    let second_metric = second(metric, study.classes.len(), &results);
    let second = second_metric.as_ref().map(|second| second.name.as_str());
    let members = results.iter().filter(|one| one.member.is_some()).count();
    let targets: Vec<_> = results.iter().map(|one| one.targets.as_ref()).collect();
    let constants = constants(&targets, members);
    add_constants(&mut results, &constants);
    let over_all = Constant::over_all(&constants);
    let reasons: Vec<Vec<(ModelKind, String)>> = results
        .iter()
        .zip(&constants)
        .map(|(result, constant)| no_use(result, metric.name, constant.as_ref(), &over_all))
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
    let means = means(&results[..members], &reasons, metric);
    let harmed = harmed(&results[..members], &gains.silos);
    let tuning = tuning(&results[..members]);
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
        let trained = result.member.map_or(0, &trainings);
        info(result, gains, trained, (metric.name.key(), second))
    });
    Ok(ComparedSilos {
        silos: infos.collect(),
        second_metric,
        gains: gains.means,
        means,
        harmed,
        tuning,
        unusable,
        usable,
    })
}

/// Adds the constant as a model of every silo, where there are references.
fn add_constants(results: &mut [SiloResult], constants: &[Option<Constant>]) {
    // It is one of the references; without them, only what they are measured by.
    let referenced = |one: &SiloResult| one.models.contains_key(&ModelKind::Local);
    if results.iter().any(referenced) {
        for (result, constant) in results.iter_mut().zip(constants) {
            let measured = constant
                .as_ref()
                .map(|one| Ok(HeldOutResults::of_metrics(one.metrics.clone())));
            result
                .models
                .extend(measured.map(|one| (ModelKind::Constant, one)));
        }
    }
}

/// A silo in the summary, by the first metric and, where there is one, the second.
fn info(
    result: SiloResult,
    gains: Vec<Gain>,
    trainings: usize,
    (metric, second): (&str, Option<&str>),
) -> SiloInfo {
    let value = |model| result.value(model, metric);
    let second = |model| result.value(model, second?);
    let rows = |model: ModelKind| -> Option<&RowResults> {
        result.models.get(&model)?.as_ref().ok()?.rows.as_deref()
    };
    let (local, coalition) = (rows(ModelKind::Local), rows(ModelKind::Coalition));
    SiloInfo {
        outside: result.member.is_none(),
        samples: result.rows.train,
        test_samples: result.rows.test,
        test_units: local.map(|measured| measured.together().len()),
        trainings,
        local: value(ModelKind::Local),
        global: value(ModelKind::Global),
        global_equal: value(ModelKind::GlobalEqual),
        own_intercept: value(ModelKind::OwnIntercept),
        constant: value(ModelKind::Constant),
        coalition: value(ModelKind::Coalition),
        coalition_index: result.coalition_index,
        model: result.model.map(|hash| format!("{hash:#}")),
        pooled: value(ModelKind::Pooled),
        own: own_metrics(&result),
        second: SecondMetric {
            local: second(ModelKind::Local),
            global: second(ModelKind::Global),
            coalition: second(ModelKind::Coalition),
        },
        gains,
        classes: coalition.and_then(|adopted| class_results(adopted, local)),
        name: result.name,
        group: result.group,
        served: result.served,
        local_tuned: result.tuned,
    }
}

/// The metrics of the silo's adopted model that Rota does not know.
fn own_metrics(result: &SiloResult) -> BTreeMap<String, f64> {
    let adopted = result.models.get(&ModelKind::Coalition);
    let metrics = adopted.and_then(|measured| measured.as_ref().ok());
    let metrics = metrics.into_iter().flat_map(|measured| &measured.metrics);
    let own = metrics.filter(|(name, _)| MetricName::of(name).is_none() && *name != "rmse");
    own.map(|(name, value)| (name.clone(), *value)).collect()
}

/// Those of these metrics that Rota does not know.
pub(super) fn unknown(metrics: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let own = metrics.iter().filter(|(name, value)| {
        MetricName::of(name).is_none() && *name != "rmse" && value.is_finite()
    });
    own.map(|(name, value)| (name.clone(), *value)).collect()
}

/// The means of every model over the members at which it is of use.
fn means(
    members: &[SiloResult],
    reasons: &[Vec<(ModelKind, String)>],
    metric: &Metric,
) -> Vec<ModelMean> {
    let mean = |model: ModelKind| {
        let of_use = members.iter().zip(reasons).filter_map(|(one, reasons)| {
            let usable = reasons.iter().all(|(kind, _)| *kind != model);
            let value = one.value(model, metric.name.key());
            Some((value.filter(|_| usable)?, one.rows.test as f64))
        });
        let values: Vec<(f64, f64)> = of_use.collect();
        let rows: f64 = values.iter().map(|(_, rows)| rows).sum();
        let each = values.iter().map(|(value, _)| *value);
        let worst = if metric.name.higher_is_better() {
            each.clone().fold(f64::INFINITY, f64::min)
        } else {
            each.clone().fold(f64::NEG_INFINITY, f64::max)
        };
        (!values.is_empty()).then(|| ModelMean {
            model,
            silos: values.len(),
            per_silo: each.sum::<f64>() / values.len() as f64,
            per_row: values.iter().map(|(value, rows)| value * rows).sum::<f64>() / rows,
            worst,
        })
    };
    ModelKind::ALL.into_iter().filter_map(mean).collect()
}

/// Finds the members that are harmed by the model that they serve.
fn harmed(members: &[SiloResult], gains: &[Vec<Gain>]) -> Option<Harmed> {
    let mut found = Harmed {
        compared: 0,
        not_own: 0,
        harmed: Vec::new(),
        by_chance: 0.0,
    };
    for (member, gains) in members.iter().zip(gains) {
        let served =
            |gain: &&Gain| (gain.model, gain.over) == (ModelKind::Served, ModelKind::Local);
        let (Some(gain), Some(served)) = (gains.iter().find(served), &member.served) else {
            continue;
        };
        found.compared += 1;
        if served.candidate != Candidate::Local {
            found.not_own += 1;
            if gain.interval.high < 0.0 {
                found.harmed.push(member.name.clone());
            }
        }
    }
    found.by_chance = BY_CHANCE * found.not_own as f64;
    (found.compared > 0).then_some(found)
}

/// Returns how the members' local models were tuned.
fn tuning(members: &[SiloResult]) -> Option<Tuning> {
    let tuned: Vec<&Tuned> = members
        .iter()
        .filter_map(|one| one.tuned.as_ref())
        .collect();
    let mean = |of: &dyn Fn(&Tuned) -> f64| {
        tuned.iter().map(|one| of(one)).sum::<f64>() / tuned.len() as f64
    };
    (!tuned.is_empty()).then(|| Tuning {
        silos: tuned.len(),
        fitted: tuned
            .iter()
            .filter(|one| matches!(one.way, Way::Fit { .. }))
            .count(),
        rates: tuned.iter().any(|one| one.rates),
        trainings: mean(&|one| one.trainings),
        fits: mean(&|one| one.fits as f64),
    })
}

/// A second metric beside the one that is compared, where the models have one.
fn second(metric: &Metric, classes: usize, results: &[SiloResult]) -> Option<MetricInfo> {
    use MetricName::{
        Accuracy, BalancedAccuracy, Brier, CalibrationAtTime, CalibrationError, Concordance, Dice,
        IntegratedBrier, LogLoss, Loss, Mae, Mse, RocAuc,
    };
    let candidates: &[&str] = match metric.name {
        Mae => &["rmse"],
        Mse => &["mae"],
        Accuracy if classes == 2 => &["roc-auc", "log-loss"],
        Accuracy => &["log-loss"],
        BalancedAccuracy | LogLoss | Brier | CalibrationError | RocAuc => &["accuracy"],
        Dice => &["loss"],
        Concordance => &["integrated-brier", "loss"],
        IntegratedBrier | CalibrationAtTime => &["concordance"],
        Loss => &["mae", "accuracy", "dice", "concordance"],
        MetricName::Own(_) => &["loss"],
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
        higher_is_better: ["accuracy", "roc-auc", "dice", "concordance"].contains(&name),
    })
}

/// The models of a silo that are of no use there, with the reasons.
fn no_use(
    result: &SiloResult,
    metric: MetricName,
    constant: Option<&Constant>,
    over_all: &BTreeMap<String, f64>,
) -> Vec<(ModelKind, String)> {
    let baseline = |key: &str| constant?.lenient(over_all, key);
    let why = |(kind, model): (&ModelKind, &Result<HeldOutResults, String>)| {
        let reason = match model {
            Ok(measured) => why_unusable(&measured.metrics, metric, baseline)?,
            Err(error) => error.clone(),
        };
        Some((*kind, reason))
    };
    result.models.iter().filter_map(why).collect()
}

/// Returns whether the federation's models are of use: every coalition's at more than half of its members.
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
