//! Times to an event: what a row is, and what follows from rows and from the risk scores of a model.
//!
//! A row is three numbers, in this order: whether its event was observed (1, or 0 where it is censored), the time at
//! which it was or at which observation ended, above 0, and the entry, from which on it is observed (0 where rows are
//! observed from the beginning). It is *at risk* at a time `s` if `entry < s ≤ time`.
//!
//! A model has one output for a row, its *risk score* `η`: the logarithm of its hazard relative to a row with score 0.
//! Scores that differ by a constant are the same model. [`partial_likelihood`] is the loss, within one silo, so that
//! the baseline hazard of a silo is its own and stays there; [`concordance`] asks whether scores order rows rightly;
//! and the [`Baseline`] of a silo makes probabilities of scores, which [`SurvivalBasis`] and
//! [`CalibrationAtTime`] measure.

mod baseline;
mod concordance;
mod held_out;
mod kaplan_meier;
mod partial;
mod range_sums;

pub use baseline::Baseline;
pub use concordance::{Concordance, concordance};
pub use held_out::{CalibrationAtTime, NoBasis, SurvivalBasis, horizon};
use kaplan_meier::KaplanMeier;
pub use partial::{partial_likelihood, row_terms};

/// Numbers of a row.
pub const NUMBERS: usize = 3;

/// A row of a time to an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObservedTime {
    /// True if the event was observed, false if the row is censored.
    pub event: bool,
    /// The time of the event, or of the end of observation; above 0.
    pub time: f32,
    /// The time from which on it is observed, below `time`.
    pub entry: f32,
}

/// The rows that these targets hold, [`NUMBERS`] for each.
///
/// # Panics
/// If the last row is not complete.
pub fn observed(targets: &[f32]) -> Vec<ObservedTime> {
    assert_eq!(
        targets.len() % NUMBERS,
        0,
        "event, time and entry of every row"
    );
    let rows = targets.chunks_exact(NUMBERS);
    rows.map(|row| ObservedTime {
        event: row[0] > 0.5,
        time: row[1],
        entry: row[2],
    })
    .collect()
}
