//! Consent to a change after which silos answer sums of others than before (M3).
//!
//! A sum of some institutions and an earlier one of others tell, by subtraction, what the institutions have
//! sent that stand in one of them only. So a silo answers sums of one circle for as long as the federation
//! lives, unless an amendment *shows* whose updates become visible that way, and every institution of the
//! old and of the new circle approves it, also one that leaves.

use std::collections::BTreeSet;

use crate::message::{Amendment, Change};
use crate::parameters::Epoch;
use crate::parameters::privacy::{Circle, Group, Masked};
use crate::roster::MemberIndex;

impl Circle {
    /// Whether an institution is in it.
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(of, _)| of == name)
    }

    /// The institutions about which sums of this circle and of another tell something that neither tells
    /// alone: those that are in one of them only; all of both if the others' weights are not proportional.
    /// None if both are the same.
    pub fn shows(&self, other: &Self) -> BTreeSet<String> {
        let weight = |of: &Self, name: &str| {
            let found = of.0.iter().find(|(by, _)| by == name);
            found.map(|(_, weight)| u128::from(*weight))
        };
        let both = self.0.iter().filter_map(|(name, own)| {
            let theirs = weight(other, name)?;
            Some((u128::from(*own), theirs))
        });
        let proportional = both
            .clone()
            .zip(both.skip(1))
            .all(|(a, b)| a.0 * b.1 == a.1 * b.0);
        let names = |of: &Self| {
            of.0.iter()
                .map(|(name, _)| name.clone())
                .collect::<BTreeSet<_>>()
        };
        let (own, theirs) = (names(self), names(other));
        if proportional {
            own.symmetric_difference(&theirs).cloned().collect()
        } else {
            own.union(&theirs).cloned().collect()
        }
    }

    /// Whether an institution is in both.
    fn meets(&self, other: &Self) -> bool {
        self.0.iter().any(|(name, _)| other.has(name))
    }
}

impl Masked {
    /// The circles of its groups.
    fn circles(&self) -> impl Iterator<Item = Circle> {
        self.groups().iter().map(Group::circle)
    }

    /// The pairs of circles, of this agreement and of one that follows it, between which an institution
    /// changes.
    fn regrouped<'a>(&'a self, next: &'a Self) -> impl Iterator<Item = (Circle, Circle)> + 'a {
        let pairs = self
            .circles()
            .flat_map(|old| next.circles().map(move |new| (old.clone(), new)));
        pairs.filter(|(old, new)| old.meets(new) && old != new)
    }

    /// The institutions whose updates become visible if groups change from this agreement to the next.
    pub fn shown_by(&self, next: &Self) -> BTreeSet<String> {
        let pairs = self.regrouped(next);
        pairs.flat_map(|(old, new)| old.shows(&new)).collect()
    }
}

impl Amendment {
    /// The members that have to approve it besides those that make a quorum: if it shows updates, all of
    /// the groups that change, also those that leave.
    pub fn concerned(&self, epoch: &Epoch) -> Vec<MemberIndex> {
        let (now, next) = (
            epoch.protocol.privacy.masked(),
            self.protocol.privacy.masked(),
        );
        let (Some(now), Some(next)) = (now, next) else {
            return Vec::new();
        };
        if next.shows.is_empty() {
            return Vec::new();
        }
        let pairs: Vec<_> = now.regrouped(next).collect();
        let concerns = |member: &MemberIndex| {
            let name = epoch.roster.name(*member);
            pairs
                .iter()
                .any(|(old, new)| old.has(name) || new.has(name))
        };
        epoch.roster.members().filter(concerns).collect()
    }
}

impl Change {
    /// Members that have to approve it and have not.
    pub(crate) fn unheard(&self, epoch: &Epoch) -> Vec<MemberIndex> {
        let concerned = self.amendment.concerned(epoch).into_iter();
        concerned.filter(|by| !self.approved_by(*by)).collect()
    }

    fn approved_by(&self, member: MemberIndex) -> bool {
        self.approvals.iter().any(|approval| approval.by == member)
    }

    /// Whether a silo of that name, which has answered sums of `circle` only, may answer those of its new
    /// group: all institutions of both approve it, and it shows whose updates become visible. A newcomer
    /// has agreed by joining.
    pub(crate) fn frees(&self, epoch: &Epoch, name: &str, circle: &Circle) -> bool {
        let Some(masked) = self.amendment.protocol.privacy.masked() else {
            return false;
        };
        let Some(now) = masked.circles().find(|group| group.has(name)) else {
            return false;
        };
        let consents = |(of, _): &(String, u64)| {
            let mut members = epoch.roster.members();
            match members.find(|member| epoch.roster.name(*member) == of) {
                Some(member) => self.approved_by(member),
                None => !circle.has(of),
            }
        };
        let all = circle.0.iter().chain(&now.0).all(consents);
        let shown = circle
            .shows(&now)
            .is_subset(&masked.shows.iter().cloned().collect());
        now != *circle && shown && all
    }
}
