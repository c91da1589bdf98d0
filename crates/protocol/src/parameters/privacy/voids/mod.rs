//! Sums that told nothing, and what follows from them for later rounds: how many an agreement bears, and with
//! noise the search by halves for the member that corrupts them (M7, M9).

use serde::{Deserialize, Serialize};

use crate::parameters::privacy::{Masked, Sum};
use crate::roster::{MemberIndex, Roster};

/// The budget of voids: a group whose sum was void in so many rounds of an epoch, in a row or not, is not added up
/// any more. With noise each of them has cost every author of it a line.
const BUDGET: u8 = 3;

/// What the void sums of an epoch have shown so far. It follows from the outcomes of its rounds, and is a part of
/// each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Voids {
    /// For each group of the parameter set in how many rounds its sum was void. A good sum takes nothing back: a member
    /// could corrupt sums for ever otherwise, if it spares one from time to time.
    pub rounds: Vec<u8>,
    /// Who may have corrupted the sums, where that is searched.
    pub search: CorrupterSearch,
}

/// How far the search for the member that corrupts sums with noise is. An honest author corrupts none, so whoever does
/// it alone is an author of every void sum.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CorrupterSearch {
    /// Nobody is searched: no sum was void, or the members are too few for two sums.
    #[default]
    Idle,
    /// These members, ascending and at least two, are authors of every void sum. Rounds have two sums, each with
    /// half of them.
    Among(Vec<MemberIndex>),
    /// Only this member is an author of every void sum. It takes part in no sum of the epoch any more. Two that
    /// collude can make this of an honest one.
    Alone(MemberIndex),
    /// No member is an author of every void sum: more than one corrupts them. Nobody is searched any more.
    Several,
}

impl Voids {
    /// After a round that opened these sums, each with whether it was void.
    #[must_use]
    pub fn after<'a>(
        &self,
        masked: &Masked,
        roster: &Roster,
        opened: impl Iterator<Item = (&'a Sum, bool)>,
    ) -> Self {
        let void: Vec<_> = opened
            .filter_map(|(sum, void)| void.then_some(sum))
            .collect();
        let mut rounds = self.rounds.clone();
        rounds.resize(masked.most_sums(), 0);
        for (group, count) in rounds.iter_mut().enumerate() {
            let mut void = void.iter().map(|sum| masked.group_of(roster, sum));
            *count = count.saturating_add(u8::from(void.any(|of| of == Some(group))));
        }
        let search = if masked.may_search(roster.len()) {
            self.search.after(&void)
        } else {
            self.search.clone()
        };
        Self { rounds, search }
    }

    /// Whether no sum of a group is opened any more, in a federation of so many members. A search that goes on
    /// bears as many void rounds as it may need: one of all members, and then one for each time that the suspects
    /// become half as many.
    pub fn suspended(&self, group: usize, members: usize) -> bool {
        let budget = match self.search {
            CorrupterSearch::Idle | CorrupterSearch::Several => BUDGET,
            CorrupterSearch::Among(_) => BUDGET.max(most_searched(members)),
            CorrupterSearch::Alone(_) => return false,
        };
        self.rounds.get(group).is_some_and(|count| *count >= budget)
    }

    /// The member that contributes nothing in this epoch any more, if a search ended with one.
    pub fn left_out(&self) -> Option<MemberIndex> {
        match self.search {
            CorrupterSearch::Alone(member) => Some(member),
            CorrupterSearch::Idle | CorrupterSearch::Among(_) | CorrupterSearch::Several => None,
        }
    }
}

/// 1 + ⌈log₂ n⌉: void rounds after which a search among so many members has ended with one, if only one corrupts sums
/// and every round has two.
fn most_searched(members: usize) -> u8 {
    1 + members.next_power_of_two().trailing_zeros() as u8
}

impl CorrupterSearch {
    /// After a round with these void sums. A good sum shows nothing: whoever corrupts sums may spare one.
    fn after(&self, void: &[&Sum]) -> Self {
        match (self, void) {
            (search, []) => search.clone(),
            (Self::Idle, [sum]) => Self::among(sum.members().collect()),
            (Self::Among(suspects), [sum]) => {
                let suspects = suspects.iter().copied();
                Self::among(suspects.filter(|by| sum.has(*by)).collect())
            }
            // Two void sums of a round have no author in common, and one that is left out is in none.
            (Self::Idle | Self::Among(_) | Self::Alone(_) | Self::Several, _) => Self::Several,
        }
    }

    fn among(suspects: Vec<MemberIndex>) -> Self {
        match suspects[..] {
            [] => Self::Several,
            [member] => Self::Alone(member),
            [_, _, ..] => Self::Among(suspects),
        }
    }
}

/// The ready members, ascending, in two sums of which each has half of the suspects. The others fill them up to half
/// of the ready.
pub(super) fn halves(suspects: &[MemberIndex], ready: &[MemberIndex]) -> [Vec<MemberIndex>; 2] {
    let suspected = |by: &MemberIndex| suspects.binary_search(by).is_ok();
    let (asked, others): (Vec<_>, Vec<_>) = ready.iter().copied().partition(suspected);
    let first = asked.len().div_ceil(2);
    let others_in_first = ready.len().div_ceil(2) - first;
    let half = |asked: &[MemberIndex], others: &[MemberIndex]| {
        let mut half = [asked, others].concat();
        half.sort_unstable();
        half
    };
    [
        half(&asked[..first], &others[..others_in_first]),
        half(&asked[first..], &others[others_in_first..]),
    ]
}

#[cfg(test)]
mod tests;
