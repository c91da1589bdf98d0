//! Means over folds, and how much better a silo's rows make the coalition look that they chose.

use std::f64::consts::SQRT_2;

/// Share of the expected largest of independent errors that is taken off. What chooses a coalition, a likeness of models, is
/// not the loss that compares, so that its luck is a part of that luck. Chosen on planted silos, and confirmed on others.
const SHARE: f64 = 0.75;
/// Where the integral ends, in standard deviations, and the steps that it is taken in. What is integrated is even, smooth and
/// nearly 0 at the end, so that few steps are exact to ten digits.
const END: f64 = 9.0;
const STEPS: u32 = 90;

/// The mean of values by fold, each weighed by the rows of its fold.
pub(crate) fn mean(values: &[f64], rows: &[f64]) -> f64 {
    let all: f64 = rows.iter().sum();
    let each = values.iter().zip(rows);
    each.map(|(value, rows)| value * rows / all).sum()
}

/// The mean of values by fold, each weighed by the rows of its fold, and its standard error:
/// `√(Σ w_i² (a_i − ā)² · k/(k−1))` over `k` folds with values `a` and weights `w` that sum to 1.
pub(crate) fn mean_and_error(values: &[f64], rows: &[f64]) -> (f64, f64) {
    let (mean, all) = (mean(values, rows), rows.iter().sum::<f64>());
    let each = values.iter().zip(rows);
    let apart = each.map(|(value, rows)| rows / all * (value - mean));
    let k = values.len() as f64;
    let spread: f64 = apart.map(|apart| apart * apart).sum();
    (mean, (spread * k / (k - 1.0)).sqrt())
}

/// The selection bias (winner's curse) of a silo's coalition, in standard errors of its advantage: three quarters of
/// what the best of this number of coalitions, 1 or more, has ahead of the mean by luck alone. 0 of one.
///
/// The rows that compare also decided which coalition that is, so that it looks better on them than on new ones, at all silos.
pub(crate) fn selection_bias(coalitions: f64) -> f64 {
    SHARE * expected_largest(coalitions)
}

/// E max of `count` independent standard normal numbers: ∫₀^∞ (1 − Φ(x)^count − Φ(−x)^count) dx, by the trapezium rule. 0 for a
/// count of less than 1.
fn expected_largest(count: f64) -> f64 {
    let below = |x: f64| {
        let above = 0.5 * libm::erfc(x / SQRT_2);
        1.0 - libm::pow(1.0 - above, count) - libm::pow(above, count)
    };
    let step = END / f64::from(STEPS);
    let inner: f64 = (1..STEPS).map(|at| below(f64::from(at) * step)).sum();
    (step * (0.5 * below(0.0) + inner)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_normal_numbers_is_known() {
        // Of one and of two, 0 and 1/√π; of three 3/(2√π); of ten and twelve from tables of order statistics (Harter 1961).
        let root = std::f64::consts::PI.sqrt();
        let known = [
            (1.0, 0.0),
            (2.0, 1.0 / root),
            (3.0, 1.5 / root),
            (10.0, 1.538_75),
            (12.0, 1.629_23),
        ];
        for (count, expected) in known {
            let found = expected_largest(count);
            assert!((found - expected).abs() < 1e-5, "{count}: {found}");
        }
        // Coalitions of unlike sizes give fractions. There is no bias below one.
        assert!((0.0..expected_largest(2.0)).contains(&expected_largest(1.5)));
        assert_eq!(selection_bias(0.0), 0.0);
        assert!((selection_bias(2.0) - 0.75 / root).abs() < 1e-5);
    }
}
