//! A model of the federation with an intercept of the silo's own.
//!
//! Institutions often differ in how frequent an outcome is, and less in what it depends on. Then a common
//! model is wrong by the same amount for all rows of a silo. Mending that takes one number for each output,
//! which a few rows tell well. It is done after the last round and stays at the silo: what was released does
//! not change, so a bound on that does not either.

use super::folds::loss_on;
use crate::learner::{LearnError, Learner, Split};
use crate::params::Params;
use crate::strategy::INTERCEPT;
use crate::strategy::wrappers::personal_layers::choose;

/// Most passes over the numbers of an intercept that has several.
const PASSES: usize = 20;
/// The first step in which the least loss is looked for, and how often it is doubled.
const FIRST_STEP: f64 = 0.125;
const DOUBLINGS: usize = 40;
/// Precision to which a number has to be known, relative to its size.
const NEAR: f64 = 1e-5;
/// Part of a loss that is rounding.
const ROUNDING: f64 = 1e-12;
/// The share of a span that golden-section search keeps.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The model with another intercept, which is the bias of its last layer: the one of least loss on the
/// training rows, to which one row of each class is added. All other numbers stay as they are.
///
/// # Errors
/// [`LearnError`]: the model has no intercept or its last layer is not known, or it cannot be measured.
pub fn with_own_intercept(
    learner: &dyn Learner,
    (model, personal): &(Params, Params),
) -> Result<(Params, Params), LearnError> {
    let layout = model.layout();
    let own = choose(layout, &[INTERCEPT.to_owned()], INTERCEPT);
    let own = own.map_err(|error| LearnError::Failed(error.to_string()))?;
    let places = own.tensors().iter().filter_map(|tensor| {
        let at = layout.position(&tensor.name)?;
        Some(layout.range(at))
    });
    let places: Vec<usize> = places.flatten().collect();
    let mut values = model.values().to_vec();
    let rows = learner.samples() as f64;
    let mut tried = (model.clone(), personal.clone());
    for _ in 0..PASSES {
        let mut moved = 0.0_f64;
        for &at in &places {
            let before = f64::from(values[at]);
            let found = least(before, |value| {
                values[at] = value as f32;
                tried.0 = Params::from_values(layout, &values);
                loss_on(learner, &tried, Split::Train, rows).map(|loss| loss.alone)
            })?;
            values[at] = found as f32;
            moved = moved.max((found - before).abs() / (1.0 + found.abs()));
        }
        if places.len() == 1 || moved < NEAR {
            break;
        }
    }
    Ok((Params::from_values(layout, &values), personal.clone()))
}

/// Returns where a convex function is least, from `start` on.
fn least<E>(start: f64, mut f: impl FnMut(f64) -> Result<f64, E>) -> Result<f64, E> {
    let middle = f(start)?;
    let mut edge = |sign: f64| -> Result<f64, E> {
        let (mut last, mut step) = (middle, sign * FIRST_STEP);
        for _ in 0..DOUBLINGS {
            let here = f(start + step)?;
            // The least lies between the step before the last and this one.
            if here >= last {
                break;
            }
            (last, step) = (here, 2.0 * step);
        }
        Ok(start + step)
    };
    let (mut low, mut high) = (edge(-1.0)?, edge(1.0)?);
    let span = |low: f64, high: f64| GOLDEN * (high - low);
    let (mut left, mut right) = (high - span(low, high), low + span(low, high));
    let (mut of_left, mut of_right) = (f(left)?, f(right)?);
    while high - low > NEAR * (1.0 + low.abs().max(high.abs())) {
        if of_left <= of_right {
            (high, right, of_right) = (right, left, of_left);
            left = high - span(low, high);
            of_left = f(left)?;
        } else {
            (low, left, of_left) = (left, right, of_right);
            right = low + span(low, high);
            of_right = f(right)?;
        }
    }
    let found = f64::midpoint(low, high);
    // Where outputs that differ by a constant are one model, as risk scores are, only rounding makes a difference.
    let rounding = ROUNDING * (1.0 + middle.abs());
    Ok(if f(found)? < middle - rounding {
        found
    } else {
        start
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_least_value_is_found_near_and_far(least_at in -1e6..1e6_f64, start in -10.0..10.0_f64) {
            let square = |x: f64| Ok::<_, Infallible>((x - least_at) * (x - least_at));
            let found = least(start, square).unwrap();
            prop_assert!((found - least_at).abs() <= 1e-3 * (1.0 + least_at.abs()), "{found}");
        }
    }

    #[test]
    fn where_nothing_is_less_the_start_stays() {
        let flat = |_: f64| Ok::<_, Infallible>(1.0);
        assert_eq!(least(0.25, flat).unwrap(), 0.25);
        let rounded = |x: f64| Ok::<_, Infallible>(1.0 - 1e-16 * ((8.0 * x).round() % 2.0));
        assert_eq!(least(0.25, rounded).unwrap(), 0.25);
    }
}
