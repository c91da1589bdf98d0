//! Normalises similarities to `[0, 1]`, so that one threshold suits all metrics.

use crate::Matrix;

/// Errors of normalising similarities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NormaliseError {
    /// A matrix that is not square.
    #[error("a similarity matrix must be square, this one is {rows} × {columns}")]
    NotSquare {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        columns: usize,
    },
    /// A similarity that is NaN or infinite.
    #[error("the similarity in row {row}, column {column} is not finite")]
    NotFinite {
        /// Row of the similarity, from 0.
        row: usize,
        /// Column of the similarity, from 0.
        column: usize,
    },
}

/// `R_kl = (S_kl − min) / (max − min)` with the extremes over all `k ≠ l`: in `[0, 1]`, with
/// both ends attained. All entries off the diagonal are 1 if all are equal; the diagonal is 0.
///
/// Ma et al. 2024 show scores "normalized into [0, 1]" without saying how; for ℓ1 and ℓ2 this is
/// `1 − (d − d_min)/(d_max − d_min)`.
///
/// # Errors
/// [`NormaliseError`] unless the matrix is square and finite off its diagonal.
pub fn min_max(similarity: &Matrix) -> Result<Matrix, NormaliseError> {
    let (rows, columns) = (similarity.rows(), similarity.columns());
    if !similarity.is_square() {
        return Err(NormaliseError::NotSquare { rows, columns });
    }
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    for row in 0..rows {
        for (column, &value) in similarity
            .row(row)
            .iter()
            .enumerate()
            .filter(|(c, _)| *c != row)
        {
            if !value.is_finite() {
                return Err(NormaliseError::NotFinite { row, column });
            }
            (min, max) = (min.min(value), max.max(value));
        }
    }
    // Halved, so that the width of the range does not overflow.
    let width = max / 2.0 - min / 2.0;
    Ok(Matrix::from_fn(rows, columns, |i, j| {
        if i == j {
            0.0
        } else if width > 0.0 {
            ((similarity[(i, j)] / 2.0 - min / 2.0) / width).clamp(0.0, 1.0)
        } else {
            1.0
        }
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_diagonal_is_ignored() {
        let similarity =
            Matrix::from_rows(&[[f64::NAN, 3.0, 1.0], [3.0, 90.0, 2.0], [1.0, 2.0, -9.0]]);
        let expected = Matrix::from_rows(&[[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, 0.0]]);
        assert_eq!(min_max(&similarity.unwrap()), Ok(expected.unwrap()));
    }

    #[test]
    fn equal_similarities_are_all_one() {
        let ones = Matrix::from_fn(3, 3, |i, j| f64::from(u8::from(i != j)));
        assert_eq!(min_max(&Matrix::from_fn(3, 3, |_, _| -7.5)), Ok(ones));
        assert_eq!(
            min_max(&Matrix::from_fn(1, 1, |_, _| 5.0)),
            Ok(Matrix::zeros(1, 1))
        );
        assert_eq!(min_max(&Matrix::zeros(0, 0)), Ok(Matrix::zeros(0, 0)));
    }

    #[test]
    fn invalid_similarities_are_refused() {
        let error = NormaliseError::NotSquare {
            rows: 2,
            columns: 3,
        };
        assert_eq!(min_max(&Matrix::zeros(2, 3)), Err(error));
        let mut matrix = Matrix::zeros(3, 3);
        matrix[(1, 2)] = f64::INFINITY;
        let error = NormaliseError::NotFinite { row: 1, column: 2 };
        assert_eq!(min_max(&matrix), Err(error));
    }

    proptest! {
        /// Neither a shift nor a positive scale of the similarities matters, nor the order.
        #[test]
        fn scores_are_between_zero_and_one(
            values in prop::collection::vec(-1e3f64..1e3, 16),
            shift in -10.0f64..10.0,
            scale in 0.1f64..10.0,
        ) {
            let plain = min_max(&Matrix::from_fn(4, 4, |i, j| values[4 * i + j])).unwrap();
            let moved = Matrix::from_fn(4, 4, |i, j| scale * values[4 * (3 - i) + (3 - j)] + shift);
            let moved = min_max(&moved).unwrap();
            let off = |matrix: &Matrix| {
                (0..16).filter(|at| at / 4 != at % 4).map(|at| matrix[(at / 4, at % 4)]).collect::<Vec<_>>()
            };
            for i in 0..4 {
                for j in 0..4 {
                    prop_assert!((plain[(i, j)] - moved[(3 - i, 3 - j)]).abs() < 1e-9);
                }
            }
            prop_assert_eq!(off(&plain).into_iter().fold(f64::INFINITY, f64::min), 0.0);
            prop_assert_eq!(off(&plain).into_iter().fold(0.0, f64::max), 1.0);
        }

        #[test]
        fn the_largest_finite_similarities_do_not_overflow(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(a.is_finite() && b.is_finite() && a < b);
            let matrix = Matrix::from_rows(&[[0.0, a], [b, 0.0]]).unwrap();
            let expected = Matrix::from_rows(&[[0.0, 0.0], [1.0, 0.0]]).unwrap();
            prop_assert_eq!(min_max(&matrix).unwrap(), expected);
        }
    }
}
