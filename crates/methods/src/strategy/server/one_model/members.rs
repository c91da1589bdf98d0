//! Contributions by member, and distributions over members of whom some are absent.

use crate::params::Params;
use crate::topology::uniform;

/// A contribution of a named member, with the loss that it reports.
pub(crate) struct MemberContribution {
    pub(crate) member: usize,
    pub(crate) model: Params,
    /// Loss of the round's start model on the member's training rows.
    pub(crate) loss: f64,
}

/// A distribution over all members restricted to those present; uniform if they have nothing.
pub(crate) fn restricted(all: &[f64], present: &[usize]) -> Vec<f64> {
    let total: f64 = present.iter().map(|&member| all[member]).sum();
    if total > 0.0 {
        present.iter().map(|&member| all[member] / total).collect()
    } else {
        uniform(present.len())
    }
}

/// The distribution in which those present share their total by `among`. Absent members keep what
/// they have.
pub(crate) fn redistributed(mut all: Vec<f64>, present: &[usize], among: &[f64]) -> Vec<f64> {
    let total: f64 = present.iter().map(|&member| all[member]).sum();
    for (&member, share) in present.iter().zip(among) {
        all[member] = total * share;
    }
    all
}
