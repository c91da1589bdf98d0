//! Model weights of the baselines, from losses, accuracies or similarities.

mod fedfa;
mod maxfl;
mod pfedgraph;
mod superquantile;

pub use fedfa::{fedfa, fedfa_by_accuracy};
pub use maxfl::{maxfl, maxfl_joins, maxfl_steps};
pub use pfedgraph::PFedGraph;
pub use superquantile::superquantile;

/// Reason for which there are no weights.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum WeightsError {
    /// No client.
    #[error("there is no client to compute a weight for")]
    Empty,
    /// Lists that should have one number per client differ in length.
    #[error("there are {expected} clients, but {got} {what}")]
    Mismatch {
        /// Name of the numbers, of which there should be one per client.
        what: &'static str,
        /// Clients.
        expected: usize,
        /// Numbers at hand.
        got: usize,
    },
    /// A number out of its range.
    #[error("{what} must be {allowed}, not {got}")]
    Range {
        /// Name of the number.
        what: &'static str,
        /// The values that the number may have.
        allowed: &'static str,
        /// The value of the number.
        got: f64,
    },
    /// Numbers that are all zero where shares are needed.
    #[error("the {what} of the clients are all 0")]
    AllZero {
        /// Name of the numbers.
        what: &'static str,
    },
}

/// Refuses a list without exactly one number per client, or a number that is not `valid`.
fn check(
    what: &'static str,
    values: &[f64],
    clients: usize,
    allowed: &'static str,
    valid: impl Fn(f64) -> bool,
) -> Result<(), WeightsError> {
    if clients == 0 {
        return Err(WeightsError::Empty);
    }
    if values.len() != clients {
        return Err(WeightsError::Mismatch {
            what,
            expected: clients,
            got: values.len(),
        });
    }
    match values.iter().find(|value| !valid(**value)) {
        Some(&got) => Err(WeightsError::Range { what, allowed, got }),
        None => Ok(()),
    }
}

/// Checks that `values` are at least 0 and not all 0; scales them to sum to 1.
fn shares(what: &'static str, values: &[f64], clients: usize) -> Result<Vec<f64>, WeightsError> {
    let valid = |value: f64| (0.0..=1e100).contains(&value);
    check(what, values, clients, "from 0 to 1e100", valid)?;
    let total: f64 = values.iter().sum();
    if total == 0.0 {
        return Err(WeightsError::AllZero { what });
    }
    Ok(values.iter().map(|value| value / total).collect())
}

#[cfg(test)]
mod tests;
