//! Distributes a prior over clusters to their clients, for federations too large for similarities of
//! all pairs (TFL, Ma et al. 2024, Table 6).

/// Errors of distributing a cluster prior.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ClusterError {
    /// A cluster prior with a value that is negative or not finite, or that does not sum to 1.
    #[error("a prior over clusters must be at least 0 everywhere and sum to 1")]
    Prior,
    /// A client in a cluster that does not exist.
    #[error("client {client} is in cluster {cluster}, but the prior has {clusters} clusters")]
    Label {
        /// Number of the client, from 0.
        client: usize,
        /// Cluster of the client, from 0.
        cluster: u32,
        /// Number of clusters.
        clusters: usize,
    },
    /// A cluster without clients: its weight would be lost.
    #[error("cluster {cluster} has no clients: leave it out when the topology is learned")]
    NoClients {
        /// Number of the cluster, from 0.
        cluster: usize,
    },
}

/// `p_k = P_{c(k)} / |c(k)|`: every client gets an equal part of its cluster's prior, so the result
/// sums to 1.
///
/// * `prior`: `P`, a point of the simplex over clusters.
/// * `labels`: the cluster `c(k)` of every client.
///
/// # Errors
/// [`ClusterError`]: a prior that is no distribution, a label beyond the clusters, a cluster without clients.
pub fn client_prior(prior: &[f64], labels: &[u32]) -> Result<Vec<f64>, ClusterError> {
    if !super::simplex::contains(prior) {
        return Err(ClusterError::Prior);
    }
    let mut sizes = vec![0u32; prior.len()];
    for (client, &cluster) in labels.iter().enumerate() {
        let clusters = prior.len();
        *sizes.get_mut(cluster as usize).ok_or(ClusterError::Label {
            client,
            cluster,
            clusters,
        })? += 1;
    }
    if let Some(cluster) = sizes.iter().position(|&size| size == 0) {
        return Err(ClusterError::NoClients { cluster });
    }
    let share = |&cluster: &u32| prior[cluster as usize] / f64::from(sizes[cluster as usize]);
    Ok(labels.iter().map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_share_the_prior_of_their_cluster() {
        let prior = client_prior(&[0.5, 0.125, 0.375], &[0, 2, 0, 1, 2, 2]);
        assert_eq!(prior, Ok(vec![0.25, 0.125, 0.25, 0.125, 0.125, 0.125]));
    }

    #[test]
    fn one_client_per_cluster_changes_nothing() {
        let prior = [0.1, 0.2, 0.7];
        assert_eq!(client_prior(&prior, &[0, 1, 2]), Ok(prior.to_vec()));
    }

    #[test]
    fn invalid_priors_and_labels_are_refused() {
        let halves = [0.5, 0.5];
        let label = ClusterError::Label {
            client: 1,
            cluster: 2,
            clusters: 2,
        };
        assert_eq!(client_prior(&halves, &[0, 2]), Err(label));
        let empty = ClusterError::NoClients { cluster: 1 };
        assert_eq!(client_prior(&halves, &[0, 0]), Err(empty));
        for odd in [&[0.5, 0.4][..], &[1.5, -0.5], &[f64::NAN, 1.0], &[]] {
            assert_eq!(client_prior(odd, &[0]), Err(ClusterError::Prior));
        }
    }
}
