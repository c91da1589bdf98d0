//! Metrics of risk scores for times to an event.

use methods::Metrics;
use methods::learner::{RowResults, Surviving};

use crate::data::Rows;
use crate::survival::{
    CalibrationAtTime, Concordance, NUMBERS, ObservedTime, SurvivalBasis, observed,
    partial_likelihood, row_terms,
};

/// All metrics of these risk scores: `loss` (Cox's partial likelihood per event, with the rows of the part at risk
/// together; 0 without an event), `concordance` where two rows are comparable, and with a `basis` of the silo's
/// training rows `integrated-brier` and `calibration-at-time`, where no row enters late.
pub fn measure_survival(outputs: &[f64], rows: &Rows, basis: Option<&SurvivalBasis>) -> Metrics {
    let results = survival_results(outputs, rows, basis);
    let mut metrics = Metrics {
        samples: rows.len() as u64,
        ..Metrics::default()
    };
    let mut put = |name: &str, value: f64| {
        if !value.is_nan() {
            metrics.values.insert(name.into(), value);
        }
    };
    let mut slopes = vec![0.0; outputs.len()];
    put(
        "loss",
        partial_likelihood(outputs, rows.targets(), &mut slopes),
    );
    let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    if let Some(values) = results.scores.get("integrated-brier") {
        put("integrated-brier", mean(values));
    }
    let once = vec![1; rows.len()];
    if let Some(concordance) = concordance_of(&[&results]) {
        put("concordance", concordance.value(&once));
    }
    if let Some(calibration) = calibration_of(&[&results]) {
        put("calibration-at-time", calibration.value(&once));
    }
    metrics
}

/// Metrics row by row: `loss`, of which a row has a part by its own event, so that the mean over the rows is the loss
/// per event, and with a basis `integrated-brier`.
pub fn survival_results(outputs: &[f64], rows: &Rows, basis: Option<&SurvivalBasis>) -> RowResults {
    let lives = observed(rows.targets());
    let basis = basis.filter(|_| lives.iter().all(|row| row.entry <= 0.0));
    let events = lives.iter().filter(|row| row.event).count();
    let each = lives.len() as f64 / events.max(1) as f64;
    let terms = row_terms(outputs, rows.targets());
    let mut results = RowResults {
        targets: rows.targets().to_vec(),
        subgroups: rows.subgroups().to_vec(),
        groups: rows.groups().to_vec(),
        risks: outputs.to_vec(),
        surviving: basis.map(|basis| Surviving {
            until: basis.horizon,
            probabilities: basis.surviving(outputs),
        }),
        ..RowResults::default()
    };
    let loss = terms.into_iter().map(|term| term * each).collect();
    results.scores.insert("loss".into(), loss);
    if let Some(basis) = basis {
        let brier = basis.brier(outputs, &lives);
        results.scores.insert("integrated-brier".into(), brier);
    }
    results
}

/// The concordance index over the rows of several silos, with pairs within each; `None` where one of the parts has no
/// risk scores.
pub fn concordance_of(parts: &[&RowResults]) -> Option<Concordance> {
    let mut index = Concordance::default();
    for part in parts {
        index.push(&part.risks, rows_of(part)?);
    }
    Some(index)
}

/// Calibration at the horizons of several silos; `None` where one of the parts has no probabilities.
pub fn calibration_of(parts: &[&RowResults]) -> Option<CalibrationAtTime> {
    let mut calibration = CalibrationAtTime::default();
    for part in parts {
        let surviving = part.surviving.as_ref()?;
        let probabilities = surviving.probabilities.clone();
        calibration.push(probabilities, rows_of(part)?, surviving.until);
    }
    Some(calibration)
}

/// The rows of a part that has risk scores.
fn rows_of(part: &RowResults) -> Option<Vec<ObservedTime>> {
    let all = part.targets.len() == NUMBERS * part.risks.len();
    (all && !part.risks.is_empty()).then(|| observed(&part.targets))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use methods::learner::Split;

    use super::*;
    use crate::data::{TcgaBrcaConfig, tcga_brca};
    use crate::metrics::MetricName;

    /// Rows of one feature, each an event (or not) and its time.
    fn rows(of: &[(f32, f32)]) -> Rows {
        let targets = of.iter().flat_map(|&(event, time)| [event, time, 0.0]);
        Rows::wide(1, 3, vec![0.0; of.len()], targets.collect())
    }

    #[test]
    fn the_mean_over_the_rows_is_the_loss_per_event() {
        let rows = rows(&[(1.0, 1.0), (0.0, 2.0), (1.0, 2.0), (1.0, 3.0), (0.0, 4.0)]);
        let scores = [0.3, -1.0, 0.7, 0.1, 0.0];
        let lives = observed(rows.targets());
        let basis = SurvivalBasis::of(&scores, &lives, None).unwrap();
        let metrics = measure_survival(&scores, &rows, Some(&basis));
        let results = survival_results(&scores, &rows, Some(&basis));
        for name in ["loss", "integrated-brier"] {
            let mean = results.scores[name].iter().sum::<f64>() / 5.0;
            assert!((mean - metrics.values[name]).abs() < 1e-12, "{name}");
        }
        assert_eq!(results.scores["loss"][1], 0.0, "censored");
        assert_eq!(metrics.values.len(), 4, "{metrics:?}");
        for name in [
            MetricName::Loss,
            MetricName::Concordance,
            MetricName::IntegratedBrier,
            MetricName::CalibrationAtTime,
        ] {
            let over = name.over(&[&results]).unwrap();
            assert!(
                (over - metrics.values[name.key()]).abs() < 1e-12,
                "{name:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_measured_is_absent() {
        let censored = rows(&[(0.0, 1.0), (0.0, 2.0)]);
        let metrics = measure_survival(&[0.0, 1.0], &censored, None);
        let names: Vec<&str> = metrics.values.keys().map(String::as_str).collect();
        assert_eq!((names, metrics.values["loss"]), (vec!["loss"], 0.0));
        // A held-out row that enters late is no row of those that began.
        let all = rows(&[(1.0, 1.0), (0.0, 2.0)]);
        let basis = SurvivalBasis::of(&[0.0; 2], &observed(all.targets()), None).unwrap();
        let late = Rows::wide(1, 3, vec![0.0; 2], vec![1.0, 1.0, 0.0, 0.0, 2.0, 0.5]);
        let metrics = measure_survival(&[1.0, 0.0], &late, Some(&basis));
        assert_eq!(metrics.values.len(), 2, "{metrics:?}");
        assert_eq!(metrics.values["concordance"], 1.0);
    }

    #[test]
    fn silos_are_compared_within_themselves() {
        let part =
            |scores: &[f64]| survival_results(scores, &rows(&[(1.0, 1.0), (0.0, 2.0)]), None);
        let (right, wrong) = (part(&[9.0, 8.0]), part(&[-2.0, -1.0]));
        assert_eq!(MetricName::Concordance.over(&[&right, &wrong]), Some(0.5));
        let none = survival_results(&[1.0], &rows(&[(0.0, 1.0)]), None);
        assert_eq!(MetricName::Concordance.over(&[&right, &none]), Some(1.0));
        assert_eq!(MetricName::Concordance.over(&[&none]), None);
        assert_eq!(MetricName::CalibrationAtTime.over(&[&right]), None);
    }

    /// Patients of one region and a score of two columns: the values are those of `measurements/flamby/tcga.py`, which
    /// follows the formulas step by step.
    #[test]
    fn metrics_of_a_region_are_those_computed_elsewhere() {
        let Some(folder) = std::env::var_os("ROTA_DATA") else {
            crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
            return;
        };
        let config = TcgaBrcaConfig { flamby_split: true };
        let data = tcga_brca(config, Some(Path::new(&folder))).unwrap();
        let (name, table) = &data.silos[0];
        assert_eq!(name, "Northeast");
        let part = |part: Split| {
            let place = |name: &str| table.columns.iter().position(|own| own == name).unwrap();
            let (age, treated) = (place("age_at_index"), place("treatment_or_therapy_yes"));
            let chosen = || (0..table.len()).filter(|&row| table.parts[row] == part);
            let scores: Vec<f64> = chosen()
                .map(|row| 0.02 * table.row(row)[age] - 0.8 * table.row(row)[treated])
                .collect();
            let targets: Vec<f32> = chosen()
                .flat_map(|row| table.targets(row))
                .map(|&value| value as f32)
                .collect();
            let rows = Rows::wide(1, 3, vec![0.0; scores.len()], targets);
            (scores, rows)
        };
        let ((trained, train), (scores, test)) = (part(Split::Train), part(Split::Test));
        let basis = SurvivalBasis::of(&trained, &observed(train.targets()), None).unwrap();
        assert_eq!(basis.horizon, 2520.0);
        assert!((basis.baseline.score - 0.530_241_935_484).abs() < 1e-9);
        assert!((basis.baseline.hazard(2520.0) - 0.350_336_099_768).abs() < 1e-9);
        let metrics = measure_survival(&scores, &test, Some(&basis));
        for (name, expected) in [
            ("loss", 2.582_371_724_883),
            ("concordance", 0.814_245_810_056),
            ("integrated-brier", 0.100_391_433_060),
            ("calibration-at-time", 0.032_214_852_069),
        ] {
            let found = metrics.values[name];
            assert!(
                (found - expected).abs() < 1e-9,
                "{name}: {found}, not {expected}"
            );
        }
    }
}
