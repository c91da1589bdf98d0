//! FeSEM (Xie et al. 2021): every client belongs to the nearest of several cluster models.
//!
//! E-step: [`assign`]. M-step: [`groups::means`](super::groups::means). Clients then start from
//! their centre. A centre without clients stays where it is; clients may join it later, as in IFCA.

use super::ClusteringError;
use super::error::finite;
use super::ifca::least;
use crate::matrix::Matrix;

/// The E-step: the nearest centre of every client; ties go to the first.
///
/// * `distances`: ℓ2 distances, or their squares, of the clients' models (rows) from the centres
///   (columns), from [`squared_distance`](crate::params::squared_distance).
///
/// # Errors
/// [`ClusteringError`]: no client, no centre, a distance that is not finite.
pub fn assign(distances: &Matrix) -> Result<Vec<u32>, ClusteringError> {
    finite("distances", distances)?;
    Ok(least(distances))
}
