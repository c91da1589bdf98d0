//! Stability of the groupings of a strategy: over rounds, and over seeds.

use std::collections::BTreeMap;

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
    over_pairs(results, rand_index)
}

/// The mean adjusted Rand index over pairs of seeds, of the groupings after the chosen rounds.
pub(super) fn agreement(results: &[&UnitResult]) -> Option<f64> {
    over_pairs(results, adjusted_rand_index)
}

/// The mean over pairs of seeds of how alike their groupings are.
fn over_pairs(
    results: &[&UnitResult],
    alike: impl Fn(&[Option<u32>], &[Option<u32>]) -> Option<f64>,
) -> Option<f64> {
    let all = groupings(results)?;
    let mut pairs = Vec::new();
    for (at, one) in all.iter().enumerate() {
        pairs.extend(all[at + 1..].iter().filter_map(|other| alike(one, other)));
    }
    Spread::of(pairs).map(|spread| spread.mean)
}

/// The Rand index less what is expected of random groupings with groups of the same sizes, as a share of
/// the most that it could be more (Hubert & Arabie 1985). `None` without pairs; 1 for groupings
/// that are the same.
fn adjusted_rand_index(one: &[Option<u32>], other: &[Option<u32>]) -> Option<f64> {
    let members = one.len().min(other.len());
    let pairs_of = |count: usize| (count * count.saturating_sub(1) / 2) as f64;
    let (mut both, mut own, mut others) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for pair in one.iter().zip(other) {
        *both.entry(pair).or_insert(0) += 1;
        *own.entry(pair.0).or_insert(0) += 1;
        *others.entry(pair.1).or_insert(0) += 1;
    }
    let all = pairs_of(members);
    let together = both.into_values().map(pairs_of).sum::<f64>();
    let own = own.into_values().map(pairs_of).sum::<f64>();
    let others = others.into_values().map(pairs_of).sum::<f64>();
    let (expected, most) = (own * others / all, (own + others) / 2.0);
    let alike = if most == expected {
        1.0
    } else {
        (together - expected) / (most - expected)
    };
    (all > 0.0).then_some(alike)
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

    #[test]
    fn the_adjusted_index_is_nothing_by_chance() {
        let grouping = |of: &[u32]| of.iter().map(|&group| Some(group)).collect::<Vec<_>>();
        let index = |a: &[u32], b: &[u32]| adjusted_rand_index(&grouping(a), &grouping(b));
        assert_eq!(index(&[0, 0, 1, 1], &[7, 7, 2, 2]), Some(1.0));
        assert_eq!(index(&[0, 0, 0], &[4, 4, 4]), Some(1.0));
        assert_eq!(index(&[0, 1, 2], &[2, 1, 0]), Some(1.0));
        // Hubert and Arabie's formula by hand: 2 pairs together in both of 4 and 4, of 15 in all.
        let (a, b) = ([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 2]);
        let (together, own, others, all) = (2.0, 4.0, 4.0, 15.0);
        let expected = own * others / all;
        let adjusted = (together - expected) / ((own + others) / 2.0 - expected);
        assert!(index(&a, &b).is_some_and(|found| (found - adjusted).abs() < 1e-12));
        // All pairs across: less alike than by chance.
        assert!(index(&[0, 0, 1, 1], &[0, 1, 0, 1]).is_some_and(|found| found < 0.0));
        assert_eq!(index(&[0], &[0]), None);
    }
}
