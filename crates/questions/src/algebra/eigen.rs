//! Eigenvalues of a symmetric matrix in order, with their eigenvectors.

use privacy::least_squares::Eigen;

/// The eigenvalues of a symmetric matrix with their eigenvectors.
pub struct EigenPairs {
    /// Eigenvalues with eigenvectors of norm 1, the least first.
    pub pairs: Vec<(f64, Vec<f64>)>,
}

impl EigenPairs {
    /// Those of a symmetric matrix of `width` rows.
    pub(super) fn of(matrix: Vec<f64>, width: usize) -> Self {
        let eigen = Eigen::of(matrix, width);
        let vectors = eigen
            .pairs()
            .map(|(value, vector)| (value, vector.to_vec()));
        let mut pairs: Vec<_> = vectors.collect();
        pairs.sort_by(|(left, _), (right, _)| left.total_cmp(right));
        Self { pairs }
    }

    /// The least eigenvalue; infinite for a matrix without rows.
    pub fn least(&self) -> f64 {
        self.pairs
            .first()
            .map_or(f64::INFINITY, |(value, _)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Symmetric;

    #[test]
    fn a_matrix_without_rows_has_no_eigenvalues() {
        assert_eq!(Symmetric::zeros(0).eigen().least(), f64::INFINITY);
    }

    #[test]
    fn a_matrix_is_the_sum_of_its_eigenvectors() {
        let matrix = Symmetric::of_triangle(3, &[4.0, 1.0, -2.0, 3.0, 0.5, 5.0]);
        let mut again = Symmetric::zeros(3);
        for (value, vector) in &matrix.eigen().pairs {
            again.add_outer(*value, vector);
        }
        let pairs = matrix.triangle().into_iter().zip(again.triangle());
        assert!(
            pairs
                .into_iter()
                .all(|(left, right)| (left - right).abs() < 1e-13)
        );
    }
}
