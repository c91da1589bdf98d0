//! The contribution of a row is never longer than C, and the model is that of ridge regression.

use crate::noise::{Gaussian, Noise, Seed};
use crate::sensitivity::Unit;
use crate::sensitivity::tests::TestRandom;

use super::*;

/// A row with its target.
type FitRow = (Vec<f32>, f64);

fn products(features: usize, rows: f64, targets: f64) -> RowProducts {
    RowProducts::new(features, RowNorms::new(rows, targets).unwrap()).unwrap()
}

/// The numbers of a unit with these rows.
fn numbers(products: RowProducts, rows: &[FitRow]) -> Vec<f64> {
    let mut numbers = vec![0.0; products.numbers()];
    for (features, target) in rows {
        products.add(features, *target, &mut numbers);
    }
    numbers
}

/// The sum of some units, each of some rows.
fn sum(products: RowProducts, units: &[Vec<FitRow>]) -> Vec<i64> {
    let (clip, mut sum) = (products.clip(), vec![0; products.numbers()]);
    for unit in units {
        clip.add(&numbers(products, unit), &mut sum).unwrap();
    }
    sum
}

/// Rows of one unit each.
fn alone(rows: &[FitRow]) -> Vec<Vec<FitRow>> {
    rows.iter().map(|row| vec![row.clone()]).collect()
}

fn square(numbers: &[f64]) -> f64 {
    numbers.iter().map(|number| number * number).sum()
}

fn random_row(random: &mut TestRandom, features: usize, scale: f64) -> FitRow {
    let mut number = || (random.number() * scale) as f32;
    let row = (0..features).map(|_| number()).collect();
    (row, random.number() * scale)
}

#[test]
fn the_norm_of_a_row_s_numbers_is_that_of_the_whole_matrix() {
    let mut random = TestRandom(1);
    for features in [1, 2, 14, 31] {
        let products = products(features, 100.0, 100.0);
        let row = random_row(&mut random, features, 3.0);
        let features: Vec<_> = row.0.iter().map(|value| f64::from(*value)).collect();
        let norm = square(&features) + 1.0;
        let expected = norm * norm + norm * row.1 * row.1;
        let found = square(&numbers(products, &[row]));
        assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
    }
}

/// All features and targets of a grid that reaches beyond both norms.
#[test]
fn rows_of_a_grid_have_norm_c_at_most_and_integers_within_delta() {
    for (features, most) in [(1, 40_i32), (2, 12), (3, 5)] {
        let products = products(features, 1.5, 0.75);
        let (clip, c) = (products.clip(), RowNorms::new(1.5, 0.75).unwrap().clip());
        let side = 2 * most + 1;
        let mut longest = 0.0_f64;
        for at in 0..side.pow(features as u32 + 1) {
            let digit = |place: u32| f64::from(at / side.pow(place) % side - most) * 3.0;
            let scaled = |place| digit(place) / f64::from(most);
            let row: Vec<_> = (0..features as u32)
                .map(|place| scaled(place) as f32)
                .collect();
            let row = (row, scaled(features as u32));
            let found = square(&numbers(products, std::slice::from_ref(&row))).sqrt();
            assert!(found <= c * (1.0 + 1e-12), "{row:?}: {found}");
            longest = longest.max(found);
            let integers = sum(products, &[vec![row]]);
            let squares = integers
                .iter()
                .map(|integer| u128::from(integer.unsigned_abs()).pow(2));
            assert!(clip.sensitivity().holds(squares.sum()));
        }
        // C is reached, so no smaller one would do.
        assert!(longest > c * (1.0 - 1e-9), "{features}: {longest}");
    }
}

/// Returns whether the sums with and without the last person differ by Δ at most, and by the norm of all numbers of
/// this person without clipping.
fn neighbours(features: usize, count: usize) -> [bool; 2] {
    let mut random = TestRandom(features as u64);
    let products = products(features, 2.0, 1.0);
    let sensitivity = products.clip().sensitivity();
    let mut kept = [true; 2];
    for _ in 0..count {
        let mut unit = |rows: u64| -> Vec<FitRow> {
            let scale = [0.1, 1.0, 1e6][random.below(3) as usize];
            let row = |_| random_row(&mut random, features, scale);
            (0..rows).map(row).collect()
        };
        let units = [unit(1), unit(2), unit(4)];
        let (with, without) = (sum(products, &units), sum(products, &units[..2]));
        let differences = with.iter().zip(&without).map(|(a, b)| a.abs_diff(*b));
        kept[0] &= sensitivity.holds(differences.map(|of| u128::from(of).pow(2)).sum());
        let whole = square(&numbers(products, &units[2])).sqrt() / products.clip().step();
        kept[1] &= whole <= sensitivity.value();
    }
    kept
}

#[test]
fn neighbouring_sums_differ_by_delta_at_most_also_for_persons() {
    for (features, count) in [(1, 200_000), (14, 20_000), (31, 5_000)] {
        // The rows of a person together would be longer without their clipping.
        assert_eq!(neighbours(features, count), [true, false]);
    }
}

#[test]
fn a_row_has_the_same_integers_in_any_order_and_thread_count() {
    let mut random = TestRandom(5);
    let products = products(14, 2.0, 1.0);
    let rows: Vec<_> = (0..50).map(|_| random_row(&mut random, 14, 2.0)).collect();
    let whole = sum(products, &alone(&rows));
    let singly = rows.iter().map(|row| sum(products, &[vec![row.clone()]]));
    let added = singly.reduce(|mut sum, one| {
        sum.iter_mut().zip(&one).for_each(|(sum, one)| *sum += one);
        sum
    });
    assert_eq!(added.as_ref(), Some(&whole));
    let mut reversed = rows.clone();
    reversed.reverse();
    assert_eq!(sum(products, &alone(&reversed)), whole);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| sum(products, &alone(&rows))))
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), whole);
        }
    });
}

#[test]
fn long_rows_are_shortened_and_the_one_of_the_intercept_stays() {
    let products = products(2, 2.0, 1.0);
    let row = numbers(products, &[(vec![30.0, 40.0], -7.0)]);
    let root = 3.0_f64.sqrt();
    let x = [0.6 * root, 0.8 * root, 1.0];
    let expected = [
        x[0] * x[0],
        SQRT_2 * x[0] * x[1],
        SQRT_2 * x[0],
        x[1] * x[1],
        SQRT_2 * x[1],
        1.0,
        -x[0],
        -x[1],
        -1.0,
    ];
    for (found, expected) in row.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{row:?}");
    }
}

#[test]
fn a_unit_with_a_row_that_is_not_finite_counts_as_zero() {
    let products = products(2, 2.0, 1.0);
    for bad in [f32::NAN, f32::INFINITY] {
        for row in [(vec![bad, 0.0], 0.0), (vec![0.0, 0.0], f64::from(bad))] {
            let unit = numbers(products, &[(vec![0.5, 0.5], 0.5), row.clone()]);
            let mut sum = vec![3; products.numbers()];
            let became = products.clip().add(&unit, &mut sum).unwrap();
            // A target that is infinite is brought within ±Y like any other.
            let finite = row.1 == f64::INFINITY;
            assert_eq!(became == Unit::Zero, !finite, "{row:?}");
            assert_eq!(sum == vec![3; products.numbers()], !finite);
        }
    }
}

/// (A + λ)⁻¹·b by elimination with pivots.
fn eliminated(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Vec<f64> {
    let width = right.len();
    for at in 0..width {
        let pivot = (at..width)
            .max_by(|a, b| matrix[*a][at].abs().total_cmp(&matrix[*b][at].abs()))
            .unwrap();
        matrix.swap(at, pivot);
        right.swap(at, pivot);
        for row in (0..width).filter(|row| *row != at) {
            let factor = matrix[row][at] / matrix[at][at];
            let above = matrix[at][at..].to_vec();
            let pairs = matrix[row][at..].iter_mut().zip(above);
            pairs.for_each(|(entry, above)| *entry -= factor * above);
            right[row] -= factor * right[at];
        }
    }
    (0..width).map(|at| right[at] / matrix[at][at]).collect()
}

#[test]
fn without_noise_the_model_is_that_of_ridge_regression() {
    for features in [1, 5, 31] {
        let mut random = TestRandom(features as u64);
        let products = products(features, 6.0, 10.0);
        let rows: Vec<_> = (0..20_000)
            .map(|_| {
                let (row, noise) = random_row(&mut random, features, 1.0);
                let target = row.iter().map(|value| f64::from(*value)).sum::<f64>();
                (row, 0.5 * target + 0.3 + noise / 4.0)
            })
            .collect();
        let width = features + 1;
        let (mut matrix, mut right) = (vec![vec![0.0; width]; width], vec![0.0; width]);
        for (row, target) in &rows {
            let line: Vec<_> = row
                .iter()
                .map(|value| f64::from(*value))
                .chain([1.0])
                .collect();
            for (at, left) in line.iter().enumerate() {
                for (to, other) in line.iter().enumerate() {
                    matrix[at][to] += left * other / rows.len() as f64;
                }
                right[at] += left * target / rows.len() as f64;
            }
        }
        (0..width).for_each(|at| matrix[at][at] += 0.02);
        let expected = eliminated(matrix, right);
        let sum = sum(products, &alone(&rows));
        let found = products.solve(&sum, products.clip().step(), rows.len() as u64, 0.02);
        for (found, expected) in found.iter().zip(&expected) {
            // Each number is rounded to 1/1200 of C, which is 70, in 20,000 rows.
            assert!((found - expected).abs() < 0.02, "{found} {expected}");
        }
    }
}

#[test]
fn negative_eigenvalues_count_as_zero_before_the_ridge_is_added() {
    let products = products(1, 2.0, 1.0);
    let step = products.clip().step();
    // A = diag(−3, 5), b = (1, 2), in steps.
    let sum = [-3, 0, 5, 1, 2];
    let model = products.solve(&sum, step, 1, 0.5);
    assert!((model[0] - step / 0.5).abs() < 1e-12, "{model:?}");
    assert!((model[1] - 2.0 * step / (5.0 * step + 0.5)).abs() < 1e-12);
}

#[test]
fn eigenvectors_give_the_matrix_back_and_are_orthonormal() {
    for width in [1, 2, 7, 40] {
        let mut random = TestRandom(width as u64);
        let mut matrix = vec![0.0; width * width];
        for at in 0..width {
            for to in at..width {
                // Zeros, and eigenvalues that are equal.
                let entry = random.number() * f64::from(random.below(3) > 0);
                matrix[at * width + to] = entry;
                matrix[to * width + at] = entry;
            }
        }
        let eigen = Eigen::of(matrix.clone(), width);
        for at in 0..width {
            for to in 0..width {
                let parts = eigen
                    .pairs()
                    .map(|(value, of)| [value * of[at] * of[to], of[at] * of[to]]);
                let [entry, unit] = parts.fold([0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
                assert!((entry - matrix[at * width + to]).abs() < 1e-12);
                assert!((unit - f64::from(at == to)).abs() < 1e-12);
            }
        }
    }
    let zero = Eigen::of(vec![0.0; 9], 3);
    assert!(zero.pairs().all(|(value, _)| value == 0.0));
}

#[test]
fn the_public_ridge_is_as_large_as_eigenvalues_of_the_noise() {
    let (products, rows) = (products(31, 2.0, 1.0), 1_000);
    let (step, width) = (products.clip().step(), 32);
    let gaussian = Gaussian::new(50_000).unwrap();
    let mut sum = vec![0; products.numbers()];
    Noise::new(&Seed::new([3; 32])).add(gaussian, &mut sum);
    let ridge = products.ridge(50_000.0 * step, rows);
    let mut matrix = vec![0.0; width * width];
    let mut numbers = sum.iter();
    for at in 0..width {
        for to in at..width {
            let number = *numbers.next().unwrap() as f64 * step / rows as f64;
            let entry = if to == at { number } else { number / SQRT_2 };
            matrix[at * width + to] = entry;
            matrix[to * width + at] = entry;
        }
    }
    let eigen = Eigen::of(matrix, width);
    let largest = eigen
        .pairs()
        .map(|(value, _)| value.abs())
        .fold(0.0, f64::max);
    assert!((0.8..1.2).contains(&(largest / ridge)), "{largest} {ridge}");
    // Without noise it is not zero, so that there is a model whatever the rows are.
    assert_eq!(products.ridge(0.0, rows), 4e-9);
}

/// The bits of a model, as every machine computes them.
#[test]
fn a_model_has_the_same_bits_on_every_machine() {
    let mut random = TestRandom(9);
    let products = products(4, 2.0, 1.0);
    let rows: Vec<_> = (0..30).map(|_| random_row(&mut random, 4, 1.0)).collect();
    let mut sum = sum(products, &alone(&rows));
    let gaussian = Gaussian::new(3_000).unwrap();
    Noise::new(&Seed::new([4; 32])).add(gaussian, &mut sum);
    let model = products.solve(&sum, products.clip().step(), 30, 0.25);
    let bits: Vec<_> = model.iter().map(|weight| weight.to_bits()).collect();
    let expected = [
        4600746941224359509,
        4606807801487814560,
        4600055687989774635,
        13824914011354205998,
        4598409177701822340,
    ];
    assert_eq!(bits, expected);
}

#[test]
fn bounds_out_of_range_and_too_many_features_are_refused() {
    for rows in [1.0, 0.0, f64::NAN, 1e21] {
        assert!(RowNorms::new(rows, 1.0).is_err(), "{rows}");
    }
    for targets in [0.0, -1.0, f64::NAN, 1e21] {
        assert!(RowNorms::new(2.0, targets).is_err(), "{targets}");
    }
    let norms = RowNorms::new(2.0, 1.0).unwrap();
    assert!((norms.clip() - 20.0_f64.sqrt()).abs() < 1e-12);
    assert_eq!(RowProducts::new(0, norms), Err(FeaturesError(0)));
    assert!(RowProducts::new(MOST_FEATURES, norms).is_ok());
    let many = MOST_FEATURES + 1;
    assert_eq!(RowProducts::new(many, norms), Err(FeaturesError(many)));
    // The largest of all can be clipped to.
    let most = RowProducts::new(MOST_FEATURES, RowNorms::new(1e20, 1e20).unwrap()).unwrap();
    assert!(most.clip().step() > 0.0);
}
