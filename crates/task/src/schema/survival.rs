//! Cells of a time to an event, and what is agreed about it.

use super::TargetColumn;
use super::row::TRANSLATE;

/// Largest time: beyond it single precision has no numbers left.
const LATEST: f64 = 1e30;

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

/// Returns whether what is agreed of a time to an event is no contradiction.
///
/// # Errors
/// The first contradiction.
pub(super) fn check_survival(target: &TargetColumn) -> Result<(), String> {
    let TargetColumn {
        name,
        unit: _,
        range,
        censored,
        classes,
        positive,
        rule,
        mask,
        survival: _,
        at,
    } = target;
    if !(2..=3).contains(&name.count()) {
        return Err(
            "a time to an event has the columns `event` and `time`, and may have `entry`".into(),
        );
    }
    for (there, key) in [
        (range.is_some(), "range"),
        (censored.is_some(), "censored"),
        (classes.is_some(), "classes"),
        (positive.is_some(), "positive"),
        (rule.is_some(), "rule"),
        (*mask, "mask"),
    ] {
        if there {
            return Err(format!("`{key}` does not go with a time to an event"));
        }
    }
    let ascending = at.windows(2).all(|pair| pair[0] < pair[1]);
    match at.first() {
        Some(&first) if !(first > 0.0 && ascending && at.iter().all(|time| *time < LATEST)) => {
            Err("`at` needs times above 0 in ascending order".into())
        }
        _ => Ok(()),
    }
}
