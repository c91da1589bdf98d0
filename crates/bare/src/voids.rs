//! Sums of masked rounds that were void, and the groups that are suspended because of that.

use std::collections::BTreeMap;

use protocol::Hash;

/// So many rounds with a void sum, in a row or not, suspend a group until the agreement changes.
const VOID_ROUNDS: u8 = 3;

/// In how many rounds of the epoch sums were void, for every outcome of a masked round.
#[derive(Debug, Default)]
pub(super) struct BareVoids(BTreeMap<Hash, VoidCounts>);

/// Counts after an outcome. They hold in the epoch of the outcome only.
#[derive(Debug)]
struct VoidCounts {
    epoch: Hash,
    /// By group.
    void: BTreeMap<usize, u8>,
}

impl BareVoids {
    fn counts(&self, epoch: &Hash, state: &Hash) -> BTreeMap<usize, u8> {
        let counted = self.0.get(state).filter(|last| last.epoch == *epoch);
        counted.map(|last| last.void.clone()).unwrap_or_default()
    }

    /// Counts an outcome that follows a state: for each group with a sum, whether this was void. Gives the
    /// number of void sums and of groups that are suspended for them, if the outcome is new.
    pub(super) fn add(
        &mut self,
        (outcome, epoch): (Hash, Hash),
        state: &Hash,
        sums: impl Iterator<Item = (usize, bool)>,
    ) -> (u64, u64) {
        if self.0.contains_key(&outcome) {
            return (0, 0);
        }
        let mut void = self.counts(&epoch, state);
        let mut new = (0, 0);
        for (group, is_void) in sums {
            let count = void.entry(group).or_default();
            *count += u8::from(is_void);
            new.0 += u64::from(is_void);
            new.1 += u64::from(is_void && *count == VOID_ROUNDS);
        }
        self.0.insert(outcome, VoidCounts { epoch, void });
        new
    }

    /// Whether a group is suspended in an epoch.
    pub(super) fn any_suspended(&self, epoch: &Hash) -> bool {
        let of_epoch = self.0.values().filter(|counts| counts.epoch == *epoch);
        let mut counts = of_epoch.flat_map(|counts| counts.void.values());
        counts.any(|count| *count >= VOID_ROUNDS)
    }

    /// The groups of which no sum is opened in a round that starts from this state.
    pub(super) fn suspended(&self, epoch: &Hash, state: &Hash) -> Vec<usize> {
        let counts = self.counts(epoch, state).into_iter();
        let suspended = counts.filter(|(_, count)| *count >= VOID_ROUNDS);
        suspended.map(|(group, _)| group).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_void_sums_suspend_a_group_in_their_epoch_in_a_row_or_not() {
        let (mut voids, epoch) = (BareVoids::default(), Hash([9; 32]));
        let outcome = |at: u8| Hash([at; 32]);
        for (at, void) in [(1, true), (2, false), (3, false), (4, true), (5, false)] {
            let sums = [(0, void), (1, false)].into_iter();
            let new = voids.add((outcome(at), epoch), &outcome(at - 1), sums);
            assert_eq!(new, (u64::from(void), 0));
            assert!(voids.suspended(&epoch, &outcome(at)).is_empty());
        }
        let again = |voids: &mut BareVoids| {
            let sums = [(0, true)].into_iter();
            voids.add((outcome(6), epoch), &outcome(5), sums)
        };
        assert_eq!(again(&mut voids), (1, 1));
        // Other members compute the same.
        assert_eq!(again(&mut voids), (0, 0));
        assert_eq!(voids.suspended(&epoch, &outcome(6)), [0]);
        assert!(voids.suspended(&Hash([8; 32]), &outcome(6)).is_empty());
    }
}
