//! Metrics of a model's outputs, compared with the targets.

use methods::Metrics;
use methods::learner::RowResults;
use serde::{Deserialize, Serialize};

use crate::data::Rows;
use crate::models::Loss;

/// A metric that reports compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MetricName {
    /// The model's own loss, in standardised units.
    Loss,
    /// Mean absolute error.
    Mae,
    /// Mean squared error.
    Mse,
    /// Fraction of rows with the right class.
    Accuracy,
    /// Cross-entropy.
    LogLoss,
    /// Area under the ROC curve, for two classes; absent if the rows have only one class.
    RocAuc,
    /// Mean over images of the Dice coefficient `2|P∩G|/(|P|+|G|)` between the pixels predicted
    /// and those of the mask; 1 where both are empty.
    Dice,
}

impl MetricName {
    /// Its key in [`methods::Metrics`].
    pub fn key(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Mae => "mae",
            Self::Mse => "mse",
            Self::Accuracy => "accuracy",
            Self::LogLoss => "log-loss",
            Self::RocAuc => "roc-auc",
            Self::Dice => "dice",
        }
    }

    /// Whether larger is better.
    pub fn higher_is_better(self) -> bool {
        matches!(self, Self::Accuracy | Self::RocAuc | Self::Dice)
    }
}

/// The metric that reports compare, and its unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The metric.
    pub name: MetricName,
    /// The unit in words; empty if it has none.
    pub unit: String,
}

/// All metrics that go with the loss. `outputs` is rows × k; `unit` is the size of one unit of the
/// rows' target in the target's own units.
///
/// Regression: `loss`, `mae`, `mse` and its root `rmse`, the mean over all numbers of all rows. Masks: `loss`, `dice`.
/// Classification: `loss` and `log-loss` (the same), `accuracy`,
/// and with two classes that both occur `roc-auc`.
pub(crate) fn measure(loss: Loss, outputs: &[f64], rows: &Rows, unit: f64) -> Metrics {
    let targets = rows.targets();
    let mean = loss.mean(outputs, targets, &mut vec![0.0; outputs.len()]);
    let count = targets.len() as f64;
    let mut metrics = Metrics {
        samples: rows.len() as u64,
        ..Metrics::default()
    };
    let mut put = |name: &str, value: f64| metrics.values.insert(name.into(), value);
    put("loss", mean);
    match loss {
        Loss::Regression(_) => {
            let errors = outputs
                .iter()
                .zip(targets)
                .map(|(output, &y)| (output - f64::from(y)) * unit);
            put("mae", errors.clone().map(f64::abs).sum::<f64>() / count);
            let mse = errors.map(|error| error * error).sum::<f64>() / count;
            put("mse", mse);
            put("rmse", mse.sqrt());
        }
        Loss::Dice { pixels } => {
            let each = outputs
                .chunks_exact(pixels)
                .zip(targets.chunks_exact(pixels));
            let dice = each.map(|(output, mask)| dice(output, mask)).sum::<f64>();
            put("dice", dice / rows.len() as f64);
        }
        Loss::Logistic | Loss::Softmax => {
            let width = outputs.len() / targets.len();
            let right = outputs.chunks_exact(width).zip(targets);
            let right = right
                .filter(|(output, y)| predicted(output) == **y as usize)
                .count();
            put("accuracy", right as f64 / count);
            put("log-loss", mean);
            let positive: Vec<bool> = targets.iter().map(|&y| y > 0.5).collect();
            let score: Option<Vec<f64>> = match width {
                1 => Some(outputs.to_vec()),
                2 => Some(
                    outputs
                        .chunks_exact(2)
                        .map(|output| output[1] - output[0])
                        .collect(),
                ),
                _ => None,
            };
            if let Some(auc) = score.and_then(|score| roc_auc(&score, &positive)) {
                put("roc-auc", auc);
            }
        }
    }
    metrics
}

/// The same row by row: what [`measure`] gives are the means. `roc-auc` and `rmse` are no means and
/// are left out.
pub(crate) fn row_results(loss: Loss, outputs: &[f64], rows: &Rows, unit: f64) -> RowResults {
    let targets = rows.targets();
    let count = rows.len().max(1);
    let (width, given) = (outputs.len() / count, targets.len() / count);
    let each = || {
        outputs
            .chunks_exact(width.max(1))
            .zip(targets.chunks_exact(given.max(1)))
    };
    // Numbers count one by one, as in the loss; the other losses take a whole row.
    let losses = each().map(|(output, target)| match loss {
        Loss::Regression(_) => loss.mean(output, target, &mut vec![0.0; output.len()]),
        _ => loss.row(output, target, &mut vec![0.0; output.len()]),
    });
    let losses: Vec<f64> = losses.collect();
    let mut results = RowResults {
        targets: targets.to_vec(),
        ..RowResults::default()
    };
    let mut put = |name: &str, values: Vec<f64>| results.scores.insert(name.into(), values);
    match loss {
        Loss::Regression(_) => {
            let errors = |of: fn(f64) -> f64| {
                let row = |(output, target): (&[f64], &[f32])| {
                    let each = output.iter().zip(target);
                    let each = each.map(|(output, &y)| of((output - f64::from(y)) * unit));
                    each.sum::<f64>() / target.len() as f64
                };
                each().map(row).collect()
            };
            put("mae", errors(f64::abs));
            put("mse", errors(|error| error * error));
        }
        Loss::Dice { .. } => {
            let dice = each().map(|(output, mask)| dice(output, mask));
            put("dice", dice.collect());
        }
        Loss::Logistic | Loss::Softmax => {
            let right = |(output, y): (&[f64], &[f32])| {
                f64::from(u8::from(predicted(output) == y[0] as usize))
            };
            put("accuracy", each().map(right).collect());
            put("log-loss", losses.clone());
        }
    }
    put("loss", losses);
    if matches!(loss, Loss::Logistic | Loss::Softmax) {
        results.probabilities = each()
            .flat_map(|(output, _)| probabilities(output))
            .collect();
    }
    results
}

/// The probability of every class: by the softmax, or by the logistic function of a single output.
fn probabilities(output: &[f64]) -> Vec<f64> {
    if let [logit] = output {
        let one = 1.0 / (1.0 + (-logit).exp());
        return vec![1.0 - one, one];
    }
    let top = output.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let raised: Vec<f64> = output.iter().map(|value| (value - top).exp()).collect();
    let sum: f64 = raised.iter().sum();
    raised.into_iter().map(|value| value / sum).collect()
}

/// The mean target of these rows, for models of `width` outputs: for classes the fraction of each,
/// for one output that of class 1.
pub(crate) fn mean_target(loss: Loss, rows: &Rows, width: usize) -> Vec<f64> {
    let mut mean = vec![0.0; width];
    for row in 0..rows.len() {
        let target = rows.target(row);
        match loss {
            Loss::Softmax => mean[target[0] as usize] += 1.0,
            _ => mean
                .iter_mut()
                .zip(target)
                .for_each(|(mean, &y)| *mean += f64::from(y)),
        }
    }
    let count = rows.len().max(1) as f64;
    mean.iter_mut().for_each(|mean| *mean /= count);
    mean
}

/// The outputs for one row of a model that gives every row this [`mean_target`].
pub(crate) fn constant(loss: Loss, mean: &[f64]) -> Vec<f64> {
    // A class or a pixel that no training row has is not called impossible.
    let likely = |&share: &f64| share.clamp(1e-3, 1.0 - 1e-3);
    match loss {
        Loss::Regression(_) => mean.to_vec(),
        Loss::Softmax => mean.iter().map(|share| likely(share).ln()).collect(),
        Loss::Logistic | Loss::Dice { .. } => {
            let odds = |share| likely(share) / (1.0 - likely(share));
            mean.iter().map(|share| odds(share).ln()).collect()
        }
    }
}

/// The Dice coefficient of one image; a pixel is predicted where its log-odds are above 0.
fn dice(output: &[f64], mask: &[f32]) -> f64 {
    let (mut common, mut all) = (0, 0);
    for (&value, &inside) in output.iter().zip(mask) {
        let (predicted, inside) = (value > 0.0, inside > 0.5);
        common += u32::from(predicted && inside);
        all += u32::from(predicted) + u32::from(inside);
    }
    if all == 0 {
        return 1.0;
    }
    2.0 * f64::from(common) / f64::from(all)
}

/// The predicted class: that of the largest output, the first of equals. A single output predicts
/// class 1 if it is above 0.
fn predicted(output: &[f64]) -> usize {
    if let [logit] = output {
        return usize::from(*logit > 0.0);
    }
    let better = |best: usize, class: usize| {
        if output[class] > output[best] {
            class
        } else {
            best
        }
    };
    (0..output.len()).fold(0, better)
}

/// The area under the ROC curve: the fraction of pairs of a positive and a negative row in which the
/// positive one scores higher, equal scores counting half. `None` without both kinds.
fn roc_auc(score: &[f64], positive: &[bool]) -> Option<f64> {
    let mut order: Vec<usize> = (0..score.len()).collect();
    order.sort_by(|&a, &b| score[a].total_cmp(&score[b]));
    let (mut negatives, mut wins) = (0.0, 0.0);
    for equal in order.chunk_by(|&a, &b| score[a] == score[b]) {
        let ups = equal.iter().filter(|&&row| positive[row]).count() as f64;
        let downs = equal.len() as f64 - ups;
        wins += ups * (negatives + downs / 2.0);
        negatives += downs;
    }
    let pairs = negatives * (score.len() as f64 - negatives);
    (pairs > 0.0).then(|| wins / pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::RegressionLoss;

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
        let close = |outputs: Vec<f64>| (probabilities(&outputs)[1] - 0.75).abs() < 1e-12;
        assert!(close(constant(Loss::Logistic, &[0.75])));
        assert!(close(constant(Loss::Softmax, &[0.25, 0.75])));
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
}
