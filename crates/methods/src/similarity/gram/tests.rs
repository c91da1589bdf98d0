#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::similarity::{squared_distances, squared_distances_f64};

/// Values of either sign that no two rows share.
fn models(n: usize, d: usize) -> Vec<Vec<f32>> {
    let value = |at: usize| (at.wrapping_mul(2_654_435_761) % 100_003) as f32 / 5e4 - 1.0;
    (0..n)
        .map(|row| (0..d).map(|column| value(row * d + column + 1)).collect())
        .collect()
}

/// Largest difference, as a part of the norms of the two rows.
fn error(found: &Matrix, exact: &Matrix) -> f64 {
    let n = exact.rows();
    let at = |i, j| (found[(i, j)] - exact[(i, j)]).abs();
    let norms = |i, j| (exact[(i, i)] * exact[(j, j)]).sqrt();
    let errors = (0..n * n)
        .map(|place| (place / n, place % n))
        .map(|(i, j)| at(i, j) / norms(i, j));
    errors.fold(0.0, f64::max)
}

fn with_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap();
    pool.install(work)
}

#[test]
fn the_f64_gram_matrix_equals_its_definition() {
    for (n, d) in [(1, 1), (3, 5), (9, 16), (17, 100), (20, 5000)] {
        let models = models(n, d);
        let gram = gram_f64(&Vectors::new(&models).unwrap()).unwrap();
        for i in 0..n {
            for j in 0..n {
                let terms = models[i].iter().zip(&models[j]);
                let sum: f64 = terms.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                assert!(
                    (gram[(i, j)] - sum).abs() <= 1e-13 * d as f64,
                    "{n} × {d}: {i}, {j}"
                );
            }
        }
    }
}

#[test]
fn products_in_f32_come_near_at_every_shape() {
    // One row, vectors' and kernels' widths and one beside, more than a block, more than a tile.
    for (n, d) in [
        (1, 1),
        (2, 3),
        (15, 511),
        (16, 512),
        (17, 513),
        (97, 9000),
        (TILE + 7, 9),
    ] {
        let models = models(n, d);
        let rows = Vectors::new(&models).unwrap();
        let error = error(&products(&rows, false), &gram_f64(&rows).unwrap());
        assert!(error < 1e-6, "{n} × {d}: {error:e}");
    }
}

#[test]
fn without_columns_all_products_are_zero() {
    let none = [[0f32; 0]; 3];
    let rows = Vectors::new(&none).unwrap();
    assert_eq!(gram(&rows).unwrap(), Matrix::zeros(3, 3));
    assert_eq!(products(&rows, true), Matrix::zeros(3, 3));
    assert_eq!(squared_distances(&rows).unwrap(), Matrix::zeros(3, 3));
}

#[test]
fn threads_do_not_change_a_bit() {
    // Many blocks of one tile; several tiles, and more blocks than are worked on at once.
    for (n, d) in [(30, 100_000), (TILE + 100, 12_000)] {
        let models = models(n, d);
        let rows = Vectors::new(&models).unwrap();
        let bits =
            |threads| with_threads(threads, || (products(&rows, false), products(&rows, true)));
        let alone = bits(1);
        for threads in [2, 5] {
            assert!(bits(threads) == alone, "{n} × {d}, {threads} threads");
        }
    }
    let models = models(100, 10_000);
    let rows = Vectors::new(&models).unwrap();
    let bits = |threads| {
        with_threads(threads, || {
            (gram_f64(&rows).unwrap(), squared_distances(&rows).unwrap())
        })
    };
    assert!(bits(1) == bits(3));
}

#[test]
fn long_rows_are_as_accurate_as_promised() {
    let models = models(20, 200_000);
    let rows = Vectors::new(&models).unwrap();
    assert!(!is_small(&rows));
    let error = error(&gram(&rows).unwrap(), &gram_f64(&rows).unwrap());
    assert!(error < 1e-7, "{error:e}");
}

#[test]
fn values_of_any_magnitude_give_exact_results() {
    for size in [1e-30f32, 1e25] {
        let mut models = models(20, 100_000);
        for value in models.iter_mut().flatten() {
            *value *= size;
        }
        // A row of zeros is no reason for doubt, one of huge or tiny values is.
        models[3].fill(0.0);
        let rows = Vectors::new(&models).unwrap();
        assert!(!is_small(&rows));
        assert_eq!(gram(&rows).unwrap(), gram_f64(&rows).unwrap());
        let (found, exact) = (squared_distances(&rows), squared_distances_f64(&rows));
        assert_eq!(found.unwrap(), exact.unwrap());
    }
}

#[test]
fn rows_of_zeros_use_the_fast_path() {
    let mut models = models(20, 100_000);
    models[3].fill(0.0);
    let rows = Vectors::new(&models).unwrap();
    assert_eq!(gram(&rows).unwrap(), products(&rows, false));
}

#[test]
fn values_that_are_not_finite_are_named() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for (n, d) in [(1, 3), (3, 3), (20, 100_000)] {
            let mut models = models(n, d);
            models[n - 1][d - 1] = bad;
            let rows = Vectors::new(&models).unwrap();
            let error = CompareError::NotFinite {
                row: n - 1,
                column: d - 1,
            };
            assert_eq!(gram(&rows), Err(error));
            assert_eq!(squared_distances(&rows), Err(error));
            assert_eq!(squared_distances_f64(&rows), Err(error));
        }
    }
    let huge = [[1e200f64, 1.0], [1.0, 1e200]];
    assert_eq!(
        gram_f64(&Vectors::new(&huge).unwrap()),
        Err(CompareError::TooLarge)
    );
}

#[test]
fn near_equal_models_have_exact_distances() {
    let (n, d) = (60, 10_000);
    let common = &models(1, d)[0];
    let noise = models(n, d);
    // Two groups a unit apart per value, members a hundred-thousandth apart; one pair the same.
    let mut near: Vec<Vec<f32>> = (0..n)
        .map(|row| {
            let values = common.iter().zip(&noise[row]);
            values
                .map(|(common, noise)| common + (row % 2) as f32 + 1e-5 * noise)
                .collect()
        })
        .collect();
    near[7] = near[9].clone();
    let rows = Vectors::new(&near).unwrap();
    assert!(!is_small(&rows));
    let (found, exact) = (
        squared_distances(&rows).unwrap(),
        squared_distances_f64(&rows).unwrap(),
    );
    for i in 0..n {
        for j in 0..n {
            let (found, exact) = (found[(i, j)], exact[(i, j)]);
            let tolerance = if i % 2 == j % 2 { 0.0 } else { 1e-5 };
            assert!(
                (found - exact).abs() <= tolerance * exact,
                "{i}, {j}: {found} {exact}"
            );
        }
    }
    assert_eq!(found[(7, 9)], 0.0);
    assert!(found[(7, 11)] > 0.0);
}

proptest! {
    #[test]
    fn permuted_rows_have_a_permuted_matrix(
        values in prop::collection::vec(-10f32..10.0, 24),
        order in Just((0..6).collect::<Vec<usize>>()).prop_shuffle(),
    ) {
        let models: Vec<_> = values.chunks(4).map(<[f32]>::to_vec).collect();
        let permuted: Vec<_> = order.iter().map(|&row| models[row].clone()).collect();
        let plain = gram(&Vectors::new(&models).unwrap()).unwrap();
        let gram = gram(&Vectors::new(&permuted).unwrap()).unwrap();
        for i in 0..6 {
            for j in 0..6 {
                prop_assert_eq!(gram[(i, j)], plain[(order[i], order[j])]);
            }
        }
    }

    /// Cauchy and Schwarz, and the square of a difference.
    #[test]
    fn products_and_distances_belong_together(values in prop::collection::vec(-10f64..10.0, 30)) {
        let models: Vec<_> = values.chunks(10).collect();
        let rows = Vectors::new(&models).unwrap();
        let (gram, squares) = (gram_f64(&rows).unwrap(), squared_distances_f64(&rows).unwrap());
        for i in 0..3 {
            for j in 0..3 {
                prop_assert!(gram[(i, j)] * gram[(i, j)] <= gram[(i, i)] * gram[(j, j)] * (1.0 + 1e-12));
                let square = gram[(i, i)] + gram[(j, j)] - 2.0 * gram[(i, j)];
                prop_assert!((squares[(i, j)] - square).abs() < 1e-9);
            }
        }
    }
}
