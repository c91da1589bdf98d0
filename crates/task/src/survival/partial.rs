//! Cox's partial likelihood of risk scores, with Efron's ties and left truncation.

use super::{ObservedTime, observed};

/// The least sum of relative hazards that is told from 0: scores that are 690 below the largest one count as that far
/// below, so that models that diverge have a loss and a slope that are numbers.
const LEAST: f64 = 1e-300;

/// Rows of which one has its event at a time at which others have theirs (D), and all that are at risk then (R).
pub(super) struct EventTime {
    time: f32,
    /// Numbers of the rows with an event then.
    events: Vec<usize>,
    /// `Σ_R exp(η − top)`.
    at_risk: f64,
    /// `Σ_D exp(η − top)`.
    dying: f64,
}

impl EventTime {
    /// The time.
    pub(super) fn time(&self) -> f32 {
        self.time
    }

    /// Breslow's step of the hazard of a row with the largest score.
    pub(super) fn breslow(&self) -> f64 {
        self.events.len() as f64 / self.at_risk.max(LEAST)
    }

    /// The part of the dying that Efron takes off, and what is left of the risk set, for each of its events.
    fn terms(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let count = self.events.len() as f64;
        (0..self.events.len()).map(move |event| {
            let part = event as f64 / count;
            let rest = (self.at_risk - part * self.dying).max(LEAST);
            (part, rest)
        })
    }
}

/// All times of events, the first one first, and the largest score.
pub(super) fn event_times(scores: &[f64], rows: &[ObservedTime]) -> (Vec<EventTime>, f64) {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut latest: Vec<usize> = (0..rows.len()).collect();
    // Rows of one time in their order: the sort is stable.
    latest.sort_by(|&a, &b| rows[b].time.total_cmp(&rows[a].time));
    let earliest = rows
        .iter()
        .map(|row| row.time)
        .fold(f32::INFINITY, f32::min);
    let truncated = rows.iter().any(|row| row.entry >= earliest);
    let weight = |row: usize| (scores[row] - top).exp();
    let mut times = Vec::new();
    let mut at_risk = 0.0;
    for same in latest.chunk_by(|&a, &b| rows[a].time == rows[b].time) {
        let time = rows[same[0]].time;
        at_risk += same.iter().map(|&row| weight(row)).sum::<f64>();
        let events: Vec<usize> = same
            .iter()
            .copied()
            .filter(|&row| rows[row].event)
            .collect();
        if events.is_empty() {
            continue;
        }
        times.push(EventTime {
            time,
            dying: events.iter().map(|&row| weight(row)).sum(),
            at_risk: match truncated {
                false => at_risk,
                // Taking rows off again that enter later would leave rounding where few rows are at risk.
                true => {
                    let there = (0..rows.len()).filter(|&row| rows[row].is_at_risk(time));
                    there.map(weight).sum()
                }
            },
            events,
        });
    }
    times.reverse();
    (times, top)
}

/// The negative log partial likelihood of risk scores, divided by the number of events (Cox 1975, with ties as Efron
/// 1977 counts them), and into `slopes` its gradient with respect to every score:
///
/// `−1/E Σ_s [ Σ_D η − Σ_{l<d} ln( Σ_R exp η − l/d Σ_D exp η ) ]`
///
/// over the times `s` of the `E` events, with the `d` rows D that have theirs at `s` and the rows R at risk then. Rows
/// are at risk together with those given here alone: all rows of a silo in a full step, those of a mini-batch in a
/// small one, as in DeepSurv (Katzman et al. 2018), which is an approximation whose risk sets are samples. Without an
/// event the loss and all slopes are 0.
///
/// `scores` and `slopes` have one number for each row, `targets` [three](super::NUMBERS).
///
/// # Panics
/// If there is another number of targets.
pub fn partial_likelihood(scores: &[f64], targets: &[f32], slopes: &mut [f64]) -> f64 {
    let rows = observed(targets);
    assert_eq!(scores.len(), rows.len(), "a score for every row");
    let (times, top) = event_times(scores, &rows);
    slopes.fill(0.0);
    let count: usize = times.iter().map(|time| time.events.len()).sum();
    if count == 0 {
        return 0.0;
    }
    let each = 1.0 / count as f64;
    // Σ 1/A over the terms of every time, and the sums of these up to a time: a row is at risk in all times up to its own.
    let mut pulls = Vec::with_capacity(times.len());
    let (mut loss, mut cumulated) = (0.0, 0.0);
    for time in &times {
        let (mut pull, mut spared) = (0.0, 0.0);
        for (part, rest) in time.terms() {
            loss += top + rest.ln();
            pull += 1.0 / rest;
            spared += part / rest;
        }
        for &row in &time.events {
            loss -= scores[row];
            slopes[row] -= each * (1.0 + (scores[row] - top).exp() * spared);
        }
        cumulated += pull;
        pulls.push((time.time, pull, cumulated));
    }
    for (row, (slope, score)) in rows.iter().zip(slopes.iter_mut().zip(scores)) {
        let until = |limit: f32| pulls.partition_point(|(time, ..)| *time <= limit);
        // It is at risk at the times in (entry, time].
        let pull = match (until(row.entry), until(row.time)) {
            (_, 0) => 0.0,
            (0, last) => pulls[last - 1].2,
            (first, last) => pulls[first..last].iter().map(|(_, pull, _)| pull).sum(),
        };
        *slope += each * (score - top).exp() * pull;
    }
    loss * each
}

/// What every row adds to the negative log partial likelihood: its own term, ties in equal parts; 0 for a row without
/// an event. The sum over the rows, divided by the number of events, is [`partial_likelihood`].
///
/// # Panics
/// As [`partial_likelihood`].
pub fn row_terms(scores: &[f64], targets: &[f32]) -> Vec<f64> {
    let rows = observed(targets);
    assert_eq!(scores.len(), rows.len(), "a score for every row");
    let (times, top) = event_times(scores, &rows);
    let mut terms = vec![0.0; rows.len()];
    for time in &times {
        let all: f64 = time.terms().map(|(_, rest)| top + rest.ln()).sum();
        let share = all / time.events.len() as f64;
        for &row in &time.events {
            terms[row] = share - scores[row];
        }
    }
    terms
}
