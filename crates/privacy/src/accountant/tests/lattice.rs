//! Noise consists of integers, and of several parts. Its exact δ, without any formula for normal
//! distributions, is covered by the margin of μ.

use super::*;
use crate::sensitivity::Sensitivity;

/// The probabilities of a discrete Gaussian, for −reach to reach.
fn discrete(sigma: f64, reach: i32) -> Vec<f64> {
    let mass = |k: i32| (-f64::from(k).powi(2) / (2.0 * sigma * sigma)).exp();
    let all: Vec<_> = (-reach..=reach).map(mass).collect();
    let sum: f64 = all.iter().sum();
    all.into_iter().map(|mass| mass / sum).collect()
}

fn convolved(left: &[f64], right: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; left.len() + right.len() - 1];
    for (at, left) in left.iter().enumerate() {
        for (place, right) in sum[at..].iter_mut().zip(right) {
            *place += left * right;
        }
    }
    sum
}

/// Σ max(0, P(k) − e^ε·P(k + shift)): the exact δ if one unit moves the sum by `shift`.
fn exact(probabilities: &[f64], shift: usize, epsilon: f64) -> f64 {
    let factor = epsilon.exp();
    let moved = |at: usize| probabilities.get(at + shift).copied().unwrap_or(0.0);
    let all = probabilities.iter().enumerate();
    all.map(|(at, here)| (here - factor * moved(at)).max(0.0))
        .sum()
}

#[test]
fn the_margin_covers_integers_and_parts_of_several_silos() {
    let sensitivity = Sensitivity::new(1).unwrap();
    let shift = sensitivity.value().floor();
    // Little noise and many parts, so that each has the smallest σ that agreements can ask for.
    for (noise, fewest, colluders) in [(0.25, 2, 1), (0.25, 67, 33), (1.0, 3, 1), (0.125, 200, 1)] {
        let authors = Authors::new(fewest, colluders).unwrap();
        let gaussian = authors.gaussian(z(noise), sensitivity).unwrap();
        let sigma = gaussian.sigma() as f64;
        let width = if authors.unknown() == 1 { 20.0 } else { 10.0 };
        let part = discrete(sigma, (sigma * width).ceil() as i32);
        let mut sum = part.clone();
        for _ in 1..authors.unknown() {
            sum = convolved(&sum, &part);
        }
        // With the noise that there is: σ is rounded up, which hides more.
        let mu = shift / sigma / f64::from(authors.unknown()).sqrt();
        for most in [1e-5, 1e-9] {
            let epsilon = shown(mu * mu, delta(most)).value();
            let exact = exact(&sum, shift as usize, epsilon);
            assert!(exact <= most, "{noise} {fewest}: {exact:e} above {most:e}");
            assert!(
                exact >= 0.98 * most,
                "{noise} {fewest}: {exact:e}, {most:e}"
            );
            let agreed = spent(&[(noise, 1)], (fewest, colluders)).bound(delta(most));
            assert!(agreed.epsilon().value() >= epsilon);
        }
    }
}
