//! How stable the groupings of a way of learning are: over rounds, and over seeds.

use super::result::{StoredPoint, UnitResult};
use super::spread::Spread;

impl UnitResult {
    /// Rounds, up to the chosen one, in which the grouping changed.
    pub(super) fn changes(&self) -> usize {
        let until: Vec<_> = self
            .curve
            .iter()
            .filter(|point| point.round <= self.round)
            .collect();
        let changed = |pair: &&[&StoredPoint]| {
            rand_index(&pair[0].coalitions, &pair[1].coalitions).is_some_and(|same| same < 1.0)
        };
        until.windows(2).filter(changed).count()
    }
}

/// Coalition of every member after the chosen round, for every seed, where all seeds have the same
/// members.
fn groupings<'a>(results: &[&'a UnitResult]) -> Option<Vec<&'a [Option<u32>]>> {
    let names = |one: &UnitResult| -> Vec<String> {
        one.scope(false).map(|silo| silo.name.clone()).collect()
    };
    let first = names(results.first()?);
    let grouping = |one: &&'a UnitResult| -> Option<&'a [Option<u32>]> {
        let point = one.at(one.round).filter(|_| names(one) == first)?;
        Some(&point.coalitions)
    };
    results.iter().map(grouping).collect()
}

/// The mean Rand index over pairs of seeds, of the groupings after the chosen rounds.
pub(super) fn stability(results: &[&UnitResult]) -> Option<f64> {
    let all = groupings(results)?;
    let mut pairs = Vec::new();
    for (at, one) in all.iter().enumerate() {
        pairs.extend(
            all[at + 1..]
                .iter()
                .filter_map(|other| rand_index(one, other)),
        );
    }
    Spread::of(pairs).map(|spread| spread.mean)
}

/// Share of the seeds in which two members are in one coalition.
pub(super) fn together(results: &[&UnitResult]) -> Option<Vec<Vec<f64>>> {
    let all = groupings(results)?;
    let members = all.first()?.len();
    let share = |a: usize, b: usize| {
        let same = all
            .iter()
            .filter(|own| own[a].is_some() && own[a] == own[b]);
        same.count() as f64 / all.len() as f64
    };
    let shares: Vec<Vec<f64>> = (0..members)
        .map(|a| (0..members).map(|b| share(a, b)).collect())
        .collect();
    shares
        .iter()
        .flatten()
        .any(|&share| share < 1.0)
        .then_some(shares)
}

/// The share of pairs of members on which two groupings agree: together in both, or apart in both.
/// `None` without pairs.
fn rand_index(one: &[Option<u32>], other: &[Option<u32>]) -> Option<f64> {
    let (mut same, mut pairs) = (0.0, 0.0);
    for a in 0..one.len().min(other.len()) {
        for b in a + 1..one.len().min(other.len()) {
            pairs += 1.0;
            same += f64::from(u8::from((one[a] == one[b]) == (other[a] == other[b])));
        }
    }
    (pairs > 0.0).then_some(same / pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groupings_are_compared_by_pairs_whatever_their_numbers() {
        let grouping = |of: &[u32]| of.iter().map(|&group| Some(group)).collect::<Vec<_>>();
        let index = |a: &[u32], b: &[u32]| rand_index(&grouping(a), &grouping(b));
        assert_eq!(index(&[0, 0, 1], &[5, 5, 2]), Some(1.0));
        assert_eq!(index(&[0, 0, 1], &[0, 1, 1]), Some(1.0 / 3.0));
        assert_eq!(index(&[0], &[0]), None);
    }
}
