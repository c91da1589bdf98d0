//! The probability simplex: non-negative weights that sum to 1, and projections onto it.

/// Allowed rounding error of a sum of weights.
const TOLERANCE: f64 = 1e-6;

/// Errors of a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionError {
    /// No values.
    #[error("a projection onto the simplex needs at least one value")]
    Empty,
    /// A value that is NaN or infinite.
    #[error("value {at} of the vector to be projected is not a finite number")]
    NotFinite {
        /// Position of the value, from 0.
        at: usize,
    },
}

/// `P_Δ(v)`: the point of the simplex nearest to `v` (Duchi et al. 2008, Algorithm 1):
/// `max(0, v − θ)` with the θ at which it sums to 1.
///
/// # Errors
/// [`ProjectionError`]: no values, or one that is not finite.
pub fn project(v: &[f64]) -> Result<Vec<f64>, ProjectionError> {
    if v.is_empty() {
        return Err(ProjectionError::Empty);
    }
    if let Some(at) = v.iter().position(|value| !value.is_finite()) {
        return Err(ProjectionError::NotFinite { at });
    }
    Ok(level(v, &vec![1.0; v.len()]))
}

/// `λ_k = w_k·max(0, b_k − ν)` with the ν at which that sums to 1: the point of the simplex that
/// minimises `Σ λ_k²/(2w_k) − b_k·λ_k`. With all `w_k = 1` it is the projection of `b`.
///
/// Lengths are equal and not 0; `b` is finite, `w` finite and above 0.
pub(super) fn level(b: &[f64], w: &[f64]) -> Vec<f64> {
    let most = b.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Subtract the largest: a constant added to b changes nothing, but a huge one would cancel 1.
    let below: Vec<f64> = b.iter().map(|b| b - most).collect();
    let mut order: Vec<usize> = (0..b.len()).collect();
    order.sort_by(|&i, &j| below[j].total_cmp(&below[i]));
    let (mut weighted, mut weight, mut cut) = (0.0, 0.0, f64::NEG_INFINITY);
    for at in order {
        // A value at or below the current cut gets weight 0, and so do all smaller values.
        if below[at] <= cut {
            break;
        }
        weighted += w[at] * below[at];
        weight += w[at];
        cut = (weighted - 1.0) / weight;
    }
    let above = |(below, w): (&f64, &f64)| w * (below - cut).max(0.0);
    below.iter().zip(w).map(above).collect()
}

/// Returns whether `weights` is a point of the simplex, up to rounding.
pub(super) fn contains(weights: &[f64]) -> bool {
    let total: f64 = weights.iter().sum();
    (total - 1.0).abs() <= TOLERANCE && weights.iter().all(|weight| *weight >= 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_projections() {
        let known: [(&[f64], &[f64]); 5] = [
            (&[0.5, 0.8, -0.1], &[0.35, 0.65, 0.0]),
            (&[0.2, 0.3, 0.5], &[0.2, 0.3, 0.5]),
            (&[2.0, 0.0, 0.0], &[1.0, 0.0, 0.0]),
            (&[0.1, 0.1, 0.1, 0.1], &[0.25, 0.25, 0.25, 0.25]),
            (&[-1.0, -2.0, 0.3], &[0.0, 0.0, 1.0]),
        ];
        for (v, projection) in known {
            let found = project(v).unwrap();
            let apart = found.iter().zip(projection).map(|(a, b)| (a - b).abs());
            assert!(apart.fold(0.0, f64::max) < 1e-12, "{v:?}: {found:?}");
        }
    }

    #[test]
    fn extreme_values_stay_on_the_simplex() {
        assert_eq!(project(&[1e300, 0.0]), Ok(vec![1.0, 0.0]));
        assert_eq!(project(&[-1e300, -1e300]), Ok(vec![0.5, 0.5]));
        assert_eq!(project(&[f64::MAX, f64::MIN]), Ok(vec![1.0, 0.0]));
        assert_eq!(project(&[5e-324, 0.0]), Ok(vec![0.5, 0.5]));
        assert_eq!(project(&[-3.0]), Ok(vec![1.0]));
    }

    #[test]
    fn values_that_are_not_finite_are_refused() {
        assert_eq!(project(&[]), Err(ProjectionError::Empty));
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let error = ProjectionError::NotFinite { at: 1 };
            assert_eq!(project(&[0.0, odd, 1.0]), Err(error));
        }
    }

    proptest! {
        /// Optimality: the gradient of the distance is equal at all positive weights, and not smaller
        /// at zero weights.
        #[test]
        fn nothing_on_the_simplex_is_nearer(v in prop::collection::vec(-3.0..3.0f64, 1..12)) {
            let found = project(&v).unwrap();
            prop_assert!(contains(&found));
            let slope: Vec<f64> = found.iter().zip(&v).map(|(x, v)| x - v).collect();
            let least = slope.iter().copied().fold(f64::INFINITY, f64::min);
            for (x, slope) in found.iter().zip(&slope) {
                prop_assert!(*x == 0.0 || (slope - least).abs() < 1e-12);
            }
        }

        #[test]
        fn shifted_vectors_have_one_projection(
            v in prop::collection::vec(-3.0..3.0f64, 1..12), shift in -100.0..100.0f64,
        ) {
            let shifted: Vec<f64> = v.iter().map(|v| v + shift).collect();
            let (a, b) = (project(&v).unwrap(), project(&shifted).unwrap());
            prop_assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12));
            let again = project(&a).unwrap();
            prop_assert!(a.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-12));
        }

        #[test]
        fn weighted_levels_sum_to_one(
            entries in prop::collection::vec((-3.0..3.0f64, 1e-6..2.0f64), 1..12),
        ) {
            let (b, w): (Vec<f64>, Vec<f64>) = entries.into_iter().unzip();
            let found = level(&b, &w);
            prop_assert!(contains(&found));
            // b_k − λ_k/w_k is ν for all who have weight, and at most ν for the others.
            let heights: Vec<f64> = (0..b.len()).map(|k| b[k] - found[k] / w[k]).collect();
            let most = heights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for (x, height) in found.iter().zip(&heights) {
                prop_assert!(*x == 0.0 || (height - most).abs() < 1e-8);
            }
        }
    }
}
