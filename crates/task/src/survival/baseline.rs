//! The baseline hazard of a silo, which makes probabilities of risk scores.

use serde::{Deserialize, Serialize};

use super::ObservedTime;
use super::partial::event_times;

/// Breslow's estimate of the cumulative hazard (Breslow 1972) of a row with a given risk score, from the rows of one
/// silo and their scores: a step function that stays at the silo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Baseline {
    /// The score of the rows whose hazard it is: the mean of those that it is estimated from.
    pub score: f64,
    /// The times of events, ascending.
    pub times: Vec<f32>,
    /// The cumulative hazard from each of them on; as many.
    pub hazards: Vec<f64>,
}

impl Baseline {
    /// Of rows with these scores; `None` without an event.
    ///
    /// # Panics
    /// If there is not a score for every row.
    pub fn of(scores: &[f64], rows: &[ObservedTime]) -> Option<Self> {
        let (events, top) = event_times(scores, rows);
        if events.is_empty() {
            return None;
        }
        let score = scores.iter().sum::<f64>() / scores.len() as f64;
        let relative = (score - top).exp();
        let (mut times, mut hazards, mut hazard) = (Vec::new(), Vec::new(), 0.0);
        for event in &events {
            hazard += relative * event.breslow();
            times.push(event.time());
            hazards.push(hazard);
        }
        Some(Self {
            score,
            times,
            hazards,
        })
    }

    /// The cumulative hazard until this time of a row with the baseline's score; after the last event that of the last.
    pub fn hazard(&self, time: f64) -> f64 {
        let steps = self.times.partition_point(|step| f64::from(*step) <= time);
        match steps {
            0 => 0.0,
            steps => self.hazards[steps - 1],
        }
    }

    /// The probability that a row with this score has no event until this time: `exp(−H(t) e^(η − η₀))`.
    pub fn survival(&self, score: f64, time: f64) -> f64 {
        // A hazard of 0 has no logarithm, and no risk multiplies it.
        let log = self.hazard(time).ln() + (score - self.score);
        (-log.exp()).exp()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rows() -> Vec<ObservedTime> {
        let row = |event, time| ObservedTime {
            event,
            time,
            entry: 0.0,
        };
        vec![
            row(true, 1.0),
            row(false, 2.0),
            row(true, 3.0),
            row(false, 4.0),
        ]
    }

    #[test]
    fn without_risks_the_hazard_is_events_over_rows_at_risk() {
        let baseline = Baseline::of(&[7.0; 4], &rows()).unwrap();
        assert_eq!((baseline.score, baseline.hazard(0.9)), (7.0, 0.0));
        assert!((baseline.hazard(1.0) - 0.25).abs() < 1e-12);
        assert!((baseline.hazard(9.0) - 0.75).abs() < 1e-12);
        assert_eq!(baseline.survival(7.0, 0.5), 1.0);
        assert!((baseline.survival(7.0, 3.0) - (-0.75f64).exp()).abs() < 1e-12);
    }

    #[test]
    fn a_row_is_at_risk_by_its_score() {
        let (two, one) = (2f64.ln(), 0.0);
        let baseline = Baseline::of(&[two, one, one, two], &rows()).unwrap();
        // 1/(2+1+1+2) and 1/(1+2) for a row of score 0.
        let zero: f64 = 1.0 / 6.0 + 1.0 / 3.0;
        assert!((baseline.survival(0.0, 3.0) - (-zero).exp()).abs() < 1e-12);
        assert!((baseline.survival(two, 3.0) - (-2.0 * zero).exp()).abs() < 1e-12);
        // Scores that differ by a constant are the same model.
        let moved = Baseline::of(&[two + 5.0, 5.0, 5.0, two + 5.0], &rows()).unwrap();
        assert!((moved.survival(5.0, 3.0) - (-zero).exp()).abs() < 1e-12);
    }

    #[test]
    fn without_an_event_there_is_no_baseline() {
        let censored: Vec<ObservedTime> = rows().into_iter().filter(|row| !row.event).collect();
        assert_eq!(Baseline::of(&[0.0; 2], &censored), None);
        let far = Baseline::of(&[800.0, 0.0, -800.0, 0.0], &rows()).unwrap();
        assert!(far.survival(0.0, 3.0).is_finite() && far.survival(800.0, 3.0).is_finite());
    }
}
