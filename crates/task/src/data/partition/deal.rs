//! Deals rows to silos by shares.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;

use super::Traits;
use crate::random::{normal, shuffle, uniform};

/// Rows by what is shared out together: a class or a domain, and whether they are for testing.
pub(super) type DealtGroups = BTreeMap<(u32, bool), Vec<u32>>;

/// Puts the rows into groups.
pub(super) fn groups(rows: &[Traits], key: impl Fn(&Traits) -> (u32, bool)) -> DealtGroups {
    let mut groups = DealtGroups::new();
    for (at, row) in rows.iter().enumerate() {
        groups.entry(key(row)).or_default().push(at as u32);
    }
    groups
}

/// Deals every group at random by the shares of its key, one share for each silo, at most 1 together. A
/// silo gets its share of a group up to one row.
pub(super) fn deal(
    groups: DealtGroups,
    silos: usize,
    shares: impl Fn(u32) -> Vec<f64>,
    rng: &mut ChaCha8Rng,
) -> Vec<Vec<u32>> {
    let mut parts = vec![Vec::new(); silos];
    for ((key, _), mut rows) in groups {
        shuffle(rng, &mut rows);
        let (mut sum, mut begin) = (0.0, 0);
        for (part, share) in parts.iter_mut().zip(shares(key)) {
            sum += share;
            let end = ((sum * rows.len() as f64).round() as usize).clamp(begin, rows.len());
            part.extend_from_slice(&rows[begin..end]);
            begin = end;
        }
    }
    for part in &mut parts {
        part.sort_unstable();
    }
    parts
}

/// Shares from a symmetric Dirichlet distribution.
pub(super) fn dirichlet(alpha: f64, count: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let logs: Vec<f64> = (0..count).map(|_| log_gamma_variate(alpha, rng)).collect();
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // As differences of logarithms, because for a small alpha all variates would be 0.
    let sizes: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = sizes.iter().sum();
    sizes.iter().map(|size| size / sum).collect()
}

/// The logarithm of a number from the gamma distribution of this shape (Marsaglia & Tsang 2000).
fn log_gamma_variate(shape: f64, rng: &mut ChaCha8Rng) -> f64 {
    if shape < 1.0 {
        let below = (1.0 - uniform(rng)).ln() / shape;
        return log_gamma_variate(shape + 1.0, rng) + below;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && (1.0 - uniform(rng)).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return (d * v).ln();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    #[test]
    fn shares_have_the_moments_of_the_dirichlet_distribution() {
        // Mean 1/k, variance (k − 1) / (k² (kα + 1)).
        for (alpha, count) in [(0.1, 5), (1.0, 3), (8.0, 4)] {
            let mut rng = stream(1, "moments");
            let draws: Vec<f64> = (0..20_000)
                .map(|_| dirichlet(alpha, count, &mut rng)[0])
                .collect();
            let k = count as f64;
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance =
                draws.iter().map(|x| (x - 1.0 / k).powi(2)).sum::<f64>() / draws.len() as f64;
            let expected = (k - 1.0) / (k * k * (k * alpha + 1.0));
            assert!((mean - 1.0 / k).abs() < 0.01, "{alpha}: {mean}");
            assert!(
                (variance / expected - 1.0).abs() < 0.05,
                "{alpha}: {variance} for {expected}"
            );
        }
    }

    #[test]
    fn a_tiny_concentration_gives_one_silo_nearly_all() {
        let mut rng = stream(2, "tiny");
        for _ in 0..100 {
            let shares = dirichlet(1e-3, 10, &mut rng);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert!(shares.iter().all(|share| share.is_finite()));
        }
    }
}
