//! ε, δ and μ of Gaussian noise: any two give the third.
//!
//! Balle & Wang, *Improving the Gaussian Mechanism for Differential Privacy*, ICML 2018, theorem 8; with
//! μ as in Dong, Roth & Su, *Gaussian Differential Privacy*, 2022, corollary 2.13:
//!
//! ```text
//! δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)
//! ```
//!
//! With a = ε/μ − μ/2 and b = ε/μ + μ/2, e^ε = exp(b²/2 − a²/2). So the second term is
//! exp(−a²/2)·[exp(b²/2)·Φ(−b)], of which no factor overflows. For a ≥ 0 the first one has the same factor.

use super::normal::{scaled_tail, tail};

/// More than the relative error of both terms.
const ERROR: f64 = 4e-13;

/// Halvings until two `f64` are neighbours, however far apart they were.
const HALVINGS: u32 = 1100;

/// δ for ε and μ > 0, never too small: an upper bound of the rounding error of the terms is added. That of
/// a and b is as if ε were larger or smaller by its last bits.
pub(super) fn delta(epsilon: f64, mu: f64) -> f64 {
    let (a, b) = (epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0);
    let scale = libm::exp(-a * a / 2.0);
    let second = scaled_tail(b);
    if a >= 0.0 {
        let first = scaled_tail(a);
        scale * (first - second + ERROR * first)
    } else {
        tail(a) - scale * second + ERROR
    }
}

/// The smallest ε for which δ is small enough, rounded up.
pub(super) fn epsilon(mu: f64, most: f64) -> f64 {
    if mu == 0.0 || delta(0.0, mu) <= most {
        return 0.0;
    }
    // δ(ε) ≤ Φ(−a) ≤ exp(−a²/2), so this ε is large enough.
    let high = mu * (mu / 2.0 + libm::sqrt(-2.0 * libm::log(most)) + 1.0);
    bisect(0.0, high, |epsilon| delta(epsilon, mu) > most).1
}

/// The largest μ for which δ is small enough, rounded down.
pub(super) fn mu(epsilon: f64, most: f64) -> f64 {
    let mut high = 1.0;
    while delta(epsilon, high) <= most {
        high *= 2.0;
    }
    bisect(0.0, high, |mu| mu == 0.0 || delta(epsilon, mu) <= most).0
}

/// The neighbours between which `below` becomes false.
fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> (f64, f64) {
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low, high)
}
