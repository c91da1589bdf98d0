//! Fit of probabilities of no event to held-out rows: the basis that a silo's training rows give, and the measures.

use super::{Baseline, KaplanMeier, ObservedTime};

/// Steps of the integral of a Brier score.
const STEPS: usize = 100;

/// The part of a silo's training rows that has to be at risk at the horizon.
const AT_RISK: f64 = 0.1;

/// The basis that the training rows of a silo give for measuring survival: its baseline, how rows are censored there, and the
/// time up to which is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct SurvivalBasis {
    /// The baseline of the training rows with the scores of the model.
    pub baseline: Baseline,
    censoring: KaplanMeier,
    /// The time up to which survival is measured.
    pub horizon: f32,
}

/// Why there is no basis for measuring survival at a silo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBasis {
    /// No training row has an event.
    NoEvent,
    /// Rows enter late, so those that are there are not all that began.
    LateEntry,
    /// Fewer than a tenth of the training rows are at risk at the agreed time; without one, at every event.
    FarHorizon,
}

/// The time up to which survival is measured at a silo with these training rows: the agreed one, or by default the
/// last time of an event at which a tenth of the rows is at risk.
///
/// # Errors
/// [`NoBasis`].
pub fn horizon(rows: &[ObservedTime], agreed: Option<f64>) -> Result<f32, NoBasis> {
    if !rows.iter().any(|row| row.event) {
        return Err(NoBasis::NoEvent);
    }
    if rows.iter().any(|row| row.entry > 0.0) {
        return Err(NoBasis::LateEntry);
    }
    let mut ends: Vec<f32> = rows.iter().map(|row| row.time).collect();
    ends.sort_by(f32::total_cmp);
    let enough = |time: f32| {
        let at_risk = ends.len() - ends.partition_point(|end| *end < time);
        at_risk as f64 >= AT_RISK * ends.len() as f64
    };
    let found = match agreed.map(|time| time as f32) {
        Some(time) => Some(time).filter(|&time| enough(time)),
        None => {
            let events = rows.iter().filter(|row| row.event).map(|row| row.time);
            events.filter(|&time| enough(time)).reduce(f32::max)
        }
    };
    found.ok_or(NoBasis::FarHorizon)
}

impl SurvivalBasis {
    /// Of a silo's training rows and their scores, and the agreed time up to which is measured.
    ///
    /// # Errors
    /// [`NoBasis`].
    ///
    /// # Panics
    /// If there is not a score for every row.
    pub fn of(scores: &[f64], rows: &[ObservedTime], agreed: Option<f64>) -> Result<Self, NoBasis> {
        Ok(Self {
            horizon: horizon(rows, agreed)?,
            baseline: Baseline::of(scores, rows).ok_or(NoBasis::NoEvent)?,
            censoring: KaplanMeier::of_censoring(rows),
        })
    }

    /// The probability of no event until the horizon, for rows with these scores.
    pub fn surviving(&self, scores: &[f64]) -> Vec<f64> {
        let each = scores.iter();
        each.map(|&score| self.baseline.survival(score, self.horizon.into()))
            .collect()
    }

    /// The integrated Brier score of every row (Graf et al. 1999), of which the mean is that of the model:
    ///
    /// `1/τ ∫₀^τ [ 1{T ≤ t, event} S(t)² / G(T−) + 1{T > t} (1 − S(t))² / G(t) ] dt`
    ///
    /// up to the horizon `τ`, in the middle of a hundred equal steps, with the probability `S` of no event and the
    /// probability `G` of not being censored, a Kaplan-Meier estimate of the silo's training rows.
    pub fn brier(&self, scores: &[f64], rows: &[ObservedTime]) -> Vec<f64> {
        let step = f64::from(self.horizon) / STEPS as f64;
        let times: Vec<(f32, f64, f64)> = (0..STEPS)
            .map(|at| {
                let time = (at as f64 + 0.5) * step;
                let single = time as f32;
                let observed = self.censoring.after_time(single);
                (single, self.baseline.hazard(time).ln(), observed)
            })
            .collect();
        let row = |(score, row): (&f64, &ObservedTime)| {
            let until = self.censoring.before(row.time);
            let each = times.iter().map(|&(time, hazard, observed)| {
                let survival = (-(hazard + score - self.baseline.score).exp()).exp();
                match (row.time > time, row.event) {
                    (true, _) => (1.0 - survival).powi(2) / observed,
                    (false, true) => survival.powi(2) / until,
                    (false, false) => 0.0,
                }
            });
            each.sum::<f64>() / STEPS as f64
        };
        scores.iter().zip(rows).map(row).collect()
    }
}

/// Calibration at a time: how far the mean predicted probability of no event until then is from its Kaplan-Meier
/// estimate, as a function of how often each row counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CalibrationAtTime {
    parts: Vec<PredictedRows>,
}

#[derive(Debug, Clone, PartialEq)]
struct PredictedRows {
    rows: Vec<ObservedTime>,
    surviving: Vec<f64>,
    horizon: f32,
}

impl CalibrationAtTime {
    /// Adds the rows of a silo, each with the predicted probability of no event until its horizon.
    ///
    /// # Panics
    /// If one of the two lists is longer than the other.
    pub fn push(&mut self, surviving: Vec<f64>, rows: Vec<ObservedTime>, horizon: f32) {
        assert_eq!(surviving.len(), rows.len(), "a probability for every row");
        self.parts.push(PredictedRows {
            rows,
            surviving,
            horizon,
        });
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows.len()).sum()
    }

    /// Returns whether each row has an event, in the order in which they were given.
    pub fn events(&self) -> Vec<bool> {
        let rows = self.parts.iter().flat_map(|part| &part.rows);
        rows.map(|row| row.event).collect()
    }

    /// The absolute difference where row i counts `times[i]` times, of several silos the mean by rows; not a number
    /// without rows, and where no row of a silo is observed as long as that.
    ///
    /// # Panics
    /// If there are fewer numbers than rows.
    pub fn value(&self, times: &[u32]) -> f64 {
        let (mut rest, mut sum, mut count) = (times, 0.0, 0.0);
        for part in &self.parts {
            let (own, others) = rest.split_at(part.rows.len());
            rest = others;
            let rows: f64 = own.iter().map(|&times| f64::from(times)).sum();
            if rows == 0.0 {
                continue;
            }
            let weighted = part.surviving.iter().zip(own);
            let predicted: f64 = weighted.map(|(p, &times)| p * f64::from(times)).sum();
            let observed = KaplanMeier::weighted(&part.rows, own).at(part.horizon);
            sum += rows * (predicted / rows - observed.unwrap_or(f64::NAN)).abs();
            count += rows;
        }
        sum / count
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rows(of: &[(u8, f32)]) -> Vec<ObservedTime> {
        let row = |&(event, time): &(u8, f32)| ObservedTime {
            event: event == 1,
            time,
            entry: 0.0,
        };
        of.iter().map(row).collect()
    }

    #[test]
    fn the_horizon_is_the_last_event_with_a_tenth_at_risk() {
        let mut all = vec![(0, 1.0); 19];
        all.extend([(1, 0.5), (1, 2.0), (1, 3.0)]);
        // Of 22 rows 2 are at risk at 2: fewer than a tenth.
        assert_eq!(horizon(&rows(&all), None), Ok(0.5));
        assert_eq!(horizon(&rows(&all), Some(1.0)), Ok(1.0));
        assert_eq!(horizon(&rows(&all), Some(1.5)), Err(NoBasis::FarHorizon));
        assert_eq!(horizon(&rows(&[(0, 1.0)]), None), Err(NoBasis::NoEvent));
        // The only event comes after nearly all have left: an agreed time before it holds.
        let mut one = vec![(0, 1.0); 19];
        one.push((1, 5.0));
        assert_eq!(horizon(&rows(&one), None), Err(NoBasis::FarHorizon));
        assert_eq!(horizon(&rows(&one), Some(1.0)), Ok(1.0));
        let mut late = rows(&[(1, 1.0), (0, 2.0)]);
        late[1].entry = 0.5;
        assert_eq!(horizon(&late, None), Err(NoBasis::LateEntry));
    }

    #[test]
    fn without_censoring_the_brier_score_is_a_squared_error() {
        // Half have their event at 1, the others at 2: the model says S = exp(−1/2) from 1 on.
        let all = rows(&[(1, 1.0), (1, 2.0)]);
        let basis = SurvivalBasis::of(&[0.0; 2], &all, Some(2.0)).unwrap();
        let survival = (-0.5f64).exp();
        let scores = basis.brier(&[0.0; 2], &all);
        // From 0 to 1 both are sure to live, and do; from 1 to 2 one is dead.
        assert!(
            (scores[0] - survival.powi(2) / 2.0).abs() < 1e-12,
            "{scores:?}"
        );
        assert!((scores[1] - (1.0 - survival).powi(2) / 2.0).abs() < 1e-12);
        assert!((basis.surviving(&[0.0])[0] - (-1.5f64).exp()).abs() < 1e-12);
    }

    #[test]
    fn rows_count_by_the_inverse_probability_of_censoring() {
        // One of four is censored at 1: after it three in four are observed.
        let all = rows(&[(0, 1.0), (1, 2.0), (1, 4.0), (0, 4.0)]);
        let basis = SurvivalBasis::of(&[0.0; 4], &all, Some(4.0)).unwrap();
        let survival = (-1f64 / 3.0).exp();
        let scores = basis.brier(&[0.0; 4], &all);
        // Until 2 nobody has an event, and the model says so.
        let half = |value: f64| value / 2.0;
        assert_eq!(scores[0], 0.0, "censored");
        assert!(
            (scores[1] - half(survival.powi(2) / 0.75)).abs() < 1e-12,
            "{scores:?}"
        );
        assert!((scores[2] - half((1.0 - survival).powi(2) / 0.75)).abs() < 1e-12);
    }

    #[test]
    fn calibration_compares_with_kaplan_meier_at_the_horizon() {
        let held_out = rows(&[(1, 1.0), (0, 2.0), (1, 3.0), (0, 4.0)]);
        let mut calibration = CalibrationAtTime::default();
        calibration.push(vec![0.5; 4], held_out.clone(), 3.0);
        assert!((calibration.value(&[1; 4]) - 0.125).abs() < 1e-12);
        // Without the first row the estimate is 1/2 at 3.
        assert!(calibration.value(&[0, 1, 1, 1]).abs() < 1e-12);
        // Nobody is observed until then.
        assert!(calibration.value(&[1, 1, 0, 0]).is_nan());
        calibration.push(vec![0.375; 4], held_out, 3.0);
        assert!((calibration.value(&[1; 8]) - 0.0625).abs() < 1e-12);
    }
}
