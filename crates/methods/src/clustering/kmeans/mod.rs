//! k-means (Lloyd 1982; k-means++ seeding by Arthur & Vassilvitskii 2007), computed from inner
//! products alone.
//!
//! Used where there are too many clients for a topology of clients: they are clustered by their
//! weights, and the topology is learned over the centroids (Ma et al. 2024, Table 6). The points are
//! long and few, so they are read once for their Gram matrix `G`; the squared distance of point `i`
//! to the mean of a cluster `C` is
//! `G_ii − (2/|C|)·Σ_{j∈C} G_ij + (1/|C|²)·Σ_{j,l∈C} G_jl`, and an iteration costs `n²`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use crate::Matrix;
use crate::coalitions::canonical;
use crate::similarity::{CompareError, Vectors, squared_distances_f64};

/// Options of k-means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KMeans {
    /// Number of clusters, at least 1.
    pub clusters: usize,
    /// Number of runs from different seedings; the best result counts. 0 counts as 1.
    pub starts: usize,
    /// Maximum number of iterations of a run.
    pub iterations: usize,
    /// Seed of the random seedings.
    pub seed: u64,
}

/// A clustering of points.
#[derive(Debug, Clone, PartialEq)]
pub struct Clusters {
    /// Cluster of every point; clusters are numbered in the order of their first point, and none
    /// is empty.
    pub labels: Vec<u32>,
    /// Sum of the squared distances of all points to the means of their clusters.
    pub inertia: f64,
    /// Iterations of the best run: reassignments of all points that lowered the inertia.
    pub iterations: usize,
}

/// Reason for which points cannot be clustered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KMeansError {
    /// No clusters, or more than there are points.
    #[error("{points} points cannot be grouped into {clusters} clusters: ask for 1 to {points}")]
    Clusters {
        /// Clusters asked for.
        clusters: usize,
        /// Points at hand.
        points: usize,
    },
    /// A Gram matrix has as many columns as rows.
    #[error("a Gram matrix must be square, this one is {rows} × {columns}")]
    NotSquare {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        columns: usize,
    },
    /// An entry that is NaN, infinite, or so large that sums of entries would be.
    #[error(
        "the entry in row {row}, column {column} of the Gram matrix is not finite, or beyond 1e100"
    )]
    NotFinite {
        /// Row of the entry, from 0.
        row: usize,
        /// Column of the entry, from 0.
        column: usize,
    },
    /// The points themselves cannot be compared.
    #[error(transparent)]
    Points(#[from] CompareError),
}

impl KMeans {
    /// Largest absolute entry of a Gram matrix: sums over any number of entries stay finite.
    pub const LARGEST: f64 = 1e100;

    /// 10 runs of at most 300 iterations; they cost little compared with the Gram matrix.
    pub fn new(clusters: usize, seed: u64) -> Self {
        Self {
            clusters,
            starts: 10,
            iterations: 300,
            seed,
        }
    }

    /// Clusters the points with the given Gram matrix (`n × n`, symmetric).
    ///
    /// Distances computed from a Gram matrix lose digits where points are far from the origin;
    /// [`Self::fit_rows_f64`] is more accurate. A function of the matrix and the seed.
    ///
    /// # Errors
    /// [`KMeansError`]: a matrix that is not square or not finite, or an impossible number of
    /// clusters.
    pub fn fit(&self, gram: &Matrix) -> Result<Clusters, KMeansError> {
        let (points, columns) = (gram.rows(), gram.columns());
        if !gram.is_square() {
            let rows = points;
            return Err(KMeansError::NotSquare { rows, columns });
        }
        let clusters = self.clusters;
        if clusters == 0 || clusters > points {
            return Err(KMeansError::Clusters { clusters, points });
        }
        let beyond = |value: &f64| value.is_nan() || value.abs() > Self::LARGEST;
        if let Some(place) = gram.values().iter().position(beyond) {
            let (row, column) = (place / columns, place % columns);
            return Err(KMeansError::NotFinite { row, column });
        }
        let found: Vec<_> = (0..self.starts.max(1) as u64)
            .into_par_iter()
            .map(|start| {
                let mut random = ChaCha8Rng::seed_from_u64(self.seed);
                random.set_stream(start);
                let seeding = seeding(gram, clusters, &mut random);
                descend(gram, clusters, seeding, self.iterations)
            })
            .collect();
        let better = |best: Clusters, next: Clusters| {
            if next.inertia < best.inertia {
                next
            } else {
                best
            }
        };
        let best = found
            .into_iter()
            .reduce(better)
            .expect("there is at least one start");
        let labels = canonical(&best.labels);
        Ok(Clusters { labels, ..best })
    }

    /// Clusters `rows` by their [`squared_distances_f64`]: more accurate than [`Self::fit`]
    /// where points are near each other and far from the origin. The same clusters on every machine.
    ///
    /// # Errors
    /// [`KMeansError`]: values that are not finite, or an impossible number of clusters.
    pub fn fit_rows_f64(&self, rows: &Vectors<'_>) -> Result<Clusters, KMeansError> {
        self.fit_squares(&squared_distances_f64(rows)?)
    }

    fn fit_squares(&self, squares: &Matrix) -> Result<Clusters, KMeansError> {
        // The Gram matrix with the first point as the origin.
        let gram = Matrix::from_fn(squares.rows(), squares.columns(), |i, j| {
            (squares[(i, 0)] + squares[(j, 0)] - squares[(i, j)]) / 2.0
        });
        self.fit(&gram)
    }
}

fn sizes<'a>(labels: impl IntoIterator<Item = &'a u32>, clusters: usize) -> Vec<f64> {
    let mut sizes = vec![0f64; clusters];
    for &label in labels {
        sizes[label as usize] += 1.0;
    }
    sizes
}

/// k-means++ seeding: draws `clusters` points one after the other, each with a probability
/// proportional to its squared distance from the nearest point drawn before, and assigns every point
/// to the nearest of them. No cluster is empty.
fn seeding(gram: &Matrix, clusters: usize, random: &mut ChaCha8Rng) -> Vec<u32> {
    let n = gram.rows();
    let mut nearest = vec![f64::INFINITY; n];
    let mut labels = vec![0; n];
    let mut next = (random.next_u64() % n as u64) as usize;
    for cluster in 0..clusters as u32 {
        for i in 0..n {
            let square = (gram[(i, i)] - 2.0 * gram[(i, next)] + gram[(next, next)]).max(0.0);
            if square < nearest[i] {
                (nearest[i], labels[i]) = (square, cluster);
            }
        }
        next = draw(&nearest, random);
    }
    fill(&mut labels, clusters, &mut nearest);
    labels
}

/// A position, with a probability proportional to its weight; the first if all weights are 0.
fn draw(weights: &[f64], random: &mut ChaCha8Rng) -> usize {
    let total: f64 = weights.iter().sum();
    let mut left = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * total;
    let mut drawn = 0;
    for (position, &weight) in weights.iter().enumerate() {
        // Rounding may leave a remainder at the end: it goes to the last position with a weight.
        if weight > 0.0 {
            drawn = position;
            if left < weight {
                break;
            }
            left -= weight;
        }
    }
    drawn
}

/// Moves a point into every empty cluster: the one farthest from the mean of its own cluster, among
/// clusters of several points. `squares`: the points' squared distances from those means.
fn fill(labels: &mut [u32], clusters: usize, squares: &mut [f64]) {
    let mut sizes = sizes(&*labels, clusters);
    for empty in 0..clusters {
        if sizes[empty] > 0.0 {
            continue;
        }
        let mut farthest: Option<usize> = None;
        for (i, label) in labels.iter().enumerate() {
            let beyond = farthest.is_none_or(|farthest| squares[i] > squares[farthest]);
            if sizes[*label as usize] > 1.0 && beyond {
                farthest = Some(i);
            }
        }
        let farthest = farthest.expect("fewer clusters than points leave one that has two");
        sizes[labels[farthest] as usize] -= 1.0;
        sizes[empty] = 1.0;
        squares[farthest] = 0.0;
        labels[farthest] = empty as u32;
    }
}

/// Lloyd's iterations from `labels` as long as they lower the inertia.
fn descend(gram: &Matrix, clusters: usize, labels: Vec<u32>, iterations: usize) -> Clusters {
    let mut squares = Squares::new(gram, &labels, clusters);
    let mut best = Clusters {
        inertia: squares.inertia(&labels),
        labels,
        iterations: 0,
    };
    while best.iterations < iterations {
        let labels = squares.nearest(&best.labels);
        squares = Squares::new(gram, &labels, clusters);
        let inertia = squares.inertia(&labels);
        if inertia >= best.inertia {
            break;
        }
        best = Clusters {
            labels,
            inertia,
            iterations: best.iterations + 1,
        };
    }
    best
}

/// Squared distances of all points to the means of all clusters: `c × n`.
struct Squares(Matrix);

impl Squares {
    /// Computes the distances; no cluster may be empty.
    fn new(gram: &Matrix, labels: &[u32], clusters: usize) -> Self {
        let mut links = Matrix::zeros(clusters, labels.len());
        for (i, &label) in labels.iter().enumerate() {
            for (link, value) in links.row_mut(label as usize).iter_mut().zip(gram.row(i)) {
                *link += value;
            }
        }
        let sizes = sizes(labels, clusters);
        let mut within = vec![0f64; clusters];
        for (i, &label) in labels.iter().enumerate() {
            within[label as usize] += links[(label as usize, i)];
        }
        for (cluster, size) in sizes.iter().enumerate() {
            let offset = within[cluster] / (size * size);
            for (i, link) in links.row_mut(cluster).iter_mut().enumerate() {
                *link = (gram[(i, i)] - 2.0 * *link / size + offset).max(0.0);
            }
        }
        Self(links)
    }

    fn at(&self, cluster: u32, i: usize) -> f64 {
        self.0[(cluster as usize, i)]
    }

    fn inertia(&self, labels: &[u32]) -> f64 {
        labels
            .iter()
            .enumerate()
            .map(|(i, &label)| self.at(label, i))
            .sum()
    }

    /// Assigns every point to the nearest mean, in ties to its own; no cluster is empty.
    fn nearest(&self, labels: &[u32]) -> Vec<u32> {
        let clusters = self.0.rows();
        let mut nearest = labels.to_vec();
        let mut squares: Vec<_> = labels
            .iter()
            .enumerate()
            .map(|(i, &label)| self.at(label, i))
            .collect();
        for cluster in 0..clusters as u32 {
            for (i, square) in squares.iter_mut().enumerate() {
                if self.at(cluster, i) < *square {
                    (*square, nearest[i]) = (self.at(cluster, i), cluster);
                }
            }
        }
        fill(&mut nearest, clusters, &mut squares);
        nearest
    }
}

#[cfg(test)]
mod tests;
