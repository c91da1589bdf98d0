//! Folds for cross-validation.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{RowLoss, Samples};

/// A partition of rows into folds. The rows of one group are in one fold, and the numbers of groups in
/// two folds differ by at most one; without groups the numbers of rows do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folds {
    /// The rows of every fold.
    members: Vec<Vec<usize>>,
}

/// An impossible number of folds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{rows} rows or groups of rows cannot be split into {folds} folds: ask for 2 folds up to their number"
)]
pub struct FoldsError {
    /// Folds asked for.
    pub folds: usize,
    /// Groups of rows at hand, or rows where there are no groups.
    pub rows: usize,
}

impl Folds {
    /// Partitions rows at random, drawn from `seed`. For logistic loss the folds are stratified: the
    /// count of each label differs by at most one between folds, where a group has the label of its first
    /// row.
    ///
    /// # Errors
    /// [`FoldsError`] unless there are at least two folds and at least as many groups as folds.
    pub fn new(rows: &Samples, loss: RowLoss, folds: usize, seed: u64) -> Result<Self, FoldsError> {
        let dealt = rows.together();
        if folds < 2 || folds > dealt.len() {
            let rows = dealt.len();
            return Err(FoldsError { folds, rows });
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut order: Vec<usize> = (0..dealt.len()).collect();
        for last in (1..order.len()).rev() {
            // The remainder's bias is below 2⁻³² and does not matter here.
            order.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
        }
        if loss == RowLoss::Logistic {
            let label = |group: usize| rows.targets()[dealt[group][0]];
            order.sort_by(|&a, &b| label(a).total_cmp(&label(b)));
        }
        let mut members = vec![Vec::new(); folds];
        for (place, group) in order.into_iter().enumerate() {
            members[place % folds].extend(&dealt[group]);
        }
        members.iter_mut().for_each(|rows| rows.sort_unstable());
        Ok(Self { members })
    }

    /// For every fold, the rows outside it (for fitting) and inside it (held out).
    pub fn splits(&self, rows: &Samples) -> Vec<(Samples, Samples)> {
        let outside = |fold: &Vec<usize>| -> Vec<usize> {
            (0..rows.len())
                .filter(|row| fold.binary_search(row).is_err())
                .collect()
        };
        self.members
            .iter()
            .map(|fold| (rows.select(&outside(fold)), rows.select(fold)))
            .collect()
    }
}

#[cfg(test)]
mod tests;
