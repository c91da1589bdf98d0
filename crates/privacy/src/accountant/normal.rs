//! Tails of the normal distribution, without overflow and without loss of digits.

use std::f64::consts::{PI, SQRT_2};

/// From here on the asymptotic series has 17 digits.
const FAR: f64 = 10.0;

/// erfcx(x) = exp(x²)·erfc(x) for x ≥ 0: 1 at 0, about 1/(x·√π) far out. Its relative error is below 10⁻¹³.
pub(super) fn erfcx(x: f64) -> f64 {
    if x < FAR {
        return libm::exp(x * x) * libm::erfc(x);
    }
    // Abramowitz & Stegun 7.1.23: Σ (−1)^n·(2n−1)!!/(2x²)^n, of which the error is below the first term
    // left out: 21!!/200^11 < 10⁻¹⁵.
    let square = 2.0 * x * x;
    let (mut sum, mut term) = (1.0, 1.0);
    for n in 1..=10 {
        term *= -f64::from(2 * n - 1) / square;
        sum += term;
    }
    sum / (x * PI.sqrt())
}

/// Φ(−x), the probability to lie above x.
pub(super) fn tail(x: f64) -> f64 {
    libm::erfc(x / SQRT_2) / 2.0
}

/// Φ(−x)·exp(x²/2) for x ≥ 0.
pub(super) fn scaled_tail(x: f64) -> f64 {
    erfcx(x / SQRT_2) / 2.0
}
