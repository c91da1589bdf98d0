//! Numbers with an interval.

use serde::Serialize;

use crate::statistic::students_interval;

/// Measurement of an attack, and the 95 % interval in which the truth lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AttackEstimate {
    /// As measured.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl AttackEstimate {
    /// The mean of independent runs, with the interval of Student's distribution. `None` of fewer than
    /// two runs.
    pub(crate) fn over(runs: &[f64]) -> Option<Self> {
        if runs.len() < 2 {
            return None;
        }
        let (mean, by) = students_interval(runs);
        Some(Self {
            value: mean,
            low: mean - by,
            high: mean + by,
        })
    }

    /// The number and its interval in words, with so many decimal places.
    pub fn words(&self, places: usize) -> String {
        let Self { value, low, high } = self;
        format!("{value:.places$} (95 % interval {low:.places$} to {high:.places$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_is_students() {
        let runs = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
        let found = AttackEstimate::over(&runs);
        let by = found.map(|found| (found.high - found.value, found.value - found.low));
        // Deviation 3.0277, over √10, times 2.262.
        let (above, below) = by.unwrap_or_default();
        assert!(
            (above - 2.166).abs() < 0.02 && (below - above).abs() < 1e-9,
            "{found:?}"
        );
        assert_eq!(AttackEstimate::over(&[1.0]), None);
    }
}
