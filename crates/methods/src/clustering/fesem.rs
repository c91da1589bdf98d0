//! FeSEM (Xie et al. 2021): clients belong to the nearest of several models.
//!
//! E-step: [`assign`]. M-step: [`groups::means`](super::groups::means). Clients then start from
//! their centre. A centre that nobody is near stays where it is: models that come nearer later may
//! still join it, as in IFCA.

use super::ClusteringError;
use super::error::finite;
use super::ifca::least;
use crate::matrix::Matrix;

/// The E-step: every client's nearest centre, the first of equally near ones.
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
