//! Known answers: the design's table, mpmath with 60 digits, and a numerical integration.

use super::*;
use crate::accountant::normal::erfcx;

const VALUES: &str = include_str!("../vectors/values.txt");

/// The numbers of the lines that begin with `name`.
fn lines(name: &str) -> Vec<Vec<f64>> {
    let lines = VALUES.lines().filter_map(|line| line.strip_prefix(name));
    lines
        .map(|line| {
            let numbers = line.split_whitespace();
            numbers.map(|number| number.parse().unwrap()).collect()
        })
        .collect()
}

/// Returns whether the number has the digits after the point that stand in a table.
fn prints(number: f64, shown: &str) -> bool {
    let places = shown.split_once('.').map_or(0, |(_, places)| places.len());
    format!("{number:.places$}") == shown
}

/// truth ≤ ε ≤ 1.001·truth.
fn close(shown: f64, truth: f64) -> bool {
    truth <= shown && shown <= 1.001 * truth
}

#[test]
fn epsilons_are_those_of_the_table() {
    let table = [
        (1.0, 1, "4.377178", "4.886554"),
        (4.0, 1, "0.926342", "1.060702"),
        (10.0, 50, "2.943225", "3.307601"),
        (20.0, 100, "1.993091", "2.254085"),
        (30.0, 200, "1.866369", "2.113005"),
    ];
    for (noise, rounds, five, six) in table {
        let accountant = spent(&[(noise, rounds)], (3, 1));
        for (most, shown) in [(1e-5, five), (1e-6, six)] {
            let exact = truth(accountant.mu(), most);
            assert!(prints(exact, shown), "{noise} {rounds} {most}: {exact}");
            let epsilon = accountant.bound(delta(most)).epsilon().value();
            assert!(close(epsilon, exact), "{epsilon}, truly {exact}");
        }
    }
    let mixture = spent(&[(10.0, 1), (20.0, 100)], (3, 1));
    assert!(prints(truth(mixture.mu(), 1e-5), "2.037234"));
}

#[test]
fn mus_and_epsilons_alone_are_those_of_the_table() {
    let authors = [(3, 1), (7, 3), (67, 33)];
    let table = [
        (0.5, "0.142211", ["0.73", "1.07", "3.53"]),
        (1.0, "0.268051", ["1.47", "2.15", "7.41"]),
        (2.0, "0.501552", ["2.95", "4.39", "16.1"]),
        // The design has 37.5, which is the truth without the second term of δ.
        (4.0, "0.924931", ["5.99", "9.08", "36.8"]),
    ];
    for (epsilon, mu, alone) in table {
        let exact = curve::mu(epsilon, 1e-5);
        assert!(prints(exact, mu), "{epsilon}: {exact}");
        for ((fewest, colluders), alone) in authors.into_iter().zip(alone) {
            let spent = spent(&[(1.0 / exact, 1)], (fewest, colluders));
            let exact = truth(spent.mu_alone(), 1e-5);
            assert!(prints(exact, alone), "{fewest} {colluders}: {exact}");
            let shown = spent.bound(delta(1e-5)).alone().value();
            assert!(close(shown, exact), "{shown}, truly {exact}");
        }
    }
}

#[test]
fn the_designs_37_5_is_what_comes_out_without_the_second_term() {
    let mu = curve::mu(4.0, 1e-5) * 34_f64.sqrt();
    // Φ(μ/2 − ε/μ) alone is 10⁻⁵ for this ε; with the second term δ is smaller.
    let claimed = 37.5;
    let first = normal::tail(claimed / mu - mu / 2.0);
    assert!((first / 1e-5 - 1.0).abs() < 0.05, "{first}");
    assert!(curve::delta(claimed, mu) < 0.6e-5);
}

#[test]
fn the_largest_aucs_are_those_of_the_table() {
    let table = [
        (0.5, "0.540"),
        (1.0, "0.575"),
        (2.0, "0.639"),
        (4.0, "0.743"),
    ];
    for (epsilon, auc) in table {
        let mu = curve::mu(epsilon, 1e-5);
        let most = spent(&[(1.0 / mu, 1)], (2, 1)).most_auc();
        assert!(prints(most, auc), "{epsilon}: {most}");
    }
}

#[test]
fn scaled_tails_are_those_of_60_digits() {
    let all = lines("erfcx ");
    assert_eq!(all.len(), 16);
    for numbers in all {
        let (x, exact) = (numbers[0], numbers[1]);
        let error = (erfcx(x) / exact - 1.0).abs();
        assert!(error < 1e-13, "{x}: {error:e}");
    }
}

#[test]
fn epsilons_and_mus_are_those_of_60_digits() {
    let all = lines("curve ");
    assert!(all.len() > 70);
    for numbers in all {
        let (mu, most, exact) = (numbers[0], numbers[1], numbers[2]);
        let computed = truth(mu, most);
        let error = computed / exact - 1.0;
        // For small μ the difference of two terms has fewer digits, and is rounded up.
        let allowed = 1e-12 + 1e-12 / mu / exact.min(1.0);
        assert!(
            error > -1e-14 && error < allowed,
            "{mu} {most} {exact}: {error:e}"
        );
        let error = 1.0 - curve::mu(exact, most) / mu;
        assert!(
            error > -1e-14 && error < allowed,
            "{mu} {most} {exact}: {error:e}"
        );
        // What is shown, for every z that it can be shown for.
        let shown = shown(mu * mu, delta(most)).value();
        assert!(shown >= exact, "{mu} {most}: {shown} below {exact}");
        if exact > 1e-3 {
            assert!(close(shown, exact), "{mu} {most}: {shown}, truly {exact}");
        }
    }
}

/// δ by its definition, ∫ max(0, p(x) − e^ε·q(x)) dx for p = N(μ, 1) and q = N(0, 1), by Simpson's rule
/// from the place on where the integrand is above zero.
fn integrated(epsilon: f64, mu: f64) -> f64 {
    let from = epsilon / mu + mu / 2.0;
    let (steps, width) = (20_000, 20.0);
    let step = width / f64::from(steps);
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let value = |x: f64| density(x - mu) * (1.0 - (epsilon - mu * x + mu * mu / 2.0).exp());
    let weight = |at: i32| match at {
        0 => 1.0,
        at if at == steps => 1.0,
        at if at % 2 == 1 => 4.0,
        _ => 2.0,
    };
    let sum: f64 = (0..=steps)
        .map(|at| weight(at) * value(from + f64::from(at) * step))
        .sum();
    sum * step / 3.0
}

#[test]
fn deltas_are_those_of_a_numerical_integration() {
    for mu in [0.01, 0.142211, 0.5, 1.0, 3.0, 5.4] {
        for epsilon in [0.0, 0.01, 0.5, 1.0, 4.0, 20.0] {
            let (exact, formula) = (integrated(epsilon, mu), curve::delta(epsilon, mu));
            if exact > 1e-100 {
                let error = (formula / exact - 1.0).abs();
                assert!(error < 1e-8, "{epsilon} {mu}: {formula:e} {exact:e}");
            }
        }
    }
}
