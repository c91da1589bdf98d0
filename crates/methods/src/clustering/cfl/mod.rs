//! CFL (Sattler, Müller & Samek 2021): splits a cluster in two when the updates of its clients
//! cancel out.

use serde::{Deserialize, Serialize};

use super::ClusteringError;
use super::error::{at_least, finite, sized};
use crate::coalitions::canonical;
use crate::matrix::Matrix;

/// Options of CFL: when and how it splits a cluster. Defaults are those of the authors' code.
///
/// A cluster is split after `after_round` rounds if it has more than `larger_than` clients, their
/// mean update is short (`‖mean Δ‖ < mean_below`: the global model has converged) and one of their
/// updates is long (`max ‖Δ‖ > largest_above`: for that client it has not).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct CflRule {
    /// ε₁ ≥ 0, in the unit of the weights. Default 0.4.
    pub mean_below: f64,
    /// ε₂ ≥ 0, in the unit of the weights. Default 1.6.
    pub largest_above: f64,
    /// Clusters of at most this many clients are never split. Default 2.
    pub larger_than: usize,
    /// No cluster is split in the first this many rounds. Default 20.
    pub after_round: u64,
    /// Rule for splitting a cluster. Default: single linkage, as in the paper.
    pub linkage: Linkage,
}

/// Linkage: the similarity of two groups of clients.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Linkage {
    /// Single linkage: the similarity of their most similar clients. It ends with the bipartition
    /// whose largest similarity across is smallest, as the paper asks.
    #[default]
    Single,
    /// Complete linkage: the similarity of their least similar clients. The parts are more even, but
    /// the largest similarity across need not be the smallest. As in the authors' code.
    Complete,
}

impl Default for CflRule {
    fn default() -> Self {
        Self {
            mean_below: 0.4,
            largest_above: 1.6,
            larger_than: 2,
            after_round: 20,
            linkage: Linkage::Single,
        }
    }
}

/// Lengths of the updates of a cluster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norms {
    /// ℓ2 norm of their unweighted mean.
    pub mean: f64,
    /// The largest ℓ2 norm of a single update.
    pub largest: f64,
}

/// A split of a cluster into two parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Bipartition {
    /// 0 or 1 for every client; 0 for the first.
    pub assignment: Vec<u32>,
    /// The largest similarity of two clients in different parts.
    pub cross: f64,
}

impl CflRule {
    /// Checks the options.
    ///
    /// # Errors
    /// [`ClusteringError::Option`] for a threshold below 0 or not finite.
    pub fn validate(&self) -> Result<(), ClusteringError> {
        let thresholds = [
            ("mean-below", self.mean_below),
            ("largest-above", self.largest_above),
        ];
        match thresholds
            .into_iter()
            .find(|(_, value)| !(0.0..f64::INFINITY).contains(value))
        {
            Some((option, got)) => Err(ClusteringError::Option {
                option,
                allowed: "finite and at least 0",
                got,
            }),
            None => Ok(()),
        }
    }

    /// Returns whether a cluster of `clients` whose updates have these norms is to be split in `round`.
    pub fn splits(&self, norms: Norms, clients: usize, round: u64) -> bool {
        norms.mean < self.mean_below
            && norms.largest > self.largest_above
            && clients > self.larger_than.max(1)
            && round > self.after_round
    }

    /// The clusters of the next round: splits every cluster of `assignment` that meets the criterion
    /// ([`splits`](Self::splits)). Clusters are numbered in the order of their first clients.
    ///
    /// * `gram`: `n × n`, inner products `⟨Δ_i, Δ_j⟩` of the clients' updates of this round.
    ///
    /// # Errors
    /// [`ClusteringError`]: an option out of its range, no client, a matrix that is not `n × n`, or
    /// a number in it that is not finite.
    pub fn refine(
        &self,
        gram: &Matrix,
        assignment: &[u32],
        round: u64,
    ) -> Result<Vec<u32>, ClusteringError> {
        self.validate()?;
        square("products", gram)?;
        sized("the assignment", gram.rows(), assignment.len())?;
        let mut next: Vec<u32> = canonical(assignment);
        let clusters = next.iter().max().map_or(0, |last| last + 1);
        for cluster in 0..clusters {
            let clients: Vec<usize> = (0..next.len()).filter(|&i| next[i] == cluster).collect();
            if self.splits(norms(gram, &clients), clients.len(), round) {
                let parts = bipartition(&cosines(gram, &clients), self.linkage)?;
                for (&client, part) in clients.iter().zip(parts.assignment) {
                    // Two numbers per cluster, so that parts of different clusters stay apart.
                    next[client] = if part == 0 {
                        cluster
                    } else {
                        clusters + cluster
                    };
                }
            }
        }
        Ok(canonical(&next))
    }
}

/// Norms of the updates of some clients, from the Gram matrix of all updates.
///
/// # Panics
/// If there is no client, or one that `gram` does not have.
pub fn norms(gram: &Matrix, clients: &[usize]) -> Norms {
    assert!(!clients.is_empty(), "at least one client is needed");
    let products = clients
        .iter()
        .map(|&i| clients.iter().map(|&j| gram[(i, j)]).sum::<f64>());
    let squared: f64 = products.sum();
    let largest = clients.iter().map(|&i| gram[(i, i)]).fold(0.0, f64::max);
    Norms {
        // Rounding may leave a sum of cancelling products below 0.
        mean: squared.max(0.0).sqrt() / clients.len() as f64,
        largest: largest.sqrt(),
    }
}

/// Cosines of the updates of some clients, 1 on the diagonal; 0 with an update of length 0.
fn cosines(gram: &Matrix, clients: &[usize]) -> Matrix {
    Matrix::from_fn(clients.len(), clients.len(), |i, j| {
        let (i, j) = (clients[i], clients[j]);
        let lengths = gram[(i, i)].max(0.0).sqrt() * gram[(j, j)].max(0.0).sqrt();
        if i == j {
            1.0
        } else if lengths == 0.0 {
            0.0
        } else {
            gram[(i, j)] / lengths
        }
    })
}

/// Splits clients in two: joins the two most similar groups under `linkage` until two are left; ties
/// go to the first pair. `O(n³)`.
///
/// * `similarity`: `n × n`, any finite numbers, symmetric: what is below the diagonal is not read.
///
/// # Errors
/// [`ClusteringError`]: fewer than two clients, a matrix that is not square, a number in it that is
/// not finite.
pub fn bipartition(similarity: &Matrix, linkage: Linkage) -> Result<Bipartition, ClusteringError> {
    square("similarities", similarity)?;
    let clients = similarity.rows();
    at_least("clients", 2, clients)?;
    let mut between = Matrix::from_fn(clients, clients, |i, j| similarity[(i.min(j), i.max(j))]);
    // Groups by their first clients.
    let mut groups: Vec<usize> = (0..clients).collect();
    let mut group_of = groups.clone();
    while groups.len() > 2 {
        let (a, b) = most_alike(&between, &groups);
        for &other in &groups {
            let (own, joined) = (between[(a, other)], between[(b, other)]);
            let alike = match linkage {
                Linkage::Single => own.max(joined),
                Linkage::Complete => own.min(joined),
            };
            between[(a, other)] = alike;
            between[(other, a)] = alike;
        }
        groups.retain(|&group| group != b);
        group_of
            .iter_mut()
            .filter(|group| **group == b)
            .for_each(|group| *group = a);
    }
    let assignment: Vec<u32> = group_of
        .iter()
        .map(|&group| u32::from(group != 0))
        .collect();
    let cross = (0..clients)
        .flat_map(|i| (i + 1..clients).map(move |j| (i, j)))
        .filter(|&(i, j)| assignment[i] != assignment[j])
        .map(|pair| similarity[pair])
        .fold(f64::NEG_INFINITY, f64::max);
    Ok(Bipartition { assignment, cross })
}

/// The pair of groups with the largest similarity, in ascending order; ties go to the first.
fn most_alike(between: &Matrix, groups: &[usize]) -> (usize, usize) {
    let mut best = (f64::NEG_INFINITY, (0, 0));
    for (position, &a) in groups.iter().enumerate() {
        for &b in &groups[position + 1..] {
            if between[(a, b)] > best.0 {
                best = (between[(a, b)], (a, b));
            }
        }
    }
    best.1
}

/// Refuses a matrix that is not square, is empty or has a number that is not finite.
fn square(what: &'static str, matrix: &Matrix) -> Result<(), ClusteringError> {
    finite(what, matrix)?;
    sized(
        "every row of a square matrix",
        matrix.rows(),
        matrix.columns(),
    )
}

#[cfg(test)]
mod tests;
