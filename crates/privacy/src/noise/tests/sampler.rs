//! The distribution of 10⁶ draws.

use super::statistics::{ExactProbabilities, fits};
use super::*;

const DRAWS: u64 = 1_000_000;

fn draws(sigma: u64, seed: u64) -> Vec<i64> {
    let mut noise = noise(seed);
    let numbers = (0..DRAWS).map(|_| noise.draw(gaussian(sigma)));
    numbers.collect()
}

/// Bins of about σ/20.
fn width(sigma: u64) -> usize {
    (sigma / 20).max(1) as usize
}

#[test]
fn frequencies_are_the_exact_probabilities() {
    for sigma in [1, 3, 1000, 100_000] {
        // Over 300 seeds each, the last digits of sigma 1000 and 100,000 exceed the 99 % quantile 10 times and stay
        // below the 1 % quantile 7 times, of 6 expected.
        let (exact, numbers, width) = (
            ExactProbabilities::new(sigma),
            draws(sigma, 11 + sigma),
            width(sigma),
        );
        let counts = exact.count(width, &numbers);
        assert!(fits(&counts, &exact.bins(width, DRAWS)), "sigma {sigma}");
        // Single integers, folded: the last digit to base 64.
        let mut expected = vec![0.0; 64];
        for (at, mass) in exact.masses.iter().enumerate() {
            expected[(at as i64 - exact.reach).rem_euclid(64) as usize] += mass * DRAWS as f64;
        }
        let mut counts = vec![0; 64];
        for number in numbers {
            counts[number.rem_euclid(64) as usize] += 1;
        }
        assert!(fits(&counts, &expected), "sigma {sigma}, last digits");
    }
}

#[test]
fn the_same_test_fails_for_a_sigma_that_is_one_percent_off() {
    for (sigma, other) in [(1000, 1010), (1000, 990), (100_000, 101_000)] {
        let (exact, width) = (ExactProbabilities::new(sigma), width(sigma));
        let counts = exact.count(width, &draws(other, 5));
        assert!(!fits(&counts, &exact.bins(width, DRAWS)));
    }
}

#[test]
fn the_same_test_fails_for_a_rounded_normal_distribution() {
    // P(0) is 0.383 in place of 0.399.
    let exact = ExactProbabilities::new(1);
    let rounded = |k: i64| {
        let tail = |x: f64| libm::erfc(x / std::f64::consts::SQRT_2) / 2.0;
        tail(k as f64 - 0.5) - tail(k as f64 + 0.5)
    };
    let expected: Vec<_> = (-exact.reach..=exact.reach)
        .map(|k| rounded(k) * DRAWS as f64)
        .collect();
    assert!(!fits(&exact.count(1, &draws(1, 1)), &expected));
}

#[test]
fn mean_and_variance_are_the_exact_ones() {
    for sigma in [1, 2, 3, 17, 1000, 100_000, MOST_SIGMA] {
        let numbers = draws(sigma, 7 * sigma);
        let scale = sigma as f64;
        let moment = |power: i32| {
            let sum: f64 = numbers
                .iter()
                .map(|k| (*k as f64 / scale).powi(power))
                .sum();
            sum / DRAWS as f64
        };
        let (variance, fourth) = if sigma > 1000 {
            (1.0, 3.0)
        } else {
            let exact = ExactProbabilities::new(sigma);
            let moment = |power: i32| exact.mean(|k| (k / scale).powi(power));
            (moment(2), moment(4))
        };
        let within = |measured: f64, exact: f64, spread: f64| {
            (measured - exact).abs() < 3.29 * (spread / DRAWS as f64).sqrt()
        };
        assert!(within(moment(1), 0.0, variance), "sigma {sigma}");
        let spread = fourth - variance * variance;
        assert!(within(moment(2), variance, spread), "sigma {sigma}");
        assert!(variance < 1.0 + 1e-12 && variance > 1.0 - 1e-6);
    }
}

#[test]
fn largest_draws_are_as_far_out_as_they_should_be() {
    for sigma in [1000, MOST_SIGMA] {
        let most = draws(sigma, 3 * sigma).into_iter().map(i64::unsigned_abs);
        let most = most.max().unwrap() as f64 / sigma as f64;
        // Of 10^6 draws: above 4.4 but for exp(−11), below 6.2 but for 6e-4.
        assert!(most > 4.4 && most < 6.2, "{most}");
    }
}

#[test]
fn noise_follows_from_its_seed_and_from_nothing_else() {
    let mut first = noise(1);
    let mut again = noise(1);
    let mut other = noise(2);
    let [mut a, mut b, mut c] = [[0; 100]; 3];
    first.add(gaussian(1000), &mut a);
    again.add(gaussian(1000), &mut b);
    other.add(gaussian(1000), &mut c);
    assert_eq!(a, b);
    assert_ne!(a, c);
    assert_ne!(a[..50], a[50..]);
    // Pinned, because simulations are repeated from their seeds.
    assert_eq!(a[..8], PINNED);
}

const PINNED: [i64; 8] = [2799, 725, -753, -183, 244, 1200, -1349, 509];

#[test]
fn draws_are_counted() {
    let mut noise = noise(1);
    assert_eq!(noise.drawn(), 0);
    noise.add(gaussian(1000), &mut [0; 100]);
    noise.add(gaussian(3), &mut []);
    noise.draw(gaussian(5));
    assert_eq!(noise.drawn(), 101);
    assert_eq!(format!("{noise:?}"), "Noise(101 drawn)");
    assert_eq!(format!("{:?}", seed(1)), "Seed(secret)");
}

#[test]
fn noise_is_added_and_wraps_around() {
    let mut sum = [10, i64::MAX, i64::MIN];
    let mut drawn = [0; 3];
    noise(4).add(gaussian(100), &mut sum);
    noise(4).add(gaussian(100), &mut drawn);
    assert_eq!(sum[0], 10 + drawn[0]);
    assert_eq!(sum[1], i64::MAX.wrapping_add(drawn[1]));
    assert_eq!(sum[2], i64::MIN.wrapping_add(drawn[2]));
}

#[test]
fn sigmas_that_cannot_be_drawn_are_refused_with_a_sentence() {
    for bad in [0, MOST_SIGMA + 1, u64::MAX] {
        let error = Gaussian::new(bad).unwrap_err().to_string();
        let range = "it must be an integer between 1 and 2147483648";
        assert_eq!(
            error,
            format!("noise with standard deviation {bad}: {range}")
        );
    }
}
