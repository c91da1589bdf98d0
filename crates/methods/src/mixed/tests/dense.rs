//! The same numbers by a direct way: dense covariances of the rows of every site.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::super::symmetric::{Factor, product};
use super::*;
use crate::random::normal;

/// Sites with an intercept and a slope of their own, and a third coefficient that all have.
fn planted(sites: usize, rows: usize, classes: bool, seed: u64) -> Vec<Samples> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let site = |random: &mut ChaCha8Rng| {
        let own = [0.5 + normal(random), -0.8 + 0.5 * normal(random), 0.3];
        let row = |random: &mut ChaCha8Rng| {
            let x = vec![normal(random), normal(random)];
            let output = own[0] + own[1] * x[0] + own[2] * x[1];
            let target = match classes {
                false => output + 0.7 * normal(random),
                true => {
                    let chance = 1.0 / (1.0 + libm::exp(-output));
                    if crate::random::uniform(random) < chance {
                        1.0
                    } else {
                        -1.0
                    }
                }
            };
            (x, target)
        };
        let drawn: Vec<_> = (0..rows).map(|_| row(random)).collect();
        let (features, targets): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
        samples(&features, targets)
    };
    (0..sites).map(|_| site(&mut random)).collect()
}

/// Rows with a 1 first.
fn design(rows: &Samples) -> Matrix {
    let features: Vec<Vec<f64>> = rows.iter().map(|(x, _)| [&[1.0], x].concat()).collect();
    Matrix::from_rows(&features).unwrap()
}

/// The covariance of a site's targets, `s²I + X·diag T·Xᵀ`, and its design.
fn covariance(rows: &Samples, strengths: &[f64], noise: f64) -> (Matrix, Matrix) {
    let x = design(rows);
    let entry = |row: usize, column: usize| {
        let own = if row == column { noise } else { 0.0 };
        let shared = (0..strengths.len()).map(|j| x[(row, j)] * strengths[j] * x[(column, j)]);
        own + shared.sum::<f64>()
    };
    (Matrix::from_fn(rows.len(), rows.len(), entry), x)
}

/// The restricted log likelihood of variances on the rows of all sites (Patterson & Thompson 1971), but for a
/// constant.
fn restricted(sites: &[Samples], strengths: &[f64], noise: f64) -> f64 {
    let width = strengths.len();
    let (mut likelihood, mut information) = (0.0, Matrix::zeros(width, width));
    let (mut score, mut square) = (vec![0.0; width], 0.0);
    for rows in sites {
        let (covariance, x) = covariance(rows, strengths, noise);
        let factor = Factor::of(&covariance).unwrap();
        likelihood -= 0.5 * factor.log_determinant();
        let solved = factor.solve(rows.targets());
        square += solved
            .iter()
            .zip(rows.targets())
            .map(|(a, b)| a * b)
            .sum::<f64>();
        for j in 0..width {
            let column: Vec<f64> = (0..rows.len()).map(|row| x[(row, j)]).collect();
            score[j] += column.iter().zip(&solved).map(|(a, b)| a * b).sum::<f64>();
            let through = factor.solve(&column);
            for k in 0..width {
                information[(j, k)] += (0..rows.len())
                    .map(|row| through[row] * x[(row, k)])
                    .sum::<f64>();
            }
        }
    }
    let factor = Factor::of(&information).unwrap();
    let mean = factor.solve(&score);
    let explained: f64 = mean.iter().zip(&score).map(|(a, b)| a * b).sum();
    likelihood - 0.5 * factor.log_determinant() - 0.5 * (square - explained)
}

/// The largest value of a function of a number between two, by golden sections.
fn golden(low: f64, high: f64, of: impl Fn(f64) -> f64) -> f64 {
    let part = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (low, high);
    for _ in 0..60 {
        let (a, b) = (high - part * (high - low), low + part * (high - low));
        if of(a) > of(b) { high = b } else { low = a }
    }
    0.5 * (low + high)
}

#[test]
fn the_fixed_point_maximises_reml_of_the_pooled_rows() {
    let sites = planted(6, 12, false, 3);
    let run = Run {
        varying: Varying::Slopes,
        ..EXACT
    };
    let found = rounds(&sites, run).0;
    assert!(found.done);
    // One variance after the other, from the middle of nowhere, until none moves.
    let mut logs = [-1.0, -1.0, -9.0, -1.0];
    for _ in 0..40 {
        for at in 0..4 {
            logs[at] = golden(-12.0, 3.0, |log| {
                let mut tried = logs;
                tried[at] = log;
                let [a, b, c, noise] = tried.map(libm::exp);
                restricted(&sites, &[a, b, c], noise)
            });
        }
    }
    let [a, b, c, noise] = logs.map(libm::exp);
    assert_near(found.strengths[0] / a, 1.0, 1e-4);
    assert_near(found.strengths[1] / b, 1.0, 1e-4);
    assert_near(found.noise / noise, 1.0, 1e-4);
    // The third does not vary; both ways say so.
    assert!(c < 1e-3, "{c}");
    assert!(found.strengths[2] < 1e-3, "{}", found.strengths[2]);
}

#[test]
fn a_sites_numbers_are_those_of_its_dense_covariance() {
    let sites = planted(2, 15, false, 4);
    let (mean, strengths, noise) = ([0.2, -0.5, 0.1], [0.8, 0.0, 0.3], 0.6);
    let prior = Prior {
        mean: &mean,
        strengths: &strengths,
        noise,
    };
    let rows = &sites[0];
    let found = mode(rows, Family::Gaussian, prior).unwrap();
    let shape = SumsShape {
        width: 3,
        varying: Varying::Slopes,
        whole: true,
        noise: true,
    };
    let inverse = Matrix::from_fn(3, 3, |row, column| if row == column { 0.05 } else { 0.01 });
    let sums = SiteSums::of(shape, prior, &found, Some(&inverse));
    let (covariance, x) = covariance(rows, &strengths, noise);
    let factor = Factor::of(&covariance).unwrap();
    let left: Vec<f64> = rows
        .iter()
        .map(|(x, y)| y - mean[0] - mean[1] * x[0] - mean[2] * x[1])
        .collect();
    let solved = factor.solve(&left);
    let n = rows.len();
    let information = Matrix::from_fn(3, 3, |j, k| {
        let column: Vec<f64> = (0..n).map(|row| x[(row, k)]).collect();
        let through = factor.solve(&column);
        (0..n).map(|row| x[(row, j)] * through[row]).sum()
    });
    let through = product(&product(&information, &inverse), &information);
    for j in 0..3 {
        let score: f64 = (0..n).map(|row| x[(row, j)] * solved[row]).sum();
        assert_near(sums.score()[j], score, 1e-10);
        assert_near(sums.squares()[j], strengths[j] * score * score, 1e-10);
        assert_near(sums.explained()[j], strengths[j] * through[(j, j)], 1e-10);
        for k in 0..3 {
            assert_near(sums.whole().unwrap()[(j, k)], information[(j, k)], 1e-10);
        }
    }
    let distance: f64 = left.iter().zip(&solved).map(|(a, b)| a * b).sum();
    let log = n as f64 * libm::log(std::f64::consts::TAU);
    let likelihood = -0.5 * (log + factor.log_determinant() + distance);
    assert_near(found.log_likelihood, likelihood, 1e-10);
    // Residuals are s²·V⁻¹(y − Xμ), and their number of coefficients the trace of X·T·Xᵀ·V⁻¹.
    let [residual, freedom, of_mean] = sums.noise() else {
        panic!("a model with noise");
    };
    let squares: f64 = solved.iter().map(|v| noise * noise * v * v).sum();
    assert_near(*residual, squares, 1e-10);
    let inverse = factor.inverse();
    let trace: f64 = (0..n).map(|row| 1.0 - noise * inverse[(row, row)]).sum();
    assert_near(*freedom, trace, 1e-10);
    let given = -0.5 * (log + n as f64 * libm::log(noise) + squares / noise);
    assert_near(sums.predictive(), given - trace - of_mean, 1e-10);
    assert!(*of_mean > 0.0);
}

#[test]
fn the_noise_is_unbiased_at_the_true_variances() {
    // tr(S⁻¹GMGᵀ) is what the estimate of μ takes of the residuals: over draws, s² is right on average.
    let mut total = 0.0;
    let draws = 60;
    for seed in 0..draws {
        let sites = planted(4, 8, false, 100 + seed);
        let run = Run {
            varying: Varying::Slopes,
            ..EXACT
        };
        let mut at = MixedProgress::start(run.varying, 3, &run.settings);
        (at.strengths, at.noise) = (vec![1.0, 0.25, 0.0], 0.49);
        // Only μ is moved to its estimate; then s² is taken once.
        for _ in 0..3 {
            let (sum, rows) = summed(&sites, run, &at, 1);
            let next = at.step(&sum, 4.0, rows, &run.settings);
            (at.mean, at.pattern, at.diagonal) = (next.mean, next.pattern, next.diagonal);
        }
        let (sum, rows) = summed(&sites, run, &at, 1);
        total += at.step(&sum, 4.0, rows, &run.settings).noise;
    }
    // 60 draws of about 20 degrees of freedom: a standard error of 4 % of the estimate.
    assert_near(total / draws as f64, 0.49, 0.05);
}

#[test]
fn laplace_is_near_the_integral_with_no_gradient_at_its_mode() {
    let rows = planted(1, 60, true, 7).remove(0);
    let (mean, strengths) = ([0.3, -0.7, 0.2], [0.9, 0.0, 0.0]);
    let prior = Prior {
        mean: &mean,
        strengths: &strengths,
        noise: 1.0,
    };
    let found = mode(&rows, Family::Binomial, prior).unwrap();
    let log_joint = |own: f64| {
        let each = rows.iter().map(|(x, y)| {
            let output = own + mean[1] * x[0] + mean[2] * x[1];
            -libm::log1p(libm::exp(-y * output))
        });
        let off = own - mean[0];
        each.sum::<f64>() - 0.5 * (off * off / 0.9 + libm::log(std::f64::consts::TAU * 0.9))
    };
    let at = found.coefficients[0];
    let slope = (log_joint(at + 1e-5) - log_joint(at - 1e-5)) / 2e-5;
    assert!(slope.abs() < 1e-6, "{slope}");
    assert_eq!(found.coefficients[1..], mean[1..]);
    let step = 1e-3;
    let integral: f64 = (-6000..6000)
        .map(|cell| step * libm::exp(log_joint(mean[0] + step * f64::from(cell))))
        .sum();
    assert_near(found.log_likelihood, libm::log(integral), 0.02);
}

#[test]
fn the_spread_of_many_sites_of_classes_is_found() {
    let sites = planted(60, 150, true, 5);
    let run = Run {
        family: Family::Binomial,
        varying: Varying::Slopes,
        settings: MixedSettings::default(),
        lean: true,
        rounds: 60,
    };
    let (found, rounds) = rounds(&sites, run);
    assert!(found.done && rounds < 25, "{rounds}");
    // Of 60 sites, a variance is known to √(2/60) = 18 % of itself.
    assert_near(found.strengths[0], 1.0, 0.45);
    assert_near(found.strengths[1], 0.25, 0.12);
    assert!(found.strengths[2] < 0.02, "{}", found.strengths[2]);
    assert_near(found.mean[2], 0.3, 0.08);
    assert_eq!(found.noise, 1.0);
}
