//! The utility of a grouping of clients (HCCT, eqs. (8) to (16)).

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::coalitions::canonical;

/// α of eq. (9): the weight of the amount of data against the direction.
///
/// It is measured in samples. With one α for all, two clients of `n` samples each and with equally
/// long gradients join if the angle φ between these has `cos(φ/2) > 1 − α/(2n)`; so an α that is
/// small compared with the sample counts leaves nearly all clients alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Alpha {
    /// `α_k = n_k`: a client alone has utility 0, and two such clients join below 120°, however
    /// many samples they have.
    #[default]
    Own,
    /// `α_k` is this share of `n_k`, at least 0: free of scale, as `own`, which is a share of 1. Two
    /// such clients join below 120° at 1, 83° at 0.5, 52° at 0.2.
    Share(f64),
    /// This many rows for every client, at least 0.
    Common(f64),
    /// So many rows for every client by itself, each at least 0. A strategy takes them in the order of the
    /// members and needs to know who contributed, so the agreement has to show names.
    Each(Vec<f64>),
}

/// Errors of computing utilities.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UtilityError {
    /// No clients.
    #[error("grouping needs at least one client")]
    Empty,
    /// The numbers of rows, columns and sample counts differ.
    #[error(
        "the Gram matrix is {rows} × {columns} and there are {samples} sample counts: all three must be the number of clients"
    )]
    Sizes {
        /// Rows of the Gram matrix.
        rows: usize,
        /// Columns of the Gram matrix.
        columns: usize,
        /// Sample counts.
        samples: usize,
    },
    /// A client without samples.
    #[error("client {client} has no samples: leave it out")]
    NoSamples {
        /// Number of the client, from 0.
        client: usize,
    },
    /// An entry that is NaN, infinite or beyond 1e100.
    #[error("the inner product in row {row}, column {column} is not finite, or beyond 1e100")]
    NotFinite {
        /// Row of the entry, from 0.
        row: usize,
        /// Column of the entry, from 0.
        column: usize,
    },
    /// Entries that cannot be inner products of vectors.
    #[error(
        "row {row}, column {column} cannot be an inner product: the matrix must be symmetric, and no entry larger than the two lengths allow"
    )]
    NotGram {
        /// Row of the entry, from 0.
        row: usize,
        /// Column of the entry, from 0.
        column: usize,
    },
    /// An α that is negative, NaN or beyond 1e100.
    #[error("α must be between 0 and 1e100, not {0}")]
    Alpha(f64),
    /// The number of α differs from that of clients.
    #[error("there are {alphas} values of α, but {clients} clients: one each is needed")]
    Alphas {
        /// Values of α.
        alphas: usize,
        /// Clients.
        clients: usize,
    },
}

/// A grouping of the clients and its utilities.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouping {
    /// Group of every client; groups are numbered in the order of their first member.
    pub assignment: Vec<u32>,
    /// `u_k` of every client (eq. (9) with `C = 0`).
    pub utilities: Vec<f64>,
    /// Sum of the utilities: what HCCT maximises (eq. (10)).
    pub total: f64,
}

/// Largest absolute entry of a Gram matrix, and largest α: sums and products stay finite.
const LARGEST: f64 = 1e100;

/// Gradients shorter than this count as 0; the only such `f32` is 0.
const SHORTEST: f64 = 1e-50;

/// Allowed deviation from a Gram matrix, in cosines, for matrices summed in another order.
const SLACK: f64 = 1e-6;

/// Gradients cancel if the norm of their sum is below a millionth of the sum of their norms: its
/// direction is rounding then. As a ratio of squares.
const CANCELLED: f64 = 1e-12;

/// The data of one round that utilities depend on: sample counts, lengths of the gradients and the
/// angles between them.
#[derive(Debug, Clone)]
pub struct Utility {
    /// `n_k`.
    pub(super) samples: Vec<f64>,
    /// `α_k`.
    pub(super) alphas: Vec<f64>,
    /// `n_k·‖g_k‖`: the weight of a client in its group's direction.
    pub(super) pulls: Vec<f64>,
    /// Cosines between gradients, in [−1, 1], bitwise symmetric; 0 with a zero gradient.
    pub(super) cosines: Matrix,
}

impl Utility {
    /// From the inner products `gram` (clients × clients) of the clients' gradients, all with the
    /// same scale, and their numbers of samples.
    ///
    /// # Errors
    /// [`UtilityError`] unless there is a client, everything has one size, every client has
    /// samples, α is in range and `gram` is finite and, up to rounding, a Gram matrix. (Where
    /// rounding makes it asymmetric, the entry below the diagonal counts.)
    pub fn new(gram: &Matrix, samples: &[u64], alpha: &Alpha) -> Result<Self, UtilityError> {
        let clients = samples.len();
        if gram.rows() != clients || !gram.is_square() {
            return Err(UtilityError::Sizes {
                rows: gram.rows(),
                columns: gram.columns(),
                samples: clients,
            });
        }
        if clients == 0 {
            return Err(UtilityError::Empty);
        }
        if let Some(client) = samples.iter().position(|&samples| samples == 0) {
            return Err(UtilityError::NoSamples { client });
        }
        let samples: Vec<f64> = samples.iter().map(|&samples| samples as f64).collect();
        let alphas = match alpha {
            Alpha::Own => samples.clone(),
            Alpha::Share(share) => samples.iter().map(|n| share * n).collect(),
            Alpha::Common(alpha) => vec![*alpha; clients],
            Alpha::Each(alphas) => alphas.clone(),
        };
        if alphas.len() != clients {
            let alphas = alphas.len();
            return Err(UtilityError::Alphas { alphas, clients });
        }
        if let Some(&alpha) = alphas
            .iter()
            .find(|alpha| !(0.0..=LARGEST).contains(*alpha))
        {
            return Err(UtilityError::Alpha(alpha));
        }
        let (lengths, cosines) = cosines(gram)?;
        let pulls = samples.iter().zip(&lengths).map(|(n, length)| n * length);
        Ok(Self {
            pulls: pulls.collect(),
            samples,
            alphas,
            cosines,
        })
    }

    /// Number of clients, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// An upper bound of the total utility of every grouping: one group of parallel gradients.
    pub fn most(&self) -> f64 {
        let total: f64 = self.samples.iter().sum();
        let own = |alpha: &f64| 1.0 - alpha / total;
        self.alphas.iter().map(own).sum()
    }

    /// The grouping in canonical numbers, with `u_k` of every client and their sum.
    ///
    /// # Panics
    /// If `assignment` has another length than there are clients.
    pub fn grouping(&self, assignment: &[u32]) -> Grouping {
        assert_eq!(
            assignment.len(),
            self.len(),
            "the assignment has one group per client"
        );
        let assignment = canonical(assignment);
        let mut utilities = vec![0.0; self.len()];
        for members in members(&assignment) {
            let volume = self.volume(&members);
            for (&k, cosine) in members.iter().zip(self.alignments(&members)) {
                utilities[k] = cosine - self.alphas[k] / volume.samples;
            }
        }
        Grouping {
            total: utilities.iter().sum(),
            assignment,
            utilities,
        }
    }

    /// The benefit `Δ(a, b) = U_{a∪b} − U_a − U_b` of merging two groups (eqs. (13) to (15)).
    ///
    /// # Panics
    /// If a group is empty, names a client that does not exist, or shares one with the other.
    pub fn benefit(&self, a: &[usize], b: &[usize]) -> f64 {
        let together = [a, b].concat();
        let mut seen = together.clone();
        seen.sort_unstable();
        seen.dedup();
        assert!(
            !a.is_empty() && !b.is_empty() && seen.len() == together.len(),
            "the groups must be disjoint and not empty"
        );
        let alignment = |members: &[usize]| self.alignments(members).iter().sum::<f64>();
        self.volume(a).gain(self.volume(b)) + alignment(&together) - alignment(a) - alignment(b)
    }

    /// Samples and α of a group.
    pub(super) fn volume(&self, members: &[usize]) -> Volume {
        Volume {
            samples: members.iter().map(|&k| self.samples[k]).sum(),
            alpha: members.iter().map(|&k| self.alphas[k]).sum(),
        }
    }

    /// `cos(g_k, g_c)` of every member (eq. (8)).
    pub(super) fn alignments(&self, members: &[usize]) -> Vec<f64> {
        // ⟨g_k, N_c·g_c⟩/‖g_k‖
        let along = |k: usize| -> f64 {
            let row = self.cosines.row(k);
            members.iter().map(|&j| row[j] * self.pulls[j]).sum()
        };
        let along: Vec<f64> = members.iter().map(|&k| along(k)).collect();
        let square = members
            .iter()
            .zip(&along)
            .map(|(&k, a)| self.pulls[k] * a)
            .sum();
        let pull = members.iter().map(|&k| self.pulls[k]).sum();
        let length = direction(square, pull);
        along
            .iter()
            .map(|along| length.map_or(0.0, |length| (along / length).clamp(-1.0, 1.0)))
            .collect()
    }
}

/// Samples and α of a group, for `−Σ_{k∈c} α_k/N_c`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Volume {
    /// `N_c`.
    pub(super) samples: f64,
    /// `Σ_{k∈c} α_k`.
    pub(super) alpha: f64,
}

impl Volume {
    /// The gain of two groups from more data, `a/N + a'/N' − (a + a')/(N + N')`, written without a
    /// subtraction so that a large α does not cancel.
    pub(super) fn gain(self, other: Self) -> f64 {
        let (own, others) = (self.samples, other.samples);
        (self.alpha * (others / own) + other.alpha * (own / others)) / (own + others)
    }
}

/// The norm of a sum of gradients, from its square and the sum `pull` of their norms; `None` if they
/// cancel: then there is no direction, and every cosine is 0.
pub(super) fn direction(square: f64, pull: f64) -> Option<f64> {
    (square > CANCELLED * pull * pull).then(|| square.sqrt())
}

/// The clients of every group; groups must be numbered in the order of their first member.
pub(super) fn members(assignment: &[u32]) -> Vec<Vec<usize>> {
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (client, &group) in assignment.iter().enumerate() {
        match members.get_mut(group as usize) {
            Some(members) => members.push(client),
            None => members.push(vec![client]),
        }
    }
    members
}

/// Norms of the vectors of a Gram matrix, and their cosines: 1 on the diagonal, 0 with a zero vector.
pub(super) fn cosines(gram: &Matrix) -> Result<(Vec<f64>, Matrix), UtilityError> {
    let n = gram.rows();
    let unusable = |entry: &f64| entry.is_nan() || entry.abs() > LARGEST;
    if let Some(at) = gram.values().iter().position(unusable) {
        let (row, column) = (at / n, at % n);
        return Err(UtilityError::NotFinite { row, column });
    }
    if let Some(row) = (0..n).find(|&k| gram[(k, k)] < 0.0) {
        return Err(UtilityError::NotGram { row, column: row });
    }
    let mut lengths: Vec<f64> = (0..n).map(|k| gram[(k, k)].sqrt()).collect();
    let mut cosines = Matrix::zeros(n, n);
    for row in 0..n {
        for column in 0..row {
            let (lower, upper) = (gram[(row, column)], gram[(column, row)]);
            let most = lengths[row] * lengths[column];
            if (lower - upper).abs() > SLACK * most || lower.abs() > (1.0 + SLACK) * most {
                return Err(UtilityError::NotGram { row, column });
            }
            if lengths[row].min(lengths[column]) >= SHORTEST {
                let cosine = (lower / most).clamp(-1.0, 1.0);
                cosines[(row, column)] = cosine;
                cosines[(column, row)] = cosine;
            }
        }
    }
    for (k, length) in lengths.iter_mut().enumerate() {
        if *length >= SHORTEST {
            cosines[(k, k)] = 1.0;
        } else {
            *length = 0.0;
        }
    }
    Ok((lengths, cosines))
}
