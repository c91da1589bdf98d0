//! Eigenvalues and eigenvectors of a symmetric matrix.
//!
//! Cyclic Jacobi rotations (Golub & Van Loan, *Matrix Computations*, 4th edition, 8.5): each makes one
//! entry off the diagonal zero. Entries are visited in a fixed order, so the same matrix has the same bits
//! everywhere.

/// More sweeps over all entries than any matrix of these sizes needs: about ten are usual.
const SWEEPS: usize = 60;

/// The eigenvalues of a symmetric matrix with their eigenvectors.
pub struct Eigen {
    width: usize,
    values: Vec<f64>,
    /// Eigenvectors, one after the other.
    vectors: Vec<f64>,
}

impl Eigen {
    /// Those of a symmetric matrix of `width` rows.
    pub fn of(mut matrix: Vec<f64>, width: usize) -> Self {
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
        Self {
            width,
            values: (0..width).map(|at| matrix[at * width + at]).collect(),
            vectors,
        }
    }

    /// Each eigenvalue with its eigenvector of norm 1.
    pub fn pairs(&self) -> impl Iterator<Item = (f64, &[f64])> {
        // A matrix without rows has no pairs.
        let vectors = self.vectors.chunks_exact(self.width.max(1));
        self.values.iter().copied().zip(vectors)
    }
}

/// Makes an entry zero, and says whether it was not small beside its diagonal already.
fn rotate(
    matrix: &mut [f64],
    vectors: &mut [f64],
    width: usize,
    (low, high): (usize, usize),
) -> bool {
    let place = |row: usize, column: usize| row * width + column;
    let (first, last) = (matrix[place(low, low)], matrix[place(high, high)]);
    let entry = matrix[place(low, high)];
    // Adding it to the larger of the two would not change a bit of that.
    if entry.abs() <= f64::EPSILON / 4.0 * first.abs().max(last.abs()) || entry == 0.0 {
        return false;
    }
    let theta = (last - first) / (2.0 * entry);
    let sign = if theta < 0.0 { -1.0 } else { 1.0 };
    let tangent = sign / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    for at in (0..width).filter(|at| *at != low && *at != high) {
        let (left, right) = (matrix[place(at, low)], matrix[place(at, high)]);
        let (left, right) = (cosine * left - sine * right, sine * left + cosine * right);
        for (column, value) in [(low, left), (high, right)] {
            matrix[place(at, column)] = value;
            matrix[place(column, at)] = value;
        }
    }
    matrix[place(low, low)] = first - tangent * entry;
    matrix[place(high, high)] = last + tangent * entry;
    matrix[place(low, high)] = 0.0;
    matrix[place(high, low)] = 0.0;
    // Eigenvectors are rows here.
    for at in 0..width {
        let (left, right) = (vectors[place(low, at)], vectors[place(high, at)]);
        vectors[place(low, at)] = cosine * left - sine * right;
        vectors[place(high, at)] = sine * left + cosine * right;
    }
    true
}
