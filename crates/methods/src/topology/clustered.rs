//! A prior learned over clusters of clients, shared out to the clients: for federations so large
//! that similarities of all pairs are too many (TFL, Ma et al. 2024, Table 6).

/// Why a prior cannot be shared out.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ClusterError {
    /// A cluster prior with a value that is negative or not finite, or that does not sum to 1.
    #[error("a prior over clusters must be at least 0 everywhere and sum to 1")]
    Prior,
    /// A client in a cluster that is not there.
    #[error("client {client} is in cluster {cluster}, but the prior has {clusters} clusters")]
    Label {
        /// Which client, from 0.
        client: usize,
        /// Its cluster, from 0.
        cluster: u32,
        /// Clusters at hand.
        clusters: usize,
    },
    /// A cluster without clients: what it weighs would be lost.
    #[error("cluster {cluster} has no clients: drop it before its topology is learned")]
    NoClients {
        /// Which cluster, from 0.
        cluster: usize,
    },
}

/// `p_k = P_{c(k)} / |c(k)|`: every client gets an equal part of what its cluster weighs, so that
/// the whole still sums to 1.
///
/// * `prior`: `P`, a point of the simplex over clusters.
/// * `labels`: the cluster `c(k)` of every client.
///
/// # Errors
/// [`ClusterError`]: no distribution, a label beyond the clusters, a cluster without clients.
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
    fn clusters_share_out_what_they_weigh() {
        let prior = client_prior(&[0.5, 0.125, 0.375], &[0, 2, 0, 1, 2, 2]);
        assert_eq!(prior, Ok(vec![0.25, 0.125, 0.25, 0.125, 0.125, 0.125]));
    }

    #[test]
    fn one_client_per_cluster_changes_nothing() {
        let prior = [0.1, 0.2, 0.7];
        assert_eq!(client_prior(&prior, &[0, 1, 2]), Ok(prior.to_vec()));
    }

    #[test]
    fn what_would_not_sum_to_one_is_refused() {
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
