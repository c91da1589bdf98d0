//! The changes of the agreement that a bare run may have.

use protocol::parameters::Group;

/// A change of the agreement, of a node's seat in it, or of the number of rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BareChange {
    /// One more round.
    Rounds,
    /// A new institution joins behind the others.
    Admit,
    /// A node leaves by itself.
    Leave(usize),
    /// The others exclude a faulty node.
    Evict(usize),
    /// A node gets another key.
    Rekey(usize),
}

/// How a change of the agreement also changes the groups of secure-aggregation rounds. Members that answer sums of
/// the new groups show the vectors of single institutions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regroup {
    /// The first two groups exchange their last members.
    Anew,
    /// The last member of the second group joins the first.
    Added,
    /// The last member leaves the first group.
    Taken,
    /// The first member of the first group gets twice its weight.
    Weights,
}

impl Regroup {
    /// Changes groups; leaves them as they are if there are too few.
    pub(super) fn apply(self, groups: &mut [Group]) {
        let [first, others @ ..] = groups else {
            return;
        };
        match (self, others.first_mut()) {
            (Self::Anew, Some(second)) => {
                if let (Some(a), Some(b)) = (first.authors.last_mut(), second.authors.last_mut()) {
                    std::mem::swap(a, b);
                }
                second.authors.sort();
            }
            (Self::Added, Some(second)) => first.authors.extend(second.authors.pop()),
            (Self::Taken, _) => drop(first.authors.pop()),
            (Self::Weights, _) => {
                if let Some((_, weight)) = first.authors.first_mut() {
                    *weight += 1;
                }
            }
            (Self::Anew | Self::Added, None) => {}
        }
        first.authors.sort();
    }
}
