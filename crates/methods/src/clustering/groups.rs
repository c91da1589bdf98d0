//! Members of every cluster, and the new cluster models from what they trained.

use super::ClusteringError;
use super::error::sized;
use crate::params::{Params, weighted_mean};

/// The clients that update each of `clusters` models, from the clusters that every client chose:
/// one in FeSEM and IFCA (`assignment.iter().map(std::slice::from_ref)`), several in FLSC.
///
/// # Errors
/// [`ClusteringError::NoSuchCluster`] for a choice of `clusters` or above.
pub fn members<'a>(
    choices: impl IntoIterator<Item = &'a [u32]>,
    clusters: usize,
) -> Result<Vec<Vec<u32>>, ClusteringError> {
    let mut members = vec![Vec::new(); clusters];
    for (client, chosen) in choices.into_iter().enumerate() {
        for &cluster in chosen {
            let of = members
                .get_mut(cluster as usize)
                .ok_or(ClusteringError::NoSuchCluster {
                    client,
                    cluster,
                    clusters,
                })?;
            of.push(client as u32);
        }
    }
    Ok(members)
}

/// The model of every cluster: the weighted mean of what its members trained. A cluster without
/// members keeps its model of `before`. The same bits on every machine.
///
/// * `models`: what every client trained, and its weight (IFCA: equal; HCCT's baselines: numbers of rows).
/// * `members`: from [`members`].
///
/// # Errors
/// [`ClusteringError`]: not one model of `before` per cluster, a member that does not exist, models
/// of different layouts, weights of a cluster that are unusable.
pub fn means(
    models: &[(&Params, f64)],
    members: &[Vec<u32>],
    before: &[Params],
) -> Result<Vec<Params>, ClusteringError> {
    sized("the list of models before", members.len(), before.len())?;
    members
        .iter()
        .zip(before)
        .map(|(members, before)| {
            if members.is_empty() {
                return Ok(before.clone());
            }
            let own: Option<Vec<_>> = members
                .iter()
                .map(|&member| models.get(member as usize).copied())
                .collect();
            let own = own.ok_or(ClusteringError::Mismatch {
                what: "the list of trained models",
                expected: members.iter().max().map_or(0, |&last| last as usize + 1),
                got: models.len(),
            })?;
            Ok(weighted_mean(&own)?)
        })
        .collect()
}
