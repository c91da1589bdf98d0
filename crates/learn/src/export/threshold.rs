//! The threshold above which the second of two classes is predicted, chosen on a silo's own rows.

use serde::{Deserialize, Serialize};

/// Fewest rows of each class that a threshold is chosen on. A guess: with fewer, one row moves a rate by
/// more than a tenth.
const LEAST: usize = 10;

/// A threshold for the probability of the second of two classes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Threshold {
    /// The second class, which is predicted where its probability is at least `value`.
    pub class: String,
    /// The threshold, between 0 and 1.
    pub value: f64,
    /// Rates of the threshold on the validation rows that it was chosen on.
    #[serde(alias = "chosen-on")]
    pub chosen_on: Rates,
    /// Rates of the threshold on the held-out rows, on which nothing was chosen; `None` where one of the
    /// classes has no row there.
    #[serde(alias = "held-out")]
    pub held_out: Option<Rates>,
}

/// Rates at a threshold on some rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Rates {
    /// Rows of the second class.
    pub positives: usize,
    /// Rows of the first.
    pub negatives: usize,
    /// The fraction of the positives that are predicted as such.
    pub sensitivity: f64,
    /// The fraction of the negatives that are predicted as such.
    pub specificity: f64,
}

impl Threshold {
    /// The threshold with the largest sum of sensitivity and specificity on the validation rows (Youden's
    /// index, W. J. Youden, Cancer 3, 1950); of equal ones that nearest to one half. Rows are pairs of the
    /// second class's probability and whether they are of it. `None` where a class has fewer than ten rows.
    pub fn youden(
        class: &str,
        validation: &[(f64, bool)],
        held_out: &[(f64, bool)],
    ) -> Option<Self> {
        let mut found: Vec<f64> = validation.iter().map(|(value, _)| *value).collect();
        found.sort_by(f64::total_cmp);
        found.dedup();
        let between = found.windows(2).map(|pair| f64::midpoint(pair[0], pair[1]));
        let enough = Rates::of(validation, 0.5)?;
        if enough.positives < LEAST || enough.negatives < LEAST {
            return None;
        }
        let better = |best: (f64, Rates), value: f64| {
            let rates = Rates::of(validation, value)?;
            let far = |value: f64| (value - 0.5).abs();
            let equal = rates.index() == best.1.index() && far(value) < far(best.0);
            Some(if rates.index() > best.1.index() || equal {
                (value, rates)
            } else {
                best
            })
        };
        let (value, chosen_on) = between.into_iter().try_fold((0.5, enough), better)?;
        Some(Self {
            class: class.to_owned(),
            value,
            chosen_on,
            held_out: Rates::of(held_out, value),
        })
    }

    /// The threshold in one sentence without a full stop, for the silo of this name.
    pub fn in_words(&self, silo: &str) -> String {
        let on = &self.chosen_on;
        let held_out = self.held_out.map_or_else(String::new, |rates| {
            format!(
                "; on {} held-out rows, on which nothing was chosen, {}",
                rates.rows(),
                rates.in_words()
            )
        });
        format!(
            "the threshold {:.3} for {} has the largest sum of sensitivity and specificity on {} validation \
             rows of {silo}: {}{held_out}",
            self.value,
            self.class,
            on.rows(),
            on.in_words()
        )
    }
}

impl Rates {
    /// Rates of a threshold; `None` where a class has no row.
    fn of(rows: &[(f64, bool)], threshold: f64) -> Option<Self> {
        let positives = rows.iter().filter(|(_, is)| *is).count();
        let negatives = rows.len() - positives;
        if positives == 0 || negatives == 0 {
            return None;
        }
        let right = |wanted: bool| {
            let right = |row: &&(f64, bool)| row.1 == wanted && (row.0 >= threshold) == wanted;
            rows.iter().filter(right).count() as f64
        };
        Some(Self {
            positives,
            negatives,
            sensitivity: right(true) / positives as f64,
            specificity: right(false) / negatives as f64,
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.positives + self.negatives
    }

    fn index(&self) -> f64 {
        self.sensitivity + self.specificity
    }

    fn in_words(&self) -> String {
        format!(
            "sensitivity {:.2}, specificity {:.2}",
            self.sensitivity, self.specificity
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Twenty rows of the first class below 0.2, and as many of the second from `low` on.
    fn rows(low: f64) -> Vec<(f64, bool)> {
        let at = |nth: usize| nth as f64 / 100.0;
        let first = (0..20).map(|nth| (at(nth), false));
        first
            .chain((0..20).map(|nth| (low + at(nth), true)))
            .collect()
    }

    #[test]
    fn a_threshold_separates_classes_and_is_measured_on_other_rows() {
        let held_out = [(0.1, false), (0.9, false), (0.5, true)];
        let found = Threshold::youden("died", &rows(0.3), &held_out).unwrap();
        assert!((found.value - 0.245).abs() < 1e-9, "{found:?}");
        let on = found.chosen_on;
        assert_eq!((on.sensitivity, on.specificity), (1.0, 1.0));
        let on = found.held_out.unwrap();
        assert_eq!((on.sensitivity, on.specificity, on.rows()), (1.0, 0.5, 3));
        let said = found.in_words("north");
        for part in [
            "0.245 for died",
            "40 validation rows of north",
            "on 3 held-out rows",
        ] {
            assert!(said.contains(part), "{said}");
        }
        // Where they overlap, no other threshold has a larger sum.
        let mixed = rows(0.1);
        let found = Threshold::youden("died", &mixed, &[]).unwrap();
        let best = found.chosen_on.index();
        for nth in 0..100 {
            let rates = Rates::of(&mixed, f64::from(nth) / 100.0).unwrap();
            assert!(rates.index() <= best, "{nth}: {rates:?} and {found:?}");
        }
        assert_eq!(found.held_out, None);
    }

    #[test]
    fn too_few_rows_of_a_class_give_no_threshold() {
        let few: Vec<_> = rows(0.3).into_iter().take(29).collect();
        assert_eq!(few.iter().filter(|row| row.1).count(), 9);
        assert_eq!(Threshold::youden("died", &few, &[]), None);
        assert_eq!(Threshold::youden("died", &[], &[]), None);
    }
}
