//! Basis on which groups of silos were formed: losses of each other's models, and merges.

use std::collections::{BTreeMap, BTreeSet};

use protocol::MemberIndex;
use serde::Serialize;
use simulations::{AuthorMerges, CrossLosses};

use super::metrics::AdoptedModel;

/// The losses of the last round in which silos measured each other's models.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiloLosses {
    /// The round.
    pub round: u64,
    /// Names of rows and columns.
    pub silos: Vec<String>,
    /// The row is whose data, the column whose model.
    pub losses: Vec<Vec<f64>>,
}

/// Merges from every silo alone to one group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiloMerges {
    /// The total utility if every silo stays alone.
    pub alone: f64,
    /// Those that lower the total utility were not made, unless a number of groups was asked for.
    pub merges: Vec<SiloMerge>,
}

/// Two groups, named by a silo of each, and what their merge adds to the total utility.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiloMerge {
    /// A silo of each group; the first names the merged group, too.
    pub groups: [String; 2],
    /// Increase of the total utility by the merge.
    pub benefit: f64,
}

/// The merges of the last round whose groups the silos took; if none did, those of the last round that
/// merged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastMerges {
    /// The round.
    pub round: u64,
    /// The silos that were merged.
    pub silos: Vec<String>,
    /// The groups that the silos took.
    pub taken: Option<TakenGroups>,
    /// The merges.
    #[serde(flatten)]
    pub tree: SiloMerges,
}

/// Groups on the way of merges that became the coalitions of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TakenGroups {
    /// The round, in which the merges were or the next.
    pub round: u64,
    /// Number of groups that were left.
    pub groups: usize,
}

impl SiloLosses {
    pub(crate) fn new(of: &CrossLosses, name: impl Fn(MemberIndex) -> String) -> Self {
        Self {
            round: of.round,
            silos: of.authors.iter().map(|&author| name(author)).collect(),
            losses: of.rows.clone(),
        }
    }
}

impl SiloMerges {
    pub(crate) fn new(of: &AuthorMerges, name: impl Fn(MemberIndex) -> String) -> Self {
        let merges = of.merges.iter();
        Self {
            alone: of.alone,
            merges: merges
                .map(|&(groups, benefit)| SiloMerge {
                    groups: groups.map(&name),
                    benefit,
                })
                .collect(),
        }
    }
}

impl LastMerges {
    /// Chooses among the merges of a run. `coalitions` gives those after a round, by members.
    pub(crate) fn of(
        all: &[(u64, AuthorMerges)],
        coalitions: impl Fn(u64) -> Option<Vec<Vec<MemberIndex>>>,
        name: impl Fn(MemberIndex) -> String,
    ) -> Option<Self> {
        // Groups may be formed in one round and taken in the next.
        let taken = |(round, merges): &(u64, AuthorMerges)| {
            let mut rounds = [*round, round + 1].into_iter();
            rounds.find_map(|round| {
                let groups = cut(merges, coalitions(round)?)?;
                Some(TakenGroups { round, groups })
            })
        };
        // Silos that are all together are at the end of any merges, so groups that merges lead to by their own
        // rule come before those of a number that was asked for.
        let by_rule = |one: &&(u64, AuthorMerges)| {
            let groups = taken(one).map(|taken| taken.groups);
            groups == Some(while_utility_rises(&one.1))
        };
        let last = |one: &&(u64, AuthorMerges)| taken(one).is_some();
        let rounds = || all.iter().rev();
        let chosen = rounds().find(by_rule).or_else(|| rounds().find(last));
        let (round, merges) = chosen.or_else(|| all.last())?;
        let taken = chosen.and_then(taken);
        Some(Self {
            round: *round,
            silos: merged(merges).into_iter().map(&name).collect(),
            taken,
            tree: SiloMerges::new(merges, name),
        })
    }
}

/// The coalitions after a round, by what their members adopted; `None` where nobody adopted anything.
pub(crate) fn coalitions(all: &[AdoptedModel], round: u64) -> Option<Vec<Vec<MemberIndex>>> {
    let mut groups = BTreeMap::<u32, Vec<MemberIndex>>::new();
    for one in all.iter().filter(|one| one.round == round) {
        let group = groups.entry(one.coalition).or_default();
        group.push(MemberIndex(one.silo as u16));
    }
    groups.values_mut().for_each(|group| group.sort_unstable());
    (!groups.is_empty()).then(|| groups.into_values().collect())
}

/// All who were merged, ascending: down to one group, each is named by a merge.
fn merged(of: &AuthorMerges) -> Vec<MemberIndex> {
    let mut members: Vec<_> = of.merges.iter().flat_map(|(groups, _)| *groups).collect();
    members.sort_unstable();
    members.dedup();
    members
}

/// Returns the number of groups that are left where merging ends as soon as the total utility does not rise.
fn while_utility_rises(of: &AuthorMerges) -> usize {
    let rising = of.merges.iter().take_while(|(_, benefit)| *benefit > 0.0);
    merged(of).len().saturating_sub(rising.count())
}

/// Returns the number of groups that are left where merging leads to these groups; `None` where it does not.
fn cut(of: &AuthorMerges, groups: Vec<Vec<MemberIndex>>) -> Option<usize> {
    let members = merged(of);
    let within = |group: Vec<MemberIndex>| -> Vec<MemberIndex> {
        let own = group.into_iter();
        own.filter(|member| members.binary_search(member).is_ok())
            .collect()
    };
    let groups: BTreeSet<_> = groups
        .into_iter()
        .map(within)
        .filter(|own| !own.is_empty())
        .collect();
    let made = members.len().checked_sub(groups.len())?;
    let mut left: BTreeMap<MemberIndex, Vec<MemberIndex>> = members
        .iter()
        .map(|&member| (member, vec![member]))
        .collect();
    for ([into, from], _) in of.merges.get(..made)? {
        let more = left.remove(from)?;
        left.get_mut(into)?.extend(more);
    }
    let left = left.into_values().map(|mut group| {
        group.sort_unstable();
        group
    });
    (left.collect::<BTreeSet<_>>() == groups).then_some(groups.len())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn groups(of: &[&[u16]]) -> Vec<Vec<MemberIndex>> {
        let group = |group: &&[u16]| group.iter().copied().map(MemberIndex).collect();
        of.iter().map(group).collect()
    }

    /// 0 and 2, then 1 and 3, then all.
    fn merges() -> AuthorMerges {
        let pair = |a, b| [a, b].map(MemberIndex);
        AuthorMerges {
            alone: 1.0,
            merges: vec![(pair(0, 2), 0.5), (pair(1, 3), 0.2), (pair(0, 1), -1.0)],
        }
    }

    #[test]
    fn groups_follow_the_merges_and_absent_members_do_not_count() {
        assert_eq!(cut(&merges(), groups(&[&[0, 2], &[1, 3]])), Some(2));
        assert_eq!(
            cut(&merges(), groups(&[&[0, 2], &[1, 3, 9], &[7]])),
            Some(2)
        );
        assert_eq!(cut(&merges(), groups(&[&[0, 1, 2, 3]])), Some(1));
        assert_eq!(cut(&merges(), groups(&[&[0], &[1], &[2], &[3]])), Some(4));
        assert_eq!(cut(&merges(), groups(&[&[0, 1], &[2, 3]])), None);
        assert_eq!(cut(&merges(), groups(&[&[0, 2], &[1]])), None);
    }

    #[test]
    fn the_last_merges_whose_groups_were_taken_are_chosen() {
        let all = [(1, merges()), (2, merges()), (3, merges())];
        let name = |member: MemberIndex| format!("silo {}", member.0);
        let chosen = |taken_in: u64| {
            let coalitions = |round| {
                let taken: &[&[u16]] = &[&[0, 2], &[1, 3]];
                let others: &[&[u16]] = &[&[0, 1], &[2, 3]];
                Some(groups(if round == taken_in { taken } else { others }))
            };
            let chosen = LastMerges::of(&all, coalitions, name).unwrap();
            let taken = chosen.taken.map(|taken| (taken.round, taken.groups));
            (chosen.round, taken)
        };
        assert_eq!(chosen(1), (1, Some((1, 2))));
        // Taken in the round after.
        assert_eq!(chosen(3), (3, Some((3, 2))));
        assert_eq!(chosen(4), (3, Some((4, 2))));
        assert_eq!(chosen(9), (3, None));
        assert_eq!(LastMerges::of(&[], |_| None, name), None);
        // All together in every round but one: the groups of that one were taken, and then no more.
        let coalitions = |round| {
            let (two, one): (&[&[u16]], &[&[u16]]) = (&[&[0, 2], &[1, 3]], &[&[0, 1, 2, 3]]);
            Some(groups(if round == 1 { two } else { one }))
        };
        let chosen = LastMerges::of(&all, coalitions, name).unwrap();
        let taken = chosen.taken.map(|taken| (taken.round, taken.groups));
        assert_eq!((chosen.round, taken), (1, Some((1, 2))));
    }
}
