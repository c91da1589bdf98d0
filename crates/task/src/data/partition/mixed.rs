//! Silos with rows of several domains each.

use rand_chacha::ChaCha8Rng;

use super::deal::{dirichlet, groups};
use super::{MixedShares, RowsToPartition};
use crate::random::shuffle;

/// Every silo gets equally many rows, as many as the scarcest domain allows, in its shares of the
/// domains; and test rows likewise.
pub(super) fn divide(
    population: &RowsToPartition<'_>,
    silos: usize,
    shares: &MixedShares,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<Vec<u32>>, String> {
    let domains = population.domains.len();
    let shares: Vec<Vec<f64>> = match shares {
        MixedShares::Given(shares) => shares.clone(),
        MixedShares::Alpha(alpha) => (0..silos)
            .map(|_| dirichlet(*alpha, domains, rng))
            .collect(),
    };
    let mut parts = vec![Vec::new(); shares.len()];
    let mut pools = groups(population.rows, |row| (row.domain, row.test));
    for test in [false, true] {
        let mut rows: Vec<Vec<u32>> = (0..domains as u32)
            .map(|domain| pools.remove(&(domain, test)).unwrap_or_default())
            .collect();
        if rows.iter().all(Vec::is_empty) {
            continue;
        }
        rows.iter_mut().for_each(|rows| shuffle(rng, rows));
        let has: Vec<usize> = rows.iter().map(Vec::len).collect();
        let each = rows_each(&shares, &has);
        if each == 0 {
            return Err(format!(
                "the shares of a mixed partition leave no row for {} silos: a domain has too few rows ({})",
                shares.len(),
                described(population.domains, &has)
            ));
        }
        for (part, shares) in parts.iter_mut().zip(&shares) {
            for (rows, count) in rows.iter_mut().zip(counts(shares, each)) {
                part.extend(rows.drain(rows.len() - count..));
            }
        }
    }
    parts
        .iter_mut()
        .for_each(|part: &mut Vec<u32>| part.sort_unstable());
    Ok(parts)
}

fn described(domains: &[String], has: &[usize]) -> String {
    let each = domains
        .iter()
        .zip(has)
        .map(|(name, has)| format!("{name} {has}"));
    each.collect::<Vec<_>>().join(", ")
}

/// The most rows that every silo can have.
fn rows_each(shares: &[Vec<f64>], has: &[usize]) -> usize {
    let fits = |each: usize| {
        let mut needed = vec![0; has.len()];
        for shares in shares {
            for (needed, count) in needed.iter_mut().zip(counts(shares, each)) {
                *needed += count;
            }
        }
        needed.iter().zip(has).all(|(needed, has)| needed <= has)
    };
    // Rounding makes the need of a domain differ from its share by a row per silo, so that the bound is
    // near the answer.
    let wanted = |domain: usize| shares.iter().map(|shares| shares[domain]).sum::<f64>();
    let bound = (0..has.len())
        .filter(|&domain| wanted(domain) > 0.0)
        .map(|domain| (has[domain] as f64 / wanted(domain)) as usize)
        .min();
    let bound = bound.unwrap_or(0);
    (0..=bound).rev().find(|&each| fits(each)).unwrap_or(0)
}

/// Divides `rows` rows in these shares, by largest remainders; the first domain wins ties.
pub(crate) fn counts(shares: &[f64], rows: usize) -> Vec<usize> {
    let exact: Vec<f64> = shares.iter().map(|share| share * rows as f64).collect();
    let mut counts: Vec<usize> = exact.iter().map(|&exact| (exact + 1e-9) as usize).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    let rest = |at: usize| exact[at] - counts[at] as f64;
    order.sort_by(|&a, &b| rest(b).total_cmp(&rest(a)));
    let missing = rows.saturating_sub(counts.iter().sum());
    for at in order.into_iter().take(missing) {
        counts[at] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_follow_the_shares() {
        assert_eq!(counts(&[0.8, 0.2], 10), [8, 2]);
        assert_eq!(counts(&[0.5, 0.5], 3), [2, 1]);
        assert_eq!(counts(&[0.1, 0.2, 0.7], 10), [1, 2, 7]);
        assert_eq!(counts(&[1.0, 0.0], 4), [4, 0]);
    }

    #[test]
    fn the_scarcest_domain_bounds_the_rows() {
        assert_eq!(
            rows_each(&[vec![0.8, 0.2], vec![0.2, 0.8]], &[100, 100]),
            100
        );
        assert_eq!(
            rows_each(&[vec![0.8, 0.2], vec![0.8, 0.2]], &[100, 100]),
            62
        );
        assert_eq!(rows_each(&[vec![1.0, 0.0]], &[7, 0]), 7);
        assert_eq!(rows_each(&[vec![0.5, 0.5]], &[7, 0]), 0);
    }
}
