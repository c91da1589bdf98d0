//! Small symmetric systems.

use crate::matrix::Matrix;

/// Solves a symmetric positive definite system by Cholesky's factors; `None` where it is singular.
pub(super) fn solve(mut system: Matrix, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let width = right.len();
    let largest = (0..width).fold(0f64, |most, at| most.max(system[(at, at)]));
    for at in 0..width {
        for column in 0..=at {
            let done: f64 = (0..column)
                .map(|k| system[(at, k)] * system[(column, k)])
                .sum();
            let left = system[(at, column)] - done;
            system[(at, column)] = match column == at {
                true if left <= 1e-13 * largest => return None,
                true => left.sqrt(),
                false => left / system[(column, column)],
            };
        }
        let done: f64 = (0..at).map(|k| system[(at, k)] * right[k]).sum();
        right[at] = (right[at] - done) / system[(at, at)];
    }
    for at in (0..width).rev() {
        let done: f64 = (at + 1..width).map(|k| system[(k, at)] * right[k]).sum();
        right[at] = (right[at] - done) / system[(at, at)];
    }
    Some(right)
}
