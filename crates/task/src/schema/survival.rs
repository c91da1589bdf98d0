//! Cells of a time to an event.

use super::remedy::TRANSLATE;

/// Largest time: beyond it single precision has no numbers left.
pub(super) const LATEST: f64 = 1e30;

/// The value of a cell of a time to an event: of the event (position 0), its time (1) or the entry (2).
///
/// # Errors
/// What is expected instead.
pub(super) fn survival_value(position: usize, value: f64) -> Result<f64, String> {
    match position {
        0 if value == 0.0 || value == 1.0 => Ok(value),
        0 => Err(format!(
            "an event is 1 where it was observed and 0 where observation ended without it{TRANSLATE}"
        )),
        1 if value > 0.0 && value as f32 > 0.0 && value < LATEST => Ok(value),
        1 if value >= LATEST => Err(format!("a time below {LATEST:e} is needed")),
        1 => Err(
            "a time to an event or to the end of observation is above 0: correct it; an agreement can leave such \
             rows out by a condition in `only`"
                .into(),
        ),
        _ if value.abs() < LATEST => Ok(value),
        _ => Err(format!("a time below {LATEST:e} is needed")),
    }
}

/// Completes the numbers of a row: event, time, and entry, which is 0 where no column says it.
///
/// # Errors
/// What is expected of the entry instead.
pub(super) fn survival_row(values: &mut Vec<f64>) -> Result<(), String> {
    match values[..] {
        [_, _] => {
            values.push(0.0);
            Ok(())
        }
        [_, time, entry] if (entry as f32) < time as f32 => Ok(()),
        [_, time, _] => Err(format!(
            "a row is observed from its entry on, which has to be before its time, {time}: correct one of them"
        )),
        _ => unreachable!("a time to an event has two columns or three"),
    }
}
