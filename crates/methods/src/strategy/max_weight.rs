//! A bound on the share that one contribution may have in the sum of weights.

use super::LoadedManifest;

/// Lowers weights until none has more than `share` of the sum of all, with `0 < share ≤ 1`.
///
/// With the positive weights in descending order `w₁ ≥ … ≥ wₙ` and `Rₖ = wₖ₊₁ + … + wₙ`, the k
/// largest become the *cap*
///
/// ```text
/// cₖ = ⌊share · Rₖ / (1 − k · share)⌋
/// ```
///
/// for the smallest k with `k · share < 1`, `k < n` and `wₖ₊₁ ≤ cₖ`. For k = 0 that says that none is
/// above its share, and all stay as they are. The k weights at the cap then have exactly their share,
/// but for the rounding to whole rows. There is no such k where even equal weights are above the
/// share, `n · share < 1`: then all positive weights become the smallest of them. Weights of 0 stay 0.
///
/// The sums are exact, and the quotient is computed by basic operations on `f64`, which have the same
/// bits on every machine.
pub fn capped(weights: &[u64], share: f64) -> Vec<u64> {
    let mut sorted: Vec<u64> = weights.iter().copied().filter(|&w| w > 0).collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let mut rest: u128 = sorted.iter().copied().map(u128::from).sum();
    let mut cap = sorted.last().copied().unwrap_or(0);
    for (k, &next) in sorted.iter().enumerate() {
        let left = 1.0 - k as f64 * share;
        if left <= 0.0 {
            break;
        }
        // At most 2⁶⁴ − 1: a larger number lowers nothing.
        let bound = (share * rest as f64 / left).floor() as u64;
        if next <= bound {
            cap = bound;
            break;
        }
        rest -= u128::from(next);
    }
    weights.iter().map(|&weight| weight.min(cap)).collect()
}

impl LoadedManifest {
    /// The manifest with weights lowered to a share of their sum, as [`capped`] does; unchanged without a
    /// share. All strategies take weights from the manifest, so the bound holds under each of them.
    pub fn with_max_weight(mut self, share: Option<f64>) -> Self {
        let Some(share) = share else { return self };
        let weights: Vec<u64> = self.entries.iter().filter_map(|e| e.weight).collect();
        let mut capped = capped(&weights, share).into_iter();
        for entry in &mut self.entries {
            entry.weight = entry.weight.and_then(|_| capped.next());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_weights_are_lowered_to_their_share() {
        let cases: [(&[u64], f64, &[u64]); 14] = [
            // Nobody is above the share.
            (&[10, 10, 10, 10], 0.25, &[10, 10, 10, 10]),
            (&[50, 50], 0.5, &[50, 50]),
            (&[90, 5, 5], 1.0, &[90, 5, 5]),
            // One: c₁ = 0.4 · 300 / 0.6.
            (
                &[9_000_000_000_000_000, 100, 100, 100],
                0.4,
                &[200, 100, 100, 100],
            ),
            (&[100, 900, 100, 100], 0.5, &[100, 300, 100, 100]),
            // Two: c₁ = 200 is below the second, and c₂ = 0.4 · 100 / 0.2.
            (&[u64::MAX, 400, 60, 40], 0.4, &[200, 200, 60, 40]),
            // The second is just at the cap.
            (&[900, 200, 50, 50], 0.4, &[200, 200, 50, 50]),
            // Rounded down to whole rows: c₁ = 0.3 · 3 / 0.7 = 1.29.
            (&[100, 1, 1, 1], 0.3, &[1, 1, 1, 1]),
            // Not even equal weights are below the share.
            (&[7, 5, 3], 0.3, &[3, 3, 3]),
            (&[7, 5, 0], 0.4, &[5, 5, 0]),
            // Or just so.
            (&[7, 5, 3], 1.0 / 3.0, &[3, 3, 3]),
            (&[8], 0.2, &[8]),
            (&[0, 0], 0.5, &[0, 0]),
            (&[], 0.5, &[]),
        ];
        for (weights, share, expected) in cases {
            assert_eq!(capped(weights, share), expected, "{weights:?} at {share}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_weight_is_above_its_share_and_order_and_small_weights_stay(
            weights in prop::collection::vec(1u64..1 << 53, 2..12), share in 0.01f64..1.0,
        ) {
            let lowered = capped(&weights, share);
            let total: u128 = lowered.iter().copied().map(u128::from).sum();
            let largest = *lowered.iter().max().unwrap();
            let possible = share * weights.len() as f64 > 1.0;
            if possible {
                prop_assert!(largest as f64 <= share * total as f64 * (1.0 + 1e-12));
            } else {
                prop_assert!(lowered.iter().all(|&weight| weight == largest));
            }
            for (before, after) in weights.iter().zip(&lowered) {
                prop_assert!(after <= before);
                prop_assert!(*after == *before || *after == largest);
                prop_assert!(*after > 0);
            }
            prop_assert_eq!(&capped(&weights, share), &lowered);
        }
    }
}
