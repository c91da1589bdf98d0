//! Metrics of a model's outputs, compared with the targets.

mod counted;
mod survival;
mod written;

use crate::data::Rows;
use crate::loss::{Loss, softmax};
use methods::Metrics;
use methods::learner::{OwnMetric, RowResults};

pub use counted::{BalancedAccuracy, CalibrationError, RocArea};
pub use survival::{calibration_of, concordance_of, measure_survival, survival_results};

/// A metric that reports compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricName {
    /// The model's own loss, in standardised units.
    Loss,
    /// Mean absolute error.
    Mae,
    /// Mean squared error.
    Mse,
    /// Fraction of rows with the right class.
    Accuracy,
    /// Mean over the classes that occur of the fraction of their rows with the right class.
    BalancedAccuracy,
    /// Cross-entropy.
    LogLoss,
    /// Mean squared error of the probabilities (Brier 1950): of the probability of class 1 for two
    /// classes, summed over all classes for more.
    Brier,
    /// Expected calibration error (Guo et al. 2017): rows by the probability of the class that they are
    /// given, in ten bins of equal width; the mean over rows of the difference between the fraction of
    /// right classes in a bin and its mean probability.
    CalibrationError,
    /// Area under the ROC curve, for two classes; absent if the rows have only one class.
    RocAuc,
    /// Mean over images of the Dice coefficient `2|P∩G|/(|P|+|G|)` between the pixels predicted
    /// and those of the mask; 1 where both are empty.
    Dice,
    /// Harrell's concordance index of times to an event, see [`Concordance`](crate::survival::Concordance); absent if
    /// no two rows of a silo are comparable.
    Concordance,
    /// The integrated Brier score of times to an event, weighted by the inverse probability of censoring (Graf et al.
    /// 1999), see [`SurvivalBasis`](crate::survival::SurvivalBasis); absent where the horizon is too far for the
    /// silo's training rows, and where rows enter late.
    IntegratedBrier,
    /// Calibration at the horizon: the absolute difference between the mean predicted probability of no event until
    /// then and its Kaplan-Meier estimate; absent as [`IntegratedBrier`](Self::IntegratedBrier).
    CalibrationAtTime,
    /// One that programs measure themselves.
    Own(OwnMetric),
}

impl MetricName {
    /// All that Rota knows.
    pub(crate) const ALL: [Self; 13] = [
        Self::Loss,
        Self::Mae,
        Self::Mse,
        Self::Accuracy,
        Self::BalancedAccuracy,
        Self::LogLoss,
        Self::Brier,
        Self::CalibrationError,
        Self::RocAuc,
        Self::Dice,
        Self::Concordance,
        Self::IntegratedBrier,
        Self::CalibrationAtTime,
    ];

    /// The metric with this key, where Rota knows it.
    pub fn of(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.key() == key)
    }

    /// Key of the metric in [`methods::Metrics`].
    pub fn key(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Mae => "mae",
            Self::Mse => "mse",
            Self::Accuracy => "accuracy",
            Self::BalancedAccuracy => "balanced-accuracy",
            Self::LogLoss => "log-loss",
            Self::Brier => "brier",
            Self::CalibrationError => "calibration-error",
            Self::RocAuc => "roc-auc",
            Self::Dice => "dice",
            Self::Concordance => "concordance",
            Self::IntegratedBrier => "integrated-brier",
            Self::CalibrationAtTime => "calibration-at-time",
            Self::Own(own) => own.name(),
        }
    }

    /// Returns whether larger is better.
    pub fn higher_is_better(self) -> bool {
        match self {
            Self::Own(own) => own.higher_is_better(),
            Self::Accuracy
            | Self::BalancedAccuracy
            | Self::RocAuc
            | Self::Dice
            | Self::Concordance => true,
            _ => false,
        }
    }

    /// This metric over the rows of several silos together, each measured with a model of its own: for
    /// hospitals that have too few rows for it, or rows of one class only. A mean counts every row once;
    /// the area under the ROC curve compares rows of different silos by their probabilities. The same
    /// for one silo as in [`methods::Metrics`], except that [`RocAuc`](Self::RocAuc) cannot tell rows apart
    /// whose probabilities are rounded to 0 or 1.
    ///
    /// `None` without rows; where one of the parts lacks what the metric needs, such as probabilities;
    /// for the area where all rows are of one class.
    pub fn over(self, parts: &[&RowResults]) -> Option<f64> {
        let parts = || parts.iter().filter(|part| !part.is_empty());
        let rows: usize = parts().map(|part| part.len()).sum();
        if rows == 0 {
            return None;
        }
        match self {
            Self::Loss
            | Self::Mae
            | Self::Mse
            | Self::Accuracy
            | Self::LogLoss
            | Self::Brier
            | Self::Dice
            | Self::IntegratedBrier => {
                let mut sum = 0.0;
                for part in parts() {
                    sum += part.scores.get(self.key())?.iter().sum::<f64>();
                }
                Some(sum / rows as f64)
            }
            Self::Own(_) => None,
            Self::Concordance | Self::CalibrationAtTime => {
                let all: Vec<&RowResults> = parts().copied().collect();
                let once = vec![1; rows];
                let value = match self {
                    Self::Concordance => concordance_of(&all)?.value(&once),
                    _ => calibration_of(&all)?.value(&once),
                };
                (!value.is_nan()).then_some(value)
            }
            Self::RocAuc => {
                let (mut score, mut positive) = (Vec::new(), Vec::new());
                for part in parts() {
                    for (probability, is_positive) in part.positive()? {
                        score.push(probability);
                        positive.push(is_positive);
                    }
                }
                roc_auc(&score, &positive)
            }
            Self::BalancedAccuracy | Self::CalibrationError => {
                let mut given = ClassMetrics::default();
                for part in parts() {
                    if part.classes() == 0 {
                        return None;
                    }
                    let each = part.probabilities.chunks_exact(part.classes());
                    for (row, &class) in each.zip(&part.targets) {
                        given.push(row, class as usize);
                    }
                }
                let once = vec![1; rows];
                Some(match self {
                    Self::BalancedAccuracy => given.balanced.value(&once),
                    _ => given.calibration.value(&once),
                })
            }
        }
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
/// `balanced-accuracy`, `brier`, `calibration-error`, and with two classes that both occur `roc-auc`. Times to an
/// event: those of [`measure_survival`] without a basis.
pub fn measure(loss: Loss, outputs: &[f64], rows: &Rows, unit: f64) -> Metrics {
    if loss == Loss::Cox {
        return measure_survival(outputs, rows, None);
    }
    let targets = rows.targets();
    let count = targets.len() as f64;
    let classes = RowsOfClasses::of(loss, outputs, targets);
    let mean = match &classes {
        Some(classes) => classes.losses.iter().sum::<f64>() / count,
        None => loss.mean(outputs, targets, &mut vec![0.0; outputs.len()]),
    };
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
        Loss::Cox => {}
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
            let (mut squares, mut given) = (0.0, ClassMetrics::default());
            for (row, class) in classes.iter().flat_map(|all| all.each(targets)) {
                squares += brier(row, class);
                given.push(row, class);
            }
            put("brier", squares / count);
            let once = vec![1; targets.len()];
            put("balanced-accuracy", given.balanced.value(&once));
            put("calibration-error", given.calibration.value(&once));
            if let Some(auc) = score.and_then(|score| roc_auc(&score, &positive)) {
                put("roc-auc", auc);
            }
        }
    }
    metrics
}

/// Metrics row by row: what [`measure`] gives are the means. `roc-auc`, `rmse`, `balanced-accuracy` and
/// `calibration-error` are no means and are left out.
pub fn row_results(loss: Loss, outputs: &[f64], rows: &Rows, unit: f64) -> RowResults {
    if loss == Loss::Cox {
        return survival_results(outputs, rows, None);
    }
    let targets = rows.targets();
    let count = rows.len().max(1);
    let (width, given) = (outputs.len() / count, targets.len() / count);
    let each = || {
        outputs
            .chunks_exact(width.max(1))
            .zip(targets.chunks_exact(given.max(1)))
    };
    let mut results = RowResults {
        targets: targets.to_vec(),
        subgroups: rows.subgroups().to_vec(),
        groups: rows.groups().to_vec(),
        ..RowResults::default()
    };
    let mut put = |name: &str, values: Vec<f64>| results.scores.insert(name.into(), values);
    if let Some(classes) = RowsOfClasses::of(loss, outputs, targets) {
        let right =
            |(output, y): (&[f64], &[f32])| f64::from(u8::from(predicted(output) == y[0] as usize));
        put("accuracy", each().map(right).collect());
        put("log-loss", classes.losses.clone());
        let squares = classes.each(targets);
        put(
            "brier",
            squares.map(|(row, class)| brier(row, class)).collect(),
        );
        put("loss", classes.losses);
        results.probabilities = classes.probabilities;
        return results;
    }
    // Numbers count one by one, as in the loss; a mask is a whole row.
    let losses = each().map(|(output, target)| match loss {
        Loss::Regression(_) => loss.mean(output, target, &mut vec![0.0; output.len()]),
        _ => loss.row(output, target, &mut vec![0.0; output.len()]),
    });
    put("loss", losses.collect());
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
        Loss::Logistic | Loss::Softmax | Loss::Cox => {}
    }
    results
}

/// Losses and probabilities of rows that have a class, of the same exponentials.
struct RowsOfClasses {
    classes: usize,
    losses: Vec<f64>,
    /// Rows × classes.
    probabilities: Vec<f64>,
}

impl RowsOfClasses {
    /// `None` where targets are no classes. A single output is of two classes.
    fn of(loss: Loss, outputs: &[f64], targets: &[f32]) -> Option<Self> {
        let width = (outputs.len() / targets.len().max(1)).max(1);
        let classes = width.max(2);
        let mut probabilities = vec![0.0; targets.len() * classes];
        let rows = probabilities.chunks_exact_mut(classes);
        let rows = rows.zip(outputs.chunks_exact(width).zip(targets));
        let losses = match loss {
            Loss::Softmax => rows
                .map(|(row, (output, &class))| softmax(output, row) - output[class as usize])
                .collect(),
            Loss::Logistic => rows
                .map(|(row, (output, class))| {
                    let one = 1.0 / (1.0 + (-output[0]).exp());
                    row.copy_from_slice(&[1.0 - one, one]);
                    loss.row(output, &[*class], &mut [0.0])
                })
                .collect(),
            Loss::Regression(_) | Loss::Dice { .. } | Loss::Cox => return None,
        };
        Some(Self {
            classes,
            losses,
            probabilities,
        })
    }

    /// The probabilities of every row, and its class.
    fn each<'a>(&'a self, targets: &'a [f32]) -> impl Iterator<Item = (&'a [f64], usize)> {
        let rows = self.probabilities.chunks_exact(self.classes);
        rows.zip(targets).map(|(row, &class)| (row, class as usize))
    }
}

/// The squared error of a row's probabilities.
fn brier(probabilities: &[f64], class: usize) -> f64 {
    let wanted = |at: usize| f64::from(u8::from(at == class));
    match probabilities {
        [_, one] => (one - wanted(1)).powi(2),
        all => {
            let each = all.iter().enumerate();
            each.map(|(at, p)| (p - wanted(at)).powi(2)).sum()
        }
    }
}

/// Outputs for rows of classes, for the metrics that are no means.
#[derive(Default)]
struct ClassMetrics {
    balanced: BalancedAccuracy,
    calibration: CalibrationError,
}

impl ClassMetrics {
    /// One more row, with the probability of every class and the class that it has.
    fn push(&mut self, probabilities: &[f64], class: usize) {
        let given = predicted(probabilities);
        let right = f64::from(u8::from(given == class));
        self.balanced.rows.push((class, right));
        self.calibration.rows.push((probabilities[given], right));
    }
}

/// The mean target of these rows, for models of `width` outputs: for classes the fraction of each,
/// for one output that of class 1, for times to an event the fraction of rows with an event.
pub fn mean_target(loss: Loss, rows: &Rows, width: usize) -> Vec<f64> {
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
pub fn constant(loss: Loss, mean: &[f64]) -> Vec<f64> {
    // A class or a pixel that no training row has is not called impossible.
    let likely = |&share: &f64| share.clamp(1e-3, 1.0 - 1e-3);
    match loss {
        Loss::Regression(_) => mean.to_vec(),
        // Whatever the rows are, all have the same risk.
        Loss::Cox => vec![0.0; mean.len()],
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

/// The [area under the ROC curve](RocArea); `None` without both kinds.
pub fn roc_auc(score: &[f64], positive: &[bool]) -> Option<f64> {
    let area = RocArea::new(score, positive).value(&vec![1; score.len()]);
    (!area.is_nan()).then_some(area)
}

#[cfg(test)]
mod tests;
