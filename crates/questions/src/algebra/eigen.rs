//! Eigenvalues and eigenvectors of a symmetric matrix by cyclic Jacobi rotations.
//!
//! Each rotation makes one entry off the diagonal zero (Golub & Van Loan, *Matrix Computations*, 4th edition,
//! 8.5). Entries are visited in a fixed order, so the same matrix has the same bits everywhere.

/// More sweeps over all entries than any matrix of these sizes needs: about ten are usual.
const SWEEPS: usize = 60;

/// The eigenvalues of a symmetric matrix with their eigenvectors.
pub struct EigenPairs {
    /// Eigenvalues with eigenvectors of norm 1, the least first.
    pub pairs: Vec<(f64, Vec<f64>)>,
}

impl EigenPairs {
    /// Those of a symmetric matrix of `width` rows.
    pub(super) fn of(mut matrix: Vec<f64>, width: usize) -> Self {
        let mut vectors = vec![0.0; width * width];
        (0..width).for_each(|at| vectors[at * width + at] = 1.0);
        for _ in 0..SWEEPS {
            let mut rotated = false;
            for low in 0..width {
                for high in low + 1..width {
                    rotated |= rotate(&mut matrix, &mut vectors, width, (low, high));
                }
            }
            if !rotated {
                break;
            }
        }
        let value = |at: usize| matrix[at * width + at];
        let vector = |at: usize| vectors[at * width..(at + 1) * width].to_vec();
        let mut pairs: Vec<_> = (0..width).map(|at| (value(at), vector(at))).collect();
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

/// Makes an entry zero. Returns whether it was not small beside its diagonal already.
fn rotate(
    matrix: &mut [f64],
    vectors: &mut [f64],
    width: usize,
    (low, high): (usize, usize),
) -> bool {
    let place = |row: usize, column: usize| row * width + column;
    let (first, last) = (matrix[place(low, low)], matrix[place(high, high)]);
    let entry = matrix[place(low, high)];
    if entry == 0.0 || entry.abs() <= f64::EPSILON / 4.0 * first.abs().max(last.abs()) {
        return false;
    }
    let theta = (last - first) / (2.0 * entry);
    let sign = if theta < 0.0 { -1.0 } else { 1.0 };
    let tangent = sign / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    let turned =
        |left: f64, right: f64| (cosine * left - sine * right, sine * left + cosine * right);
    for at in (0..width).filter(|at| *at != low && *at != high) {
        let (left, right) = turned(matrix[place(at, low)], matrix[place(at, high)]);
        for (column, value) in [(low, left), (high, right)] {
            matrix[place(at, column)] = value;
            matrix[place(column, at)] = value;
        }
    }
    matrix[place(low, low)] = first - tangent * entry;
    matrix[place(high, high)] = last + tangent * entry;
    matrix[place(low, high)] = 0.0;
    matrix[place(high, low)] = 0.0;
    for at in 0..width {
        let (left, right) = turned(vectors[place(low, at)], vectors[place(high, at)]);
        vectors[place(low, at)] = left;
        vectors[place(high, at)] = right;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::Symmetric;

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
