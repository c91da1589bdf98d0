//! Errors of the clusterings.

use crate::matrix::Matrix;
use crate::params::MeanError;

/// Reason for which there is no clustering.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClusteringError {
    /// Fewer clients or clusters than it takes.
    #[error("there are {got} {what}, at least {needed} are needed")]
    TooFew {
        /// `clients` or `clusters`.
        what: &'static str,
        /// Number that is needed.
        needed: usize,
        /// Number at hand.
        got: usize,
    },
    /// A list or matrix of another size than there are clients or clusters.
    #[error("{what} must have length {expected}, not {got}")]
    Mismatch {
        /// The list or matrix.
        what: &'static str,
        /// The size it should have.
        expected: usize,
        /// The size it has.
        got: usize,
    },
    /// A number that is not finite.
    #[error("row {row}, column {column} of the {what} is not a finite number")]
    NotFinite {
        /// Name of the matrix.
        what: &'static str,
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
    },
    /// A cluster that does not exist.
    #[error("client {client} belongs to cluster {cluster}, but there are {clusters}")]
    NoSuchCluster {
        /// The client, from 0.
        client: usize,
        /// The cluster, from 0.
        cluster: u32,
        /// Number of clusters.
        clusters: usize,
    },
    /// An option out of its range.
    #[error("option {option} must be {allowed}, not {got}")]
    Option {
        /// The option, as written in a file.
        option: &'static str,
        /// The values that the option may have.
        allowed: &'static str,
        /// The value of the option.
        got: f64,
    },
    /// The models of a cluster have no mean.
    #[error(transparent)]
    Mean(#[from] MeanError),
}

/// Refuses a matrix without rows or columns, or with a number that is not finite.
pub(super) fn finite(what: &'static str, matrix: &Matrix) -> Result<(), ClusteringError> {
    for (what, got) in [("clients", matrix.rows()), ("clusters", matrix.columns())] {
        at_least(what, 1, got)?;
    }
    match matrix.values().iter().position(|value| !value.is_finite()) {
        Some(at) => Err(ClusteringError::NotFinite {
            what,
            row: at / matrix.columns(),
            column: at % matrix.columns(),
        }),
        None => Ok(()),
    }
}

/// Refuses fewer than `needed`.
pub(super) fn at_least(
    what: &'static str,
    needed: usize,
    got: usize,
) -> Result<(), ClusteringError> {
    if got < needed {
        return Err(ClusteringError::TooFew { what, needed, got });
    }
    Ok(())
}

/// Refuses another size.
pub(super) fn sized(
    what: &'static str,
    expected: usize,
    got: usize,
) -> Result<(), ClusteringError> {
    if got != expected {
        return Err(ClusteringError::Mismatch {
            what,
            expected,
            got,
        });
    }
    Ok(())
}
