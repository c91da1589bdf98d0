//! Outputs of a model row by row, as they are kept for comparisons.

use std::collections::BTreeMap;

use methods::learner::{RowResults, together};
use serde::{Deserialize, Serialize};
use task::survival::{NUMBERS, ObservedTime, observed};

use crate::statistic::RowOutputs;

/// Results on a silo's test rows. Single precision is enough for comparisons and halves the files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredRows {
    /// Values of every row, by metric.
    pub(super) scores: BTreeMap<String, Vec<f32>>,
    /// Class of every row, where the target is one; otherwise empty.
    pub(super) classes: Vec<u16>,
    /// Probability of the second of two classes; otherwise empty.
    pub(super) second: Vec<f32>,
    /// Probability of the class that the row is given, of more than two; otherwise empty.
    pub(super) confidences: Vec<f32>,
    /// Where the target is a time to an event, its three numbers for every row; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lifetimes: Vec<f32>,
    /// For those the risk score of every row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) risks: Vec<f32>,
    /// For those the time until which survival is measured, and the probability of every row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) surviving: Option<(f32, Vec<f32>)>,
    /// The subgroup of every row, by its position among their names; empty where rows have none.
    pub(super) subgroups: Vec<u16>,
    /// The rows of every group, such as the visits of a patient, as a number for each row; empty where rows
    /// have none.
    #[serde(default)]
    pub(super) groups: Vec<u32>,
    /// Hash of the targets, by which silos and seeds that hold out the same rows are recognised.
    pub(super) targets: String,
}

impl StoredRows {
    pub(super) fn of(results: &RowResults) -> Self {
        let mut hasher = blake3::Hasher::new();
        for target in &results.targets {
            hasher.update(&target.to_le_bytes());
        }
        let single = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
        let scores = results.scores.iter();
        let second = results.second_class();
        let confidences = results.confidences().filter(|_| second.is_none());
        Self {
            scores: scores
                .map(|(name, values)| (name.clone(), single(values.clone())))
                .collect(),
            classes: RowOutputs::classes(results).unwrap_or_default(),
            second: single(second.unwrap_or_default()),
            confidences: single(confidences.unwrap_or_default()),
            lifetimes: match results.risks.is_empty() {
                true => Vec::new(),
                false => results.targets.clone(),
            },
            risks: single(results.risks.clone()),
            surviving: RowOutputs::surviving(results).map(|(until, of)| (until, single(of))),
            subgroups: results.subgroups.clone(),
            groups: results.groups.clone(),
            targets: hasher.finalize().to_hex()[..32].to_owned(),
        }
    }

    /// Returns whether all values are finite numbers.
    pub(super) fn is_finite(&self) -> bool {
        let scores = self.scores.values().flatten();
        let surviving = self.surviving.iter().flat_map(|(_, of)| of);
        let all = scores.chain(&self.second).chain(&self.confidences);
        let all = all.chain(&self.risks).chain(surviving);
        all.into_iter().all(|value| value.is_finite())
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.scores.values().next().map_or(0, Vec::len)
    }

    /// The rows of every group; every row by itself where rows have none.
    pub(super) fn together(&self) -> Vec<Vec<usize>> {
        together(&self.groups, self.len())
    }

    /// The rows of one subgroup.
    pub(super) fn of_subgroup(&self, subgroup: u16) -> Self {
        let own = |row: &usize| self.subgroups.get(*row) == Some(&subgroup);
        let rows: Vec<usize> = (0..self.len()).filter(own).collect();
        let pick = |values: &Vec<f32>| -> Vec<f32> {
            let each = rows.iter().filter_map(|&row| values.get(row));
            each.copied().collect()
        };
        let scores = self.scores.iter();
        Self {
            scores: scores
                .map(|(name, values)| (name.clone(), pick(values)))
                .collect(),
            classes: rows
                .iter()
                .filter_map(|&row| self.classes.get(row).copied())
                .collect(),
            second: pick(&self.second),
            confidences: pick(&self.confidences),
            lifetimes: rows
                .iter()
                .filter_map(|&row| self.lifetimes.chunks_exact(NUMBERS).nth(row))
                .flatten()
                .copied()
                .collect(),
            risks: pick(&self.risks),
            surviving: self
                .surviving
                .as_ref()
                .map(|(until, of)| (*until, pick(of))),
            subgroups: vec![subgroup; rows.len()],
            groups: rows
                .iter()
                .filter_map(|&row| self.groups.get(row).copied())
                .collect(),
            targets: self.targets.clone(),
        }
    }

    /// Converts `values`, if there is one for every row.
    fn whole(&self, values: &[f32]) -> Option<Vec<f64>> {
        let whole = values.len() == self.len();
        whole.then(|| values.iter().map(|&value| f64::from(value)).collect())
    }
}

impl RowOutputs for StoredRows {
    fn scores(&self, metric: &str) -> Option<Vec<f64>> {
        self.whole(self.scores.get(metric)?)
    }

    fn classes(&self) -> Option<Vec<u16>> {
        (self.classes.len() == self.len()).then(|| self.classes.clone())
    }

    fn second_class(&self) -> Option<Vec<f64>> {
        self.whole(&self.second)
    }

    fn confidences(&self) -> Option<Vec<f64>> {
        match self.second_class() {
            Some(second) => Some(second.into_iter().map(|p| p.max(1.0 - p)).collect()),
            None => self.whole(&self.confidences),
        }
    }

    fn risks(&self) -> Option<(Vec<ObservedTime>, Vec<f64>)> {
        let all = self.lifetimes.len() == NUMBERS * self.len() && self.len() > 0;
        all.then(|| Some((observed(&self.lifetimes), self.whole(&self.risks)?)))?
    }

    fn surviving(&self) -> Option<(f32, Vec<f64>)> {
        let (until, of) = self.surviving.as_ref()?;
        Some((*until, self.whole(of)?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use methods::learner::Surviving;

    use super::*;
    use crate::statistic::Statistic;

    fn results(probabilities: Vec<f64>, classes: &[u16], right: &[f64]) -> RowResults {
        RowResults {
            scores: [("accuracy".to_owned(), right.to_vec())].into(),
            targets: classes.iter().map(|&class| f32::from(class)).collect(),
            probabilities,
            ..RowResults::default()
        }
    }

    /// Twelve rows with an event and one without, whose risks fall with time but for the last two.
    fn lifetimes() -> RowResults {
        let targets =
            (0..13).flat_map(|row: u8| [f32::from(u8::from(row < 12)), 1.0 + f32::from(row), 0.0]);
        let risks: Vec<f64> = (0..13)
            .map(|row| if row < 11 { -f64::from(row) } else { 1.0 })
            .collect();
        RowResults {
            scores: [("loss".to_owned(), vec![0.5; 13])].into(),
            targets: targets.collect(),
            surviving: Some(Surviving {
                until: 6.0,
                probabilities: vec![0.5; 13],
            }),
            risks,
            ..RowResults::default()
        }
    }

    #[test]
    fn times_to_an_event_are_stored_with_their_risks() {
        let results = lifetimes();
        let mut stored = StoredRows::of(&results);
        let text = serde_json::to_string(&stored).unwrap();
        stored = serde_json::from_str(&text).unwrap();
        assert!(stored.is_finite());
        let units = stored.together();
        for metric in ["concordance", "calibration-at-time"] {
            let here = Statistic::of(metric, &[&stored]).unwrap();
            let there = Statistic::of(metric, &[&results]).unwrap();
            assert!(
                (here.measured() - there.measured()).abs() < 1e-6,
                "{metric}"
            );
            assert_eq!(here.units_of_classes(&units), Some([(1, 12)].into()));
            assert!(here.has_enough_events(&units));
            assert!(!here.has_enough_events(&units[..9]), "nine events");
        }
        // Of 78 pairs 11 · 2 are lost, and one is tied.
        let index = Statistic::of("concordance", &[&stored]).unwrap();
        assert!((index.measured() - (78.0 - 22.5) / 78.0).abs() < 1e-12);
        // Pairs of two silos are none.
        let both = Statistic::of("concordance", &[&stored, &stored]).unwrap();
        assert_eq!(both.measured(), index.measured());
        // Kaplan-Meier at 6: six of thirteen have had their event.
        let calibration = Statistic::of("calibration-at-time", &[&stored]).unwrap();
        assert!((calibration.measured() - (7.0 / 13.0 - 0.5)).abs() < 1e-6);
        stored.subgroups = (0..13).map(|row| row % 2).collect();
        let own = stored.of_subgroup(1);
        assert_eq!((own.risks.len(), own.lifetimes.len()), (6, 18));
        stored.risks[3] = f32::NAN;
        assert!(!stored.is_finite() && Statistic::of("concordance", &[&stored]).is_none());
    }

    #[test]
    fn rows_give_the_same_metrics_when_they_are_stored() {
        let two = results(
            vec![0.92, 0.08, 0.62, 0.38, 0.66, 0.34, 0.23, 0.77],
            &[0, 0, 1, 1],
            &[1.0, 1.0, 0.0, 1.0],
        );
        let three = results(
            vec![0.2, 0.53, 0.27, 0.92, 0.04, 0.04, 0.15, 0.11, 0.74],
            &[1, 1, 2],
            &[1.0, 0.0, 1.0],
        );
        for results in [two, three] {
            let stored = StoredRows::of(&results);
            let text = serde_json::to_string(&stored).unwrap();
            let stored: StoredRows = serde_json::from_str(&text).unwrap();
            for metric in [
                "accuracy",
                "balanced-accuracy",
                "calibration-error",
                "roc-auc",
            ] {
                let here = Statistic::of(metric, &[&stored]).map(|one| one.measured());
                let there = Statistic::of(metric, &[&results]).map(|one| one.measured());
                match (here, there) {
                    (Some(here), Some(there)) => {
                        assert!((here - there).abs() < 1e-6, "{metric}: {here}, {there}");
                    }
                    (here, there) => assert_eq!((here, there, metric), (None, None, "roc-auc")),
                }
            }
        }
    }
}
