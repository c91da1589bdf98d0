//! What a division of the clients is worth to them.

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::coalitions::canonical;

/// How much the volume of data counts against the direction: α of eq. (9).
///
/// It is measured in samples. With one α for all, two clients of `n` samples each and with equally
/// long gradients join if the angle φ between these has `cos(φ/2) > 1 − α/(2n)`; so an α that is
/// small beside the sample counts leaves nearly everybody alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alpha {
    /// `α_k = n_k`: a client alone has utility 0, and two such clients join below 120°, however
    /// many samples they have.
    #[default]
    Own,
    /// The same for every client, at least 0.
    Common(f64),
    /// One for every client, each at least 0.
    Each(Vec<f64>),
}

/// Why there is no utility to compute.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum UtilityError {
    /// Nobody.
    #[error("there is no client to form groups of")]
    Empty,
    /// The numbers of rows, columns and sample counts differ.
    #[error(
        "{rows} × {columns} inner products and {samples} sample counts: all three must be the number of clients"
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
        /// Which client, from 0.
        client: usize,
    },
    /// An entry that is NaN, infinite or absurdly large.
    #[error("the inner product in row {row}, column {column} is not finite, or beyond 1e100")]
    NotFinite {
        /// Which row, from 0.
        row: usize,
        /// Which column, from 0.
        column: usize,
    },
    /// Entries that no vectors have.
    #[error(
        "row {row}, column {column} cannot be an inner product: the matrix must be symmetric, and no entry larger than the two lengths allow"
    )]
    NotGram {
        /// Which row, from 0.
        row: usize,
        /// Which column, from 0.
        column: usize,
    },
    /// An α that is negative, NaN or absurdly large.
    #[error("α must be between 0 and 1e100, not {0}")]
    Alpha(f64),
    /// The number of α differs from that of clients.
    #[error("{alphas} values of α for {clients} clients")]
    Alphas {
        /// Values of α.
        alphas: usize,
        /// Clients.
        clients: usize,
    },
}

/// A division of the clients into groups, and what it is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouping {
    /// Group of every client; groups are numbered in the order of their first member.
    pub assignment: Vec<u32>,
    /// `u_k` of every client (eq. (9) with `C = 0`).
    pub utilities: Vec<f64>,
    /// Their sum: what HCCT maximises (eq. (10)).
    pub total: f64,
}

/// Largest |entry| of a Gram matrix, and largest α: leaves room to add and multiply.
const LARGEST: f64 = 1e100;

/// A gradient shorter than this is taken as 0; no `f32` but 0 is as small.
const SHORTEST: f64 = 1e-50;

/// How far a matrix that was summed in another order, or in parallel, may be from a Gram matrix,
/// measured in cosines.
const SLACK: f64 = 1e-6;

/// Gradients have cancelled if their sum is shorter than a millionth of the sum of their lengths:
/// below that its direction is rounding. As a ratio of squares.
const CANCELLED: f64 = 1e-12;

/// The clients of one round, as the utility sees them: sample counts, the lengths of the gradients
/// and the angles between them.
#[derive(Debug, Clone)]
pub struct Utility {
    /// `n_k`.
    pub(super) samples: Vec<f64>,
    /// `α_k`.
    pub(super) alphas: Vec<f64>,
    /// `n_k·‖g_k‖`: how hard a client pulls at its group's direction.
    pub(super) pulls: Vec<f64>,
    /// Between gradients, in [−1, 1], bitwise symmetric; 0 with a zero gradient.
    pub(super) cosines: Matrix,
}

impl Utility {
    /// From the inner products `gram` (clients × clients) of the clients' gradients, all scaled
    /// alike, and their numbers of samples.
    ///
    /// # Errors
    /// [`UtilityError`] unless there is a client, everything has one size, every client has
    /// samples, α is in range and `gram` is finite and, up to rounding, a Gram matrix. (Where
    /// rounding makes it unsymmetric, what stands below the diagonal counts.)
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

    /// What no division's total utility exceeds: everybody in one group of one direction.
    pub fn most(&self) -> f64 {
        let total: f64 = self.samples.iter().sum();
        let own = |alpha: &f64| 1.0 - alpha / total;
        self.alphas.iter().map(own).sum()
    }

    /// The division in canonical numbers, with `u_k` of every client and their sum.
    ///
    /// # Panics
    /// If `assignment` has another length than there are clients.
    pub fn grouping(&self, assignment: &[u32]) -> Grouping {
        assert_eq!(assignment.len(), self.len(), "one group for every client");
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

    /// `Δ(a, b) = U_{a∪b} − U_a − U_b`, what two groups gain by merging (eqs. (13) to (15)).
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
            "two groups that share nobody"
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

/// What of a group counts in `−Σ_{k∈c} α_k/N_c`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Volume {
    /// `N_c`.
    pub(super) samples: f64,
    /// `Σ_{k∈c} α_k`.
    pub(super) alpha: f64,
}

impl Volume {
    /// What two groups gain from more data: `a/N + a'/N' − (a + a')/(N + N')`, written without a
    /// difference so that a large α does not cancel.
    pub(super) fn gain(self, other: Self) -> f64 {
        let (own, others) = (self.samples, other.samples);
        (self.alpha * (others / own) + other.alpha * (own / others)) / (own + others)
    }
}

/// Length of a sum of gradients whose square is `square` and whose lengths add up to `pull`;
/// `None` if they cancel, so that there is no direction and every cosine is 0.
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

/// Lengths, and cosines between: 1 with oneself and 0 where a length is 0.
fn cosines(gram: &Matrix) -> Result<(Vec<f64>, Matrix), UtilityError> {
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
