//! IFCA (Ghosh et al. 2020) and FLSC (Li et al. 2021): every client chooses the cluster models with
//! the least loss on its data.
//!
//! Cluster models must differ from the start: of equal models every client chooses the first.

use std::cmp::Ordering;

use super::ClusteringError;
use super::error::{finite, sized};
use crate::matrix::Matrix;
use crate::params::{Params, weighted_mean};

/// IFCA: the model with the least loss for every client; ties go to the first. The models are then
/// updated by [`groups::means`](super::groups::means) with equal weights; a model that no client
/// chose stays as it is.
///
/// * `losses`: of every model (columns) on the data of every client (rows).
///
/// # Errors
/// [`ClusteringError`]: no client, no model, a loss that is not finite.
pub fn ifca(losses: &Matrix) -> Result<Vec<u32>, ClusteringError> {
    finite("losses", losses)?;
    Ok(least(losses))
}

/// FLSC: the `select` models with the least loss for every client, best first; ties go to the first.
/// Each of them gets the client's update. With `select` 1 it is IFCA.
///
/// * `losses`: of every model (columns) on the data of every client (rows).
///
/// # Errors
/// [`ClusteringError`]: no client, no model, a loss that is not finite, `select` not from 1 to the
/// number of models.
pub fn flsc(losses: &Matrix, select: usize) -> Result<Vec<Vec<u32>>, ClusteringError> {
    finite("losses", losses)?;
    if select == 0 || select > losses.columns() {
        return Err(ClusteringError::Option {
            option: "select",
            allowed: "from 1 to the number of models",
            got: select as f64,
        });
    }
    let choose = |client: usize| {
        let row = losses.row(client);
        let mut order: Vec<u32> = (0..row.len() as u32).collect();
        order.sort_by(|&a, &b| ascending(&row[a as usize], &row[b as usize]));
        order.truncate(select);
        order
    };
    Ok((0..losses.rows()).map(choose).collect())
}

/// The model that a client of FLSC starts from: the unweighted mean of the models it chose.
///
/// # Errors
/// [`ClusteringError`]: nothing chosen, a model that does not exist, models of different layouts.
pub fn flsc_start(chosen: &[u32], models: &[Params]) -> Result<Params, ClusteringError> {
    let own: Vec<_> = chosen
        .iter()
        .filter_map(|&model| Some((models.get(model as usize)?, 1.0)))
        .collect();
    sized(
        "the list of existing models to start from",
        chosen.len(),
        own.len(),
    )?;
    Ok(weighted_mean(&own)?)
}

/// The column of the least value of every row; ties go to the first.
pub(super) fn least(matrix: &Matrix) -> Vec<u32> {
    let first_least = |row: usize| {
        let values = (0u32..).zip(matrix.row(row));
        let least = values.min_by(|a, b| ascending(a.1, b.1));
        least.map_or(0, |(column, _)| column)
    };
    (0..matrix.rows()).map(first_least).collect()
}

/// Compares by value: zeros of either sign are equal, so that the first is chosen.
fn ascending(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b)
        .expect("callers check that all values are finite")
}
