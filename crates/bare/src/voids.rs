//! What the void sums of secure-aggregation rounds have shown, by the outcome of the round.

use std::collections::BTreeMap;

use protocol::privacy::{Sum, Voids};
use protocol::{Epoch, Hash, MemberIndex};

/// What is known after every outcome of a secure-aggregation round, in the epoch of that outcome only.
#[derive(Debug, Default)]
pub(super) struct BareVoids(BTreeMap<Hash, (Hash, Voids)>);

/// What an outcome adds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NewVoids {
    /// Void sums.
    pub(super) void: u64,
    /// Groups of which no sum is opened from now on.
    pub(super) suspended: u64,
    /// The member that a search left alone.
    pub(super) alone: Option<MemberIndex>,
}

impl BareVoids {
    /// Notes an outcome that follows a state, with whether its sums were void. Gives what is new with it; nothing
    /// if it is known.
    pub(super) fn add<'a>(
        &mut self,
        epoch: &Epoch,
        (outcome, state): (Hash, &Hash),
        sums: impl Iterator<Item = (&'a Sum, bool)> + Clone,
    ) -> NewVoids {
        let masked = epoch.protocol.privacy.masked();
        let Some(masked) = masked.filter(|_| !self.0.contains_key(&outcome)) else {
            return NewVoids::default();
        };
        let before = self.before(&epoch.id, state);
        let after = before.after(masked, &epoch.roster, sums.clone());
        let groups = 0..masked.most_sums();
        let newly = |group: &usize| {
            let members = epoch.roster.len();
            after.suspended(*group, members) && !before.suspended(*group, members)
        };
        let new = NewVoids {
            void: sums.filter(|(_, void)| *void).count() as u64,
            suspended: groups.filter(newly).count() as u64,
            alone: after.left_out().filter(|_| before.left_out().is_none()),
        };
        self.0.insert(outcome, (epoch.id, after));
        new
    }

    /// Returns what is known in a round that starts from this state.
    pub(super) fn before(&self, epoch: &Hash, state: &Hash) -> Voids {
        let known = self.0.get(state).filter(|(of, _)| of == epoch);
        known.map(|(_, voids)| voids.clone()).unwrap_or_default()
    }

    /// All that was ever known in an epoch.
    pub(super) fn of_epoch(&self, epoch: &Hash) -> impl Iterator<Item = &Voids> {
        let known = self.0.values().filter(move |(of, _)| of == epoch);
        known.map(|(_, voids)| voids)
    }
}
