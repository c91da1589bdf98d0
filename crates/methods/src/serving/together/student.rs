//! Student's distribution.

use std::f64::consts::FRAC_2_PI;

/// Degrees of freedom above which the distribution changes by less than it matters.
const MANY: u64 = 1_000;

/// P(|T| > t) of Student's distribution with at least one degree of freedom, `t` at least 0: the finite series of
/// Abramowitz & Stegun (1964, 26.7.3 and 26.7.4). 1 where `t` is not a number.
pub(super) fn two_sided(t: f64, freedom: u64) -> f64 {
    if t.is_nan() {
        return 1.0;
    }
    let freedom = freedom.clamp(1, MANY);
    let angle = libm::atan(t / (freedom as f64).sqrt());
    let (sin, cos) = (libm::sin(angle), libm::cos(angle));
    // 1, ½, ½·¾, … times powers of the cosine; with an odd number 1, ⅔, ⅔·⅘, ….
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = (if odd { cos } else { 1.0 }, 0.0);
    let mut at = if odd { 3 } else { 2 };
    while at <= freedom {
        sum += term;
        term *= (at - 1) as f64 / at as f64 * cos * cos;
        at += 2;
    }
    let within = match odd {
        true => FRAC_2_PI * (angle + sin * sum),
        false => sin * sum,
    };
    1.0 - within
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_tables() {
        let known = [
            (12.706_205, 1),
            (4.302_653, 2),
            (3.182_446, 3),
            (2.776_445, 4),
            (2.570_582, 5),
            (1.962_339, 1_000),
        ];
        for (t, freedom) in known {
            let found = two_sided(t, freedom);
            assert!((found - 0.05).abs() < 1e-6, "{freedom}: {found}");
        }
        assert!((two_sided(4.604_095, 4) - 0.01).abs() < 1e-6);
        assert_eq!((two_sided(0.0, 4), two_sided(f64::NAN, 4)), (1.0, 1.0));
        assert!(two_sided(f64::INFINITY, 3) < 1e-12);
        assert_eq!(two_sided(2.0, 1_000), two_sided(2.0, u64::MAX));
    }
}
