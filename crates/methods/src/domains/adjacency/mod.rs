//! The adjacency matrix `A` of domains: rows sum to 1, the diagonal is β.

use crate::Matrix;

/// The paper's β, the weight of a domain's own parameters.
pub const BETA: f64 = 0.5;

/// Lower bound of distances: two equal domains share nearly all of their neighbour weight.
const NEAREST: f64 = 1e-12;

/// Errors of computing an adjacency matrix.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AdjacencyError {
    /// No domain.
    #[error("an adjacency matrix needs at least one domain")]
    Empty,
    /// A β outside 0 to 1.
    #[error("beta, the weight of a domain's own parameters, must be between 0 and 1, not {0}")]
    Beta(f64),
    /// Distances that are not `domains × domains`.
    #[error("distances between domains must be a square matrix, not {rows} × {columns}")]
    NotSquare {
        /// Rows of the table.
        rows: usize,
        /// Columns of the table.
        columns: usize,
    },
    /// A distance that is negative, NaN or infinite.
    #[error("the distance between domains {row} and {column} must be finite and at least 0")]
    Distance {
        /// Row of the distance, from 0.
        row: usize,
        /// Column of the distance, from 0.
        column: usize,
    },
}

/// `A = I`: no propagation, as before the first aggregation.
pub fn identity(domains: usize) -> Matrix {
    Matrix::from_fn(domains, domains, |i, j| f64::from(u8::from(i == j)))
}

/// Every entry as `draw` gives it, at least 0, and then divided by the sum of its row. A row of zeros
/// becomes that of [`identity`].
pub fn random(domains: usize, mut draw: impl FnMut() -> f64) -> Matrix {
    let mut drawn = Matrix::from_fn(domains, domains, |_, _| draw());
    for domain in 0..domains {
        let row = drawn.row_mut(domain);
        let sum: f64 = row.iter().sum();
        if sum > 0.0 {
            row.iter_mut().for_each(|share| *share /= sum)
        } else {
            row[domain] = 1.0
        }
    }
    drawn
}

/// Equal weights: `(1 − β)/(D − 1)` off the diagonal.
///
/// # Errors
/// [`AdjacencyError`] on no domain, or a `beta` outside 0 to 1.
pub fn uniform(domains: usize, beta: f64) -> Result<Matrix, AdjacencyError> {
    by_distances(&Matrix::from_fn(domains, domains, |_, _| 1.0), beta)
}

/// From attributes of the domains: the number of a domain is read in binary, a bit for every attribute
/// that it has or has not, and the distance of two domains is the number of bits in which they differ
/// (Hamming). The paper divides by the number of bits, which changes no share. With one domain,
/// `A = [1]`.
///
/// # Errors
/// [`AdjacencyError`] on no domain, or a `beta` outside 0 to 1.
pub fn by_attributes(domains: usize, beta: f64) -> Result<Matrix, AdjacencyError> {
    let distance = |i: usize, j: usize| f64::from((i ^ j).count_ones());
    by_distances(&Matrix::from_fn(domains, domains, distance), beta)
}

/// From the parameters of the branches (eq. (6)): `A_ii = β` and
/// `A_ij = (1 − β)·h_ij / Σ_{d≠i} h_id` with `h_ij = 1/‖V_i − V_j‖₂`. Row `d` of `parameters`
/// (domains × values) holds all parameters of domain `d`, over all layers with branches. The scale of the parameters does not matter. With one domain, `A = [1]`.
///
/// # Errors
/// [`AdjacencyError`] on no domain, a `beta` outside 0 to 1, or a distance that is not finite.
pub fn by_parameters(parameters: &Matrix, beta: f64) -> Result<Matrix, AdjacencyError> {
    let distance = |i: usize, j: usize| -> f64 {
        let pairs = parameters.row(i).iter().zip(parameters.row(j));
        pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    };
    let domains = parameters.rows();
    by_distances(&Matrix::from_fn(domains, domains, distance), beta)
}

/// As [`by_parameters`], from given distances (domains × domains); the diagonal is not read.
///
/// # Errors
/// [`AdjacencyError`] on no domain, a `beta` outside 0 to 1, a table that is not square, or a
/// distance that is negative or not finite.
pub(super) fn by_distances(distances: &Matrix, beta: f64) -> Result<Matrix, AdjacencyError> {
    let (rows, columns) = (distances.rows(), distances.columns());
    if !distances.is_square() {
        return Err(AdjacencyError::NotSquare { rows, columns });
    }
    if rows == 0 {
        return Err(AdjacencyError::Empty);
    }
    if !(0.0..=1.0).contains(&beta) {
        return Err(AdjacencyError::Beta(beta));
    }
    if rows == 1 {
        return Ok(identity(1));
    }
    let mut adjacency = Matrix::zeros(rows, rows);
    for i in 0..rows {
        let others = || (0..rows).filter(move |&j| j != i);
        let distance = |j: usize| distances[(i, j)].max(NEAREST);
        let usable = |j: &usize| distances[(i, *j)].is_finite() && distances[(i, *j)] >= 0.0;
        if let Some(column) = others().find(|j| !usable(j)) {
            return Err(AdjacencyError::Distance { row: i, column });
        }
        // Nearness relative to the nearest: in (0, 1], so nothing overflows.
        let least = others().map(distance).fold(f64::INFINITY, f64::min);
        let all: f64 = others().map(|j| least / distance(j)).sum();
        for j in others() {
            adjacency[(i, j)] = (1.0 - beta) * (least / distance(j) / all);
        }
        adjacency[(i, i)] = beta;
    }
    Ok(adjacency)
}

#[cfg(test)]
mod tests;
