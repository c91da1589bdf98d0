use super::*;
use crate::loss::RegressionLoss;

#[test]
fn errors_are_in_the_targets_units_and_loss_is_not() {
    let rows = Rows::new(1, vec![0.0; 2], vec![1.0, -1.0]);
    let metrics = measure(
        Loss::Regression(RegressionLoss::Absolute),
        &[1.5, -2.0],
        &rows,
        10.0,
    );
    assert_eq!(metrics.samples, 2);
    assert_eq!(metrics.values["loss"], 0.75);
    assert_eq!(metrics.values["mae"], 7.5);
    assert_eq!(metrics.values["mse"], (25.0 + 100.0) / 2.0);
}

#[test]
fn errors_of_several_numbers_are_means_over_all() {
    let rows = Rows::wide(1, 3, vec![0.0; 2], vec![1.0, -1.0, 0.0, 2.0, 0.0, 0.5]);
    let squared = Loss::Regression(RegressionLoss::Squared);
    let outputs = [1.5, -2.0, 0.0, 2.0, 1.0, 0.0];
    let metrics = measure(squared, &outputs, &rows, 2.0);
    assert_eq!(metrics.samples, 2);
    let squares = 0.25 + 1.0 + 1.0 + 0.25;
    assert_eq!(metrics.values["loss"], squares / 6.0);
    assert_eq!(metrics.values["mse"], 4.0 * squares / 6.0);
    assert_eq!(metrics.values["mae"], 2.0 * (0.5 + 1.0 + 1.0 + 0.5) / 6.0);
}

#[test]
fn dice_counts_pixels_by_image() {
    // Two of three predicted pixels are among the two of the mask; nothing and nothing.
    let masks = vec![1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    let rows = Rows::wide(1, 4, vec![0.0; 2], masks);
    let outputs = [3.0, 0.1, 2.0, -1.0, -1.0, -1.0, 0.0, -2.0];
    let metrics = measure(Loss::Dice { pixels: 4 }, &outputs, &rows, 1.0);
    assert_eq!(metrics.samples, 2);
    assert_eq!(metrics.values["dice"], (0.8 + 1.0) / 2.0);
    assert!(metrics.values.contains_key("loss"));
}

#[test]
fn means_of_row_results_are_the_metrics() {
    let numbers = Rows::wide(1, 3, vec![0.0; 2], vec![1.0, -1.0, 0.0, 2.0, 0.0, 0.5]);
    let masks = Rows::wide(1, 2, vec![0.0; 2], vec![1.0, 0.0, 1.0, 1.0]);
    let classes = Rows::new(1, vec![0.0; 3], vec![1.0, 0.0, 1.0]);
    let squared = Loss::Regression(RegressionLoss::Squared);
    let cases: [(Loss, &[f64], &Rows); 4] = [
        (squared, &[1.5, -2.0, 0.0, 2.0, 1.0, 0.0], &numbers),
        (Loss::Dice { pixels: 2 }, &[1.0, 2.0, -1.0, 3.0], &masks),
        (Loss::Logistic, &[2.0, -1.0, -0.5], &classes),
        (Loss::Softmax, &[0.0, 2.0, 1.0, 0.0, 0.25, -0.25], &classes),
    ];
    for (loss, outputs, rows) in cases {
        let metrics = measure(loss, outputs, rows, 2.0);
        let by_row = row_results(loss, outputs, rows, 2.0);
        assert_eq!(by_row.len(), rows.len());
        for (name, values) in &by_row.scores {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let whole = metrics.values[name];
            assert!((mean - whole).abs() < 1e-12, "{name}: {mean}, {whole}");
        }
    }
    let by_row = row_results(Loss::Logistic, &[2.0, -1.0, -0.5], &classes, 1.0);
    let positive = by_row.positive().unwrap_or_default();
    assert_eq!(positive.len(), 3);
    assert!((positive[0].0 - 0.880_797).abs() < 1e-6 && positive[0].1 && !positive[1].1);
}

#[test]
fn constant_outputs_give_the_mean_target() {
    let rows = Rows::new(1, vec![0.0; 4], vec![1.0, 0.0, 1.0, 1.0]);
    assert_eq!(mean_target(Loss::Logistic, &rows, 1), [0.75]);
    assert_eq!(mean_target(Loss::Softmax, &rows, 2), [0.25, 0.75]);
    let close = |loss: Loss, means: &[f64]| {
        let row = RowsOfClasses::of(loss, &constant(loss, means), &[1.0]);
        row.is_some_and(|row| (row.probabilities[1] - 0.75).abs() < 1e-12)
    };
    assert!(close(Loss::Logistic, &[0.75]));
    assert!(close(Loss::Softmax, &[0.25, 0.75]));
    let absolute = Loss::Regression(RegressionLoss::Absolute);
    assert_eq!(constant(absolute, &mean_target(absolute, &rows, 1)), [0.75]);
}

#[test]
fn area_under_the_curve_counts_pairs() {
    assert_eq!(
        roc_auc(&[0.1, 0.4, 0.35, 0.8], &[false, false, true, true]),
        Some(0.75)
    );
    assert_eq!(roc_auc(&[1.0, 1.0], &[false, true]), Some(0.5));
    assert_eq!(roc_auc(&[1.0, 2.0], &[true, true]), None);
}

#[test]
fn one_output_and_two_outputs_agree() {
    let rows = Rows::new(1, vec![0.0; 3], vec![1.0, 0.0, 1.0]);
    let one = measure(Loss::Logistic, &[2.0, -1.0, -0.5], &rows, 1.0);
    let two = measure(
        Loss::Softmax,
        &[0.0, 2.0, 1.0, 0.0, 0.25, -0.25],
        &rows,
        1.0,
    );
    assert_eq!(one.values["accuracy"], 2.0 / 3.0);
    assert_eq!(one.values["roc-auc"], 1.0);
    for (name, value) in &one.values {
        assert!((value - two.values[name]).abs() < 1e-12, "{name}");
    }
}

/// Rows of two classes with the probability of class 1.
fn results(rows: &[(f64, u8)]) -> RowResults {
    let logits: Vec<f64> = rows.iter().map(|(p, _)| (p / (1.0 - p)).ln()).collect();
    let classes = rows.iter().map(|(_, class)| f32::from(*class)).collect();
    let rows = Rows::new(1, vec![0.0; rows.len()], classes);
    row_results(Loss::Logistic, &logits, &rows, 1.0)
}

#[test]
fn probabilities_are_measured_as_computed_by_hand() {
    let rows = results(&[(0.95, 1), (0.85, 0), (0.3, 0), (0.6, 1), (0.65, 1)]);
    let value = |metric: MetricName| metric.over(&[&rows]).unwrap_or(f64::NAN);
    let close = |value: f64, wanted: f64| (value - wanted).abs() < 1e-12;
    // All three of class 1, one of two of class 0.
    assert!(close(value(MetricName::BalancedAccuracy), 0.75));
    let brier = (0.0025 + 0.7225 + 0.09 + 0.16 + 0.1225) / 5.0;
    assert!(close(value(MetricName::Brier), brier));
    // Bins of 0.9 to 1: 1 of 1 at .95; 0.8 to 0.9: 0 of 1 at .85; 0.7 to 0.8: 1 of 1 at .7;
    // 0.6 to 0.7: 2 of 2 at .625.
    let apart = 0.05 + 0.85 + 0.3 + 2.0 * 0.375;
    assert!(close(value(MetricName::CalibrationError), apart / 5.0));
    // Six pairs, of which those with .85 are lost by .6 and .65.
    assert!(close(value(MetricName::RocAuc), 4.0 / 6.0));
    assert!(close(value(MetricName::Accuracy), 0.8));
}

#[test]
fn several_classes_have_a_brier_score_over_all_of_them() {
    let rows = Rows::new(1, vec![0.0; 3], vec![2.0, 0.0, 2.0]);
    let p: [[f64; 3]; 3] = [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.6, 0.1, 0.3]];
    let outputs: Vec<f64> = p.iter().flatten().map(|p| p.ln()).collect();
    let metrics = measure(Loss::Softmax, &outputs, &rows, 1.0);
    let brier = (0.01 + 0.04 + 0.09) + (0.25 + 0.09 + 0.04) + (0.36 + 0.01 + 0.49);
    assert!((metrics.values["brier"] - brier / 3.0).abs() < 1e-12);
    // One of two of class 2, the one of class 0; class 1 does not occur.
    assert!((metrics.values["balanced-accuracy"] - 0.75).abs() < 1e-12);
    let apart: f64 = (1.0 - 0.7) + (1.0 - 0.5) + 0.6;
    assert!((metrics.values["calibration-error"] - apart / 3.0).abs() < 1e-12);
}

#[test]
fn over_one_silo_a_metric_is_what_was_measured_there() {
    let rows = Rows::new(1, vec![0.0; 4], vec![1.0, 0.0, 1.0, 0.0]);
    let outputs = [2.0, -1.0, -0.5, 0.25];
    let metrics = measure(Loss::Logistic, &outputs, &rows, 1.0);
    let by_row = row_results(Loss::Logistic, &outputs, &rows, 1.0);
    use MetricName::{
        Accuracy, BalancedAccuracy, Brier, CalibrationError, LogLoss, Loss as OwnLoss, RocAuc,
    };
    for metric in [
        OwnLoss,
        Accuracy,
        BalancedAccuracy,
        LogLoss,
        Brier,
        CalibrationError,
        RocAuc,
    ] {
        let over = metric.over(&[&by_row]).unwrap_or(f64::NAN);
        let wanted = metrics.values[metric.key()];
        assert!((over - wanted).abs() < 1e-12, "{metric:?}: {over} {wanted}");
    }
    let numbers = Rows::wide(1, 2, vec![0.0; 2], vec![1.0, -1.0, 0.0, 2.0]);
    let squared = Loss::Regression(RegressionLoss::Squared);
    let by_row = row_results(squared, &[1.5, -2.0, 0.0, 2.0], &numbers, 2.0);
    assert_eq!(MetricName::Mse.over(&[&by_row]), Some(4.0 * 1.25 / 4.0));
    assert_eq!(MetricName::Mae.over(&[&by_row]), Some(2.0 * 1.5 / 4.0));
    assert_eq!(MetricName::RocAuc.over(&[&by_row]), None);
    assert_eq!(MetricName::CalibrationError.over(&[&by_row]), None);
}

#[test]
fn silos_of_one_class_have_an_area_together() {
    let (well, ill) = (
        results(&[(0.2, 0), (0.6, 0)]),
        results(&[(0.5, 1), (0.9, 1), (0.7, 1)]),
    );
    assert_eq!(MetricName::RocAuc.over(&[&well]), None);
    assert_eq!(MetricName::RocAuc.over(&[&ill]), None);
    // Of six pairs only that of .6 and .5 is the wrong way round.
    let both = MetricName::RocAuc.over(&[&well, &ill]).unwrap_or(f64::NAN);
    assert!((both - 5.0 / 6.0).abs() < 1e-12, "{both}");
    // Half of class 0 and two thirds of class 1 (.5 is given class 0).
    let balanced = MetricName::BalancedAccuracy.over(&[&well, &ill]);
    let balanced = balanced.unwrap_or(f64::NAN);
    assert!(
        (balanced - (0.5 + 2.0 / 3.0) / 2.0).abs() < 1e-12,
        "{balanced}"
    );
    // Every row counts once, not every silo.
    let accuracy = MetricName::Accuracy.over(&[&well, &ill]);
    assert_eq!(accuracy, Some(3.0 / 5.0));
    let nothing = RowResults::default();
    assert_eq!(MetricName::Accuracy.over(&[&nothing]), None);
    assert_eq!(
        MetricName::Accuracy.over(&[&nothing, &ill]),
        Some(2.0 / 3.0)
    );
}

/// Losses are those of every row by itself, to the bit, and probabilities those of the definition.
#[test]
fn class_losses_and_probabilities_share_their_exponentials() {
    let outputs: Vec<f64> = (0..60)
        .map(|at| (f64::from(at * at) * 0.7).sin() * 9.0)
        .collect();
    let of = |loss: Loss, width: usize| {
        let targets: Vec<f32> = (0..60 / width)
            .map(|row| (row % width.max(2)) as f32)
            .collect();
        let all = RowsOfClasses::of(loss, &outputs, &targets);
        let all = all.into_iter().next().expect("both have classes");
        let rows = outputs.chunks_exact(width).zip(&targets);
        for ((output, class), own) in rows.zip(&all.losses) {
            let alone = loss.row(output, &[*class], &mut vec![0.0; width]);
            assert_eq!(alone.to_bits(), own.to_bits());
        }
        for ((row, class), own) in all.each(&targets).zip(&all.losses) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!((-row[class].ln() - own).abs() < 1e-9 * own.max(1.0));
        }
    };
    of(Loss::Logistic, 1);
    of(Loss::Softmax, 2);
    of(Loss::Softmax, 10);
    let none = RowsOfClasses::of(Loss::Softmax, &[], &[]);
    assert!(none.is_some_and(|none| none.losses.is_empty() && none.probabilities.is_empty()));
}
