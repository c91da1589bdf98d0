//! A sum of more units than were agreed on.
//!
//! The reach of a sum follows from the agreed number of units: no coordinate of the sum of n units is beyond
//! n·Δ. A silo with more units than that must not say so by staying away, because then one unit decides
//! whether it takes part, and no noise hides that. So it takes part, and its sum is *saturated*: a coordinate
//! beyond n·⌊Δ⌋ becomes n·⌊Δ⌋.
//!
//! **Saturating keeps the sensitivity.** On one coordinate, min(max(x, −b), b) moves no two numbers further
//! apart (it is 1-Lipschitz). So the saturated sums of two tables that differ by one unit differ in no
//! coordinate by more than the sums themselves do, and in norm by Δ at most. This holds because b is agreed on:
//! a bound that followed from the rows would change with them. And it holds for the sum of all units, in
//! whatever order they were added, because it is saturated once, after the last one.
//!
//! Sums of no more than n units are left as they are: coordinates are integers, so one unit adds ⌊Δ⌋ at most.

use super::Sensitivity;

impl Sensitivity {
    /// The largest absolute value of a coordinate in a sum of so many units.
    pub(super) fn most(self, units: u64) -> u128 {
        let (squares, bits) = self.four_squares();
        u128::from(units).saturating_mul(squares.isqrt() >> (1 + bits / 2))
    }

    /// Brings every coordinate of a sum within what so many units can add up to, see the
    /// [module](crate::sensitivity#sums-of-more-units-than-agreed). Two sums are not further apart afterwards.
    pub fn saturate(self, units: u64, sum: &mut [i64]) {
        let most = i64::try_from(self.most(units)).unwrap_or(i64::MAX);
        for coordinate in sum {
            *coordinate = (*coordinate).clamp(-most, most);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::super::tests::TestRandom;
    use super::super::{Clip, Sensitivity};

    #[test]
    fn a_sum_within_what_the_units_can_add_up_to_is_left_alone() {
        let sensitivity = Sensitivity::new(2).unwrap(); // Δ = 1024.7
        let sums = [
            [3 * 1024, -3 * 1024],
            [3 * 1024 + 1, -9_000],
            [i64::MAX, i64::MIN],
        ];
        let saturated = sums.map(|mut sum| {
            sensitivity.saturate(3, &mut sum);
            sum
        });
        assert_eq!(saturated, [[3072, -3072]; 3]);
        let mut none = [5, -5];
        sensitivity.saturate(0, &mut none);
        assert_eq!(none, [0, 0]);
        let mut any = [i64::MAX, -i64::MAX];
        sensitivity.saturate(u64::MAX, &mut any);
        assert_eq!(any, [i64::MAX, -i64::MAX]);
    }

    proptest! {
        #[test]
        fn one_unit_moves_a_saturated_sum_by_no_more_than_itself(
            seed: u64, dimension in 1_usize..12, units in 0_u64..12, agreed in 0_u64..12,
        ) {
            let sensitivity = Sensitivity::new(dimension as u64).unwrap();
            let clip = Clip::new(1.0, sensitivity).unwrap();
            let mut random = TestRandom(seed);
            // All of one sign in some coordinates, so that sums grow beyond what is agreed on.
            let mut unit = || -> Vec<f64> {
                (0..dimension).map(|at| (random.number() + (at % 2) as f64) * 9.0).collect()
            };
            let mut sum = vec![0; dimension];
            for _ in 0..units {
                clip.add(&unit(), &mut sum).unwrap();
            }
            let (mut with, last) = (sum.clone(), unit());
            let mut alone = vec![0; dimension];
            clip.integers(&last, &mut alone).unwrap();
            clip.add(&last, &mut with).unwrap();
            let (before, after) = (sum.clone(), with.clone());
            sensitivity.saturate(agreed, &mut sum);
            sensitivity.saturate(agreed, &mut with);
            let mut squares = 0_u128;
            for at in 0..dimension {
                let moved = with[at] - sum[at];
                squares += u128::from(moved.unsigned_abs()).pow(2);
                prop_assert!(moved.abs() <= alone[at].abs() && moved * alone[at] >= 0);
                if units < agreed {
                    prop_assert_eq!((sum[at], with[at]), (before[at], after[at]));
                }
            }
            prop_assert!(sensitivity.holds(squares));
            let reach = sensitivity.reach(agreed, 0, 0);
            let most = reach.map_or(0, |reach| reach.most());
            prop_assert!(sum.iter().chain(&with).all(|sum| sum.unsigned_abs() <= most));
        }
    }
}
