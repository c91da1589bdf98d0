//! What a model gives row by row, as it is kept for comparisons.

use std::collections::BTreeMap;

use methods::learner::RowResults;
use serde::{Deserialize, Serialize};

/// Results on a silo's test rows. Single precision is enough for comparisons and halves the files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredRows {
    /// Values of every row, by metric.
    pub(super) scores: BTreeMap<String, Vec<f32>>,
    /// Class of every row, where the target is one; otherwise empty.
    pub(super) classes: Vec<u16>,
    /// Where there are two classes, the probability of the second one; otherwise empty.
    pub(super) positive: Vec<f32>,
    /// Hash of the targets, by which silos and seeds that hold out the same rows are recognised.
    pub(super) targets: String,
}

impl StoredRows {
    pub(super) fn of(results: &RowResults) -> Self {
        let mut hasher = blake3::Hasher::new();
        for target in &results.targets {
            hasher.update(&target.to_le_bytes());
        }
        let single = |values: &Vec<f64>| values.iter().map(|&value| value as f32).collect();
        let scores = results.scores.iter();
        let is_class = results.classes() > 0;
        let positive = results.positive().unwrap_or_default();
        Self {
            scores: scores
                .map(|(name, values)| (name.clone(), single(values)))
                .collect(),
            classes: match is_class {
                true => results.targets.iter().map(|&class| class as u16).collect(),
                false => Vec::new(),
            },
            positive: positive
                .into_iter()
                .map(|(probability, _)| probability as f32)
                .collect(),
            targets: hasher.finalize().to_hex()[..32].to_owned(),
        }
    }

    /// Whether all values are finite numbers.
    pub(super) fn is_finite(&self) -> bool {
        let scores = self.scores.values().flatten();
        scores.chain(&self.positive).all(|value| value.is_finite())
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.scores.values().next().map_or(0, Vec::len)
    }
}

/// A metric over rows of one or several silos, as a function of how often each row counts.
pub(super) enum Statistic {
    /// The mean of these values.
    Mean(Vec<f64>),
    /// The area under the ROC curve: rows by ascending probability, those of equal probability
    /// together, each with whether it is positive.
    Area(Vec<Vec<(usize, bool)>>),
    /// The mean over classes of the mean over the rows of a class.
    Balanced(Vec<f64>, Vec<u16>),
    /// The mean over tenths of the probability, by rows, of the distance between mean probability and
    /// share of positives (expected calibration error).
    Calibration(Vec<(f64, bool)>),
}

impl Statistic {
    /// A metric over the rows of all parts, in their order; `None` where rows do not give it.
    pub(super) fn of(metric: &str, parts: &[&StoredRows]) -> Option<Self> {
        let flat = |of: &dyn Fn(&StoredRows) -> Option<Vec<f64>>| -> Option<Vec<f64>> {
            let each: Option<Vec<Vec<f64>>> = parts.iter().map(|part| of(part)).collect();
            Some(each?.concat()).filter(|all| !all.is_empty())
        };
        let pairs = || -> Option<Vec<(f64, bool)>> {
            let mut all = Vec::new();
            for part in parts {
                if part.positive.len() != part.len() {
                    return None;
                }
                let pairs = part.positive.iter().zip(&part.classes);
                all.extend(pairs.map(|(&p, &class)| (f64::from(p), class == 1)));
            }
            Some(all).filter(|all| !all.is_empty())
        };
        let score = |name: &'static str| {
            move |part: &StoredRows| -> Option<Vec<f64>> {
                let values = part.scores.get(name)?;
                Some(values.iter().map(|&value| f64::from(value)).collect())
            }
        };
        match metric {
            "roc-auc" => {
                let rows = pairs()?;
                let mut order: Vec<usize> = (0..rows.len()).collect();
                order.sort_by(|&a, &b| rows[a].0.total_cmp(&rows[b].0));
                let equal = order.chunk_by(|&a, &b| rows[a].0 == rows[b].0);
                let equal =
                    equal.map(|chunk| chunk.iter().map(|&row| (row, rows[row].1)).collect());
                Some(Self::Area(equal.collect()))
            }
            "balanced-accuracy" => {
                let right = flat(&score("accuracy"))?;
                let classes = parts.iter().flat_map(|part| part.classes.clone()).collect();
                Some(Self::Balanced(right, classes))
            }
            "brier" if parts.iter().all(|part| !part.scores.contains_key("brier")) => {
                let each = pairs()?.into_iter();
                Some(Self::Mean(
                    each.map(|(p, y)| (p - f64::from(u8::from(y))).powi(2))
                        .collect(),
                ))
            }
            "calibration-error" => Some(Self::Calibration(pairs()?)),
            "rmse" => None,
            metric => {
                let values = flat(&|part: &StoredRows| {
                    let values = part.scores.get(metric)?;
                    Some(values.iter().map(|&value| f64::from(value)).collect())
                })?;
                Some(Self::Mean(values))
            }
        }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Mean(values) | Self::Balanced(values, _) => values.len(),
            Self::Area(equal) => equal.iter().map(Vec::len).sum(),
            Self::Calibration(rows) => rows.len(),
        }
    }

    /// The value where row i counts `times[i]` times. Not a number where it is not defined, as for
    /// an area without positive rows.
    pub(super) fn value(&self, times: &[u32]) -> f64 {
        match self {
            Self::Mean(values) => {
                let (mut sum, mut count) = (0.0, 0.0);
                for (value, &times) in values.iter().zip(times) {
                    sum += value * f64::from(times);
                    count += f64::from(times);
                }
                sum / count
            }
            Self::Area(equal) => {
                let (mut positives, mut negatives, mut wins) = (0.0, 0.0, 0.0);
                for rows in equal {
                    let (mut ups, mut downs) = (0.0, 0.0);
                    for &(row, positive) in rows {
                        let side = if positive { &mut ups } else { &mut downs };
                        *side += f64::from(times[row]);
                    }
                    wins += ups * (negatives + downs / 2.0);
                    positives += ups;
                    negatives += downs;
                }
                wins / (positives * negatives)
            }
            Self::Balanced(values, classes) => {
                let mut sums = BTreeMap::<u16, (f64, f64)>::new();
                for ((value, class), &times) in values.iter().zip(classes).zip(times) {
                    let entry = sums.entry(*class).or_default();
                    entry.0 += value * f64::from(times);
                    entry.1 += f64::from(times);
                }
                let there = sums.values().filter(|(_, count)| *count > 0.0);
                let means: Vec<f64> = there.map(|(sum, count)| sum / count).collect();
                means.iter().sum::<f64>() / means.len() as f64
            }
            Self::Calibration(rows) => {
                let mut bins = [(0.0, 0.0, 0.0); 10];
                for ((p, positive), &times) in rows.iter().zip(times) {
                    let bin = &mut bins[((p * 10.0) as usize).min(9)];
                    bin.0 += p * f64::from(times);
                    bin.1 += f64::from(u8::from(*positive)) * f64::from(times);
                    bin.2 += f64::from(times);
                }
                let all: f64 = bins.iter().map(|bin| bin.2).sum();
                bins.iter().map(|(p, y, _)| (p - y).abs()).sum::<f64>() / all
            }
        }
    }

    /// The value on the rows as they are.
    pub(super) fn measured(&self) -> f64 {
        self.value(&vec![1; self.rows()])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rows(p: &[f32], classes: &[u16]) -> StoredRows {
        let right = p.iter().zip(classes);
        let right = right.map(|(&p, &class)| f32::from(u8::from((p > 0.5) == (class == 1))));
        StoredRows {
            scores: [("accuracy".to_owned(), right.collect())].into(),
            classes: classes.to_vec(),
            positive: p.to_vec(),
            targets: String::new(),
        }
    }

    fn value(metric: &str, parts: &[&StoredRows]) -> f64 {
        Statistic::of(metric, parts).unwrap().measured()
    }

    #[test]
    fn metrics_of_a_union_have_known_values() {
        let first = rows(&[0.1, 0.4], &[0, 0]);
        let second = rows(&[0.35, 0.8], &[1, 1]);
        let both = [&first, &second];
        // Of one class alone there is no area; over both silos 3 of 4 pairs are in order.
        assert!(value("roc-auc", &[&first]).is_nan());
        assert_eq!(value("roc-auc", &both), 0.75);
        assert_eq!(value("accuracy", &both), 0.75);
        assert_eq!(value("balanced-accuracy", &both), 0.75);
        let brier = (0.01 + 0.16 + 0.65f64.powi(2) + 0.04) / 4.0;
        assert!((value("brier", &both) - brier).abs() < 1e-6);
        // Four rows in bins of their own.
        let apart = (0.1 + 0.4 + 0.65 + 0.2) / 4.0;
        assert!((value("calibration-error", &both) - apart).abs() < 1e-6);
        assert!(Statistic::of("mae", &both).is_none());
    }

    #[test]
    fn balanced_accuracy_counts_every_class_alike() {
        let rows = rows(&[0.1, 0.1, 0.1, 0.1], &[0, 0, 0, 1]);
        assert_eq!(value("accuracy", &[&rows]), 0.75);
        assert_eq!(value("balanced-accuracy", &[&rows]), 0.5);
    }

    #[test]
    fn rows_that_are_drawn_twice_count_twice() {
        let rows = rows(&[0.9, 0.9, 0.2], &[1, 0, 0]);
        let accuracy = Statistic::of("accuracy", &[&rows]).unwrap();
        assert_eq!(accuracy.value(&[2, 1, 0]), 2.0 / 3.0);
        let area = Statistic::of("roc-auc", &[&rows]).unwrap();
        assert_eq!(area.value(&[1, 1, 0]), 0.5);
        assert_eq!(area.value(&[1, 0, 3]), 1.0);
    }
}
