//! No unit changes a sum by more than Δ; broken rules do.

use std::collections::BTreeSet;

use num_bigint::BigUint;
use proptest::prelude::*;

use super::*;

/// A small generator for the tests' data (SplitMix64).
pub(crate) struct TestRandom(pub(crate) u64);

impl TestRandom {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// Between −1 and 1.
    pub(crate) fn number(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }
}

/// Rule by which a silo makes integers of its units.
#[derive(Clone, Copy, PartialEq)]
enum RoundingRule {
    /// As the crate does.
    EachByItself,
    /// Broken: the clipped vectors are added, and the sum is rounded.
    AfterAdding,
}

/// The integers that a silo sends for these units.
fn integers(rule: RoundingRule, clip: Clip, units: &[Vec<f64>]) -> Vec<i64> {
    let dimension = clip.sensitivity().dimension() as usize;
    let mut sum = vec![0; dimension];
    match rule {
        RoundingRule::EachByItself => {
            for unit in units {
                clip.add(unit, &mut sum).unwrap();
            }
        }
        RoundingRule::AfterAdding => {
            let mut real = vec![0.0; dimension];
            for unit in units {
                let norm = unit.iter().map(|number| number * number).sum::<f64>();
                let factor = 1.0 / norm.sqrt().max(1.0); // the norm C of the tests is 1
                for (real, number) in real.iter_mut().zip(unit) {
                    *real += number * factor / clip.step();
                }
            }
            let rounded = real.iter().map(|number| number.round_ties_even() as i64);
            sum = rounded.collect();
        }
    }
    sum
}

/// By how much the last unit changes the sum: the square of the norm.
fn change(rule: RoundingRule, clip: Clip, units: &[Vec<f64>]) -> u128 {
    let with = integers(rule, clip, units);
    let without = integers(rule, clip, &units[..units.len() - 1]);
    let squares = with.iter().zip(&without);
    squares
        .map(|(with, without)| u128::from(with.abs_diff(*without)).pow(2))
        .sum()
}

/// Vectors to norm 1, as all tests here have it.
fn clip(sensitivity: Sensitivity) -> Clip {
    Clip::new(1.0, sensitivity).unwrap()
}

/// A random data set. Its last unit lies near the norm, or far from it, or just above integer steps, or just
/// above halves of steps; the unit before it just below halves, with the same signs, so that the last
/// one tips the rounding of every coordinate if the sum is rounded.
fn data(random: &mut TestRandom, clip: Clip) -> Vec<Vec<f64>> {
    let dimension = clip.sensitivity().dimension() as usize;
    let kind = random.below(4);
    // Truncated, such a vector has about the norm.
    let rounding = (dimension as f64).sqrt() / 2.0 / clip.sensitivity().steps();
    let truncated = 1.0 + rounding * random.number().abs();
    let mut vector = |scale: f64| -> Vec<f64> {
        let sparse = random.below(3) == 0;
        let mut number = || random.number() * f64::from(!sparse || random.below(8) == 0);
        let numbers: Vec<f64> = (0..dimension).map(|_| number()).collect();
        let norm = numbers.iter().map(|number| number * number).sum::<f64>();
        let factor = scale / norm.sqrt().max(1e-9);
        numbers.iter().map(|number| number * factor).collect()
    };
    let step = clip.step();
    let mut last = vector([1.0, 50.0, truncated, truncated][kind as usize]);
    for number in &mut last {
        let above = |part| ((*number / step).trunc() + number.signum() * part) * step;
        match kind {
            2 => *number = above(0.000_01),
            3 => *number = above(0.500_01),
            _ => {}
        }
    }
    let halves = last.iter().map(|number| number.signum() * 0.499_999 * step);
    let halves = halves.collect();
    vec![vector(0.7), vector(2.0), vector(1e-9), halves, last]
}

/// Returns whether all of `count` random data sets keep to Δ, and to L.
fn neighbours(sensitivity: Sensitivity, rule: RoundingRule, count: usize, seed: u64) -> [bool; 2] {
    let (mut random, clip) = (TestRandom(seed), clip(sensitivity));
    let steps = sensitivity.steps();
    let mut kept = [true; 2];
    for _ in 0..count {
        let units = data(&mut random, clip);
        let squares = change(rule, clip, &units[2..]).max(change(rule, clip, &units));
        kept[0] &= sensitivity.holds(squares);
        kept[1] &= squares as f64 <= steps * steps;
    }
    kept
}

const DIMENSIONS: [(u64, usize); 4] = [(1, 1_000_000), (14, 300_000), (31, 150_000), (1000, 5_000)];

#[test]
fn sums_of_random_neighbours_differ_by_delta_at_most() {
    for (dimension, count) in DIMENSIONS {
        let sensitivity = Sensitivity::new(dimension).unwrap();
        assert!(neighbours(sensitivity, RoundingRule::EachByItself, count, dimension)[0]);
    }
}

#[test]
#[ignore = "takes more than ten minutes: 10^6 data sets for each number of coordinates"]
fn sums_of_a_million_random_neighbours_differ_by_delta_at_most() {
    for (dimension, _) in DIMENSIONS {
        let sensitivity = Sensitivity::new(dimension).unwrap();
        assert!(
            neighbours(
                sensitivity,
                RoundingRule::EachByItself,
                1_000_000,
                dimension
            )[0]
        );
    }
}

#[test]
fn the_same_test_fails_if_the_norm_is_claimed_without_rounding() {
    for (dimension, count) in [(14, 10_000), (31, 10_000), (1000, 300)] {
        let sensitivity = Sensitivity::new(dimension).unwrap();
        assert!(!neighbours(sensitivity, RoundingRule::EachByItself, count, dimension)[1]);
    }
}

#[test]
fn the_same_test_fails_if_the_sum_is_rounded_and_not_the_units() {
    let short = Sensitivity::with_steps(2, 8);
    assert!(neighbours(short, RoundingRule::EachByItself, 20_000, 1)[0]);
    assert!(!neighbours(short, RoundingRule::AfterAdding, 20_000, 1)[0]);
    let long = Sensitivity::new(1000).unwrap();
    assert!(!neighbours(long, RoundingRule::AfterAdding, 1_000, 1)[0]);
}

#[test]
fn a_sum_that_is_rounded_moves_by_9_22_where_8_71_is_claimed() {
    let sensitivity = Sensitivity::with_steps(2, 8);
    assert_eq!(format!("{:.2}", sensitivity.value()), "8.71");
    let step = clip(sensitivity).step();
    let units = [[0.49, 0.49], [5.02, 6.02]].map(|unit| unit.map(|number| number * step).to_vec());
    let squares = change(RoundingRule::AfterAdding, clip(sensitivity), &units);
    assert_eq!(squares, 6 * 6 + 7 * 7);
    assert_eq!(format!("{:.2}", (squares as f64).sqrt()), "9.22");
    assert!(!sensitivity.holds(squares));
    let squares = change(RoundingRule::EachByItself, clip(sensitivity), &units);
    assert_eq!(squares, 5 * 5 + 6 * 6);
}

/// All vectors of a grid in the cube of ± `most` steps, in parts of a step.
fn grid(dimension: u32, most: i32, parts: i32, mut each: impl FnMut(&[f64])) {
    let side = 2 * most * parts + 1;
    for at in 0..side.pow(dimension) {
        let digits = (0..dimension).map(|place| at / side.pow(place) % side - most * parts);
        let vector: Vec<_> = digits
            .map(|digit| f64::from(digit) / f64::from(parts))
            .collect();
        each(&vector);
    }
}

#[test]
fn every_vector_of_a_grid_becomes_integers_within_delta() {
    // With few steps, so that rounding matters most; halves are on the grid.
    for (dimension, steps, parts) in [(1, 16, 64), (2, 8, 16), (3, 8, 4), (3, 3, 8)] {
        let sensitivity = Sensitivity::with_steps(dimension, steps);
        let clip = Clip::new(steps as f64, sensitivity).unwrap();
        let mut longest = 0;
        grid(dimension as u32, steps as i32 + 2, parts, |vector| {
            let squares = change(RoundingRule::EachByItself, clip, &[vector.to_vec()]);
            assert!(sensitivity.holds(squares), "{vector:?} is {squares}");
            longest = longest.max(squares);
        });
        if dimension > 1 {
            assert!(longest > u128::from(steps * steps), "{longest}");
        }
    }
}

#[test]
fn short_vectors_are_rounded_to_the_nearest_with_ties_to_even() {
    let clip = Clip::new(8.0, Sensitivity::with_steps(3, 8)).unwrap();
    let mut integers = [7; 3];
    let unit = clip.integers(&[0.5, 1.5, -2.5], &mut integers).unwrap();
    assert_eq!((unit, integers), (Unit::Whole, [0, 2, -2]));
    let unit = clip.integers(&[0.51_f32, 1.49, -2.51], &mut integers);
    assert_eq!((unit.unwrap(), integers), (Unit::Whole, [1, 1, -3]));
}

#[test]
fn long_vectors_are_clipped_to_the_norm() {
    let clip = Clip::new(1.0, Sensitivity::new(2).unwrap()).unwrap();
    let mut integers = [0; 2];
    let unit = clip.integers(&[3e30, 4e30], &mut integers).unwrap();
    assert_eq!((unit, integers), (Unit::Clipped, [614, 819]));
    let unit = clip.integers(&[0.6, 0.8], &mut integers).unwrap();
    assert_eq!((unit, integers), (Unit::Whole, [614, 819]));
}

#[test]
fn units_that_are_not_finite_or_too_long_count_as_zero() {
    let clip = clip(Sensitivity::new(3).unwrap());
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200] {
        for at in 0..3 {
            let mut unit = [0.1; 3];
            unit[at] = bad;
            let mut sum = [5, 6, 7];
            assert_eq!(clip.add(&unit, &mut sum), Ok(Unit::Zero));
            assert_eq!(sum, [5, 6, 7]);
            assert_eq!(clip.integers(&unit, &mut sum), Ok(Unit::Zero));
            assert_eq!(sum, [0; 3]);
        }
    }
}

#[test]
fn delta_is_reached_but_not_exceeded() {
    // 3.5 is rounded to 4 four times: 8 = 7 + √4/2.
    let sensitivity = Sensitivity::with_steps(4, 7);
    let clip = Clip::new(7.0, sensitivity).unwrap();
    let mut integers = [0; 4];
    for unit in [[3.5; 4], [3.6; 4], [7e9; 4]] {
        clip.integers(&unit, &mut integers).unwrap();
        assert_eq!(integers, [4; 4]);
    }
    assert!(sensitivity.holds(64) && !sensitivity.holds(65));
}

#[test]
fn integers_beyond_delta_count_as_zero() {
    let sensitivity = Sensitivity::with_steps(2, 8);
    assert!(sensitivity.holds(72) && sensitivity.holds(75) && !sensitivity.holds(76));
    // Only an error of the computed norm can make integers that long, so the factor is given.
    let clip = Clip::new(8.0, sensitivity).unwrap();
    let sum = |unit: [f64; 2], factor: f64| {
        let mut sum = [1; 2];
        let used = clip.round(&unit, factor, &mut sum, |sum, integer| *sum += integer);
        (used, sum)
    };
    assert_eq!(sum([6.0, 6.0], 1.0), (true, [7, 7]));
    assert_eq!(sum([3.0, 3.1], 2.0), (true, [7, 7]));
    assert_eq!(sum([7.0, 6.0], 1.0), (false, [1, 1]));
    assert_eq!(sum([3.0, 3.3], 2.0), (false, [1, 1]));
    assert_eq!(sum([1e30, 0.0], 1.0), (false, [1, 1]));
    assert_eq!(sum([f64::MAX, 0.0], 1e300), (false, [1, 1]));
    assert_eq!(sum([0.0, f64::NAN], 1.0), (false, [1, 1]));
}

#[test]
fn delta_is_exact_wherever_it_decides() {
    let mut dimensions: BTreeSet<u64> = (1..2000).collect();
    dimensions.extend([9999, 1 << 20, 1_000_003, MOST_COORDINATES]);
    for dimension in dimensions {
        let sensitivity = Sensitivity::new(dimension).unwrap();
        // (2Δ)² = 4·L² + d + 4·L·√d; in units of 2^-200 each.
        let scale = BigUint::from(1_u32) << 400_u32;
        let root = (BigUint::from(dimension) * &scale).sqrt();
        let one = BigUint::from(1_u32) << 200_u32;
        let steps = (&root * 50_u32).max(&one * 1024_u32);
        let twice = steps * 2_u32 + &root;
        let floor = (&twice + 200_u32).pow(2) / &scale / 4_u32;
        let most = u128::try_from(&floor).unwrap();
        assert!(sensitivity.holds(most), "{dimension}");
        assert!(!sensitivity.holds(most + 1), "{dimension}");
        let (upper, bits) = sensitivity.four_squares();
        let (upper, exact) = (BigUint::from(upper), twice.pow(2));
        assert!(&upper * &scale >= &exact << bits, "{dimension}");
        assert!(
            (upper - 1_u32) * &scale < (exact + (&one << 32_u32)) << bits,
            "{dimension}"
        );
        let shown = u128::try_from(twice * 1_000_000_u32 / one / 2_u32).unwrap() as f64;
        assert!((sensitivity.value() * 1e6 / shown - 1.0).abs() < 1e-8);
    }
}

#[test]
fn steps_change_over_where_both_are_as_many() {
    let of = |dimension| Sensitivity::new(dimension).unwrap();
    assert_eq!(of(419).steps(), 1024.0);
    assert_eq!(of(420).steps(), 50.0 * 420_f64.sqrt());
    assert!(of(420).steps() > 1024.0);
    assert_eq!(of(1).value(), 1024.5);
    assert_eq!(of(1_000_000).value(), 50_500.0);
}

proptest! {
    #[test]
    fn a_unit_has_the_same_integers_alone_and_in_every_batch(seed: u64, dimension in 1_usize..70, place in 0_usize..9) {
        let clip = clip(Sensitivity::new(dimension as u64).unwrap());
        let mut random = TestRandom(seed);
        let mut numbers = |scale: f32| -> Vec<f32> { (0..dimension).map(|_| random.number() as f32 * scale).collect() };
        let mut batch: Vec<_> = (0..8).map(|_| numbers(0.3)).collect();
        let unit = numbers(0.4);
        let mut alone = vec![0; dimension];
        clip.integers(&unit, &mut alone).unwrap();
        batch.insert(place, unit.clone());
        // In one allocation, at places that are aligned in every way; forwards, backwards, and in two threads.
        let flat: Vec<f32> = batch.concat();
        let sum = |order: &mut dyn Iterator<Item = usize>| {
            let mut sum = vec![0; dimension];
            for at in order {
                clip.add(&flat[at * dimension..(at + 1) * dimension], &mut sum).unwrap();
            }
            sum
        };
        let (all, back) = (sum(&mut (0..9)), sum(&mut (0..9).rev()));
        let rest = sum(&mut (0..9).filter(|at| *at != place));
        let halves = std::thread::scope(|scope| {
            let halves = [0..4, 4..9].map(|half| scope.spawn(|| sum(&mut { half })));
            halves.map(|half| half.join().unwrap())
        });
        for at in 0..dimension {
            prop_assert_eq!(all[at] - rest[at], alone[at]);
            prop_assert_eq!(all[at], back[at]);
            prop_assert_eq!(all[at], halves[0][at] + halves[1][at]);
        }
    }

    #[test]
    fn a_unit_has_the_same_integers_as_f32_and_f64(seed: u64, dimension in 1_usize..70) {
        let clip = clip(Sensitivity::new(dimension as u64).unwrap());
        let mut random = TestRandom(seed);
        let short: Vec<_> = (0..dimension).map(|_| random.number() as f32).collect();
        let long: Vec<_> = short.iter().map(|number| f64::from(*number)).collect();
        let (mut left, mut right) = (vec![0; dimension], vec![0; dimension]);
        clip.integers(&short, &mut left).unwrap();
        clip.integers(&long, &mut right).unwrap();
        prop_assert_eq!(left, right);
    }
}

#[test]
fn the_order_of_additions_is_pinned() {
    // Computed by Python, with 8 partial sums and with one.
    let unit: Vec<_> = (1..15).map(|at| 1.0 / f64::from(at)).collect();
    assert_eq!(clip::norm(&unit).to_bits(), 0x3ff4_1610_6504_a716);
    let one_by_one: f64 = unit.iter().map(|number| number * number).sum();
    assert_eq!(one_by_one.sqrt().to_bits(), 0x3ff4_1610_6504_a715);
}

#[test]
fn sums_are_within_reach_and_reach_is_no_larger_than_needed() {
    let sensitivity = Sensitivity::new(1_000_000).unwrap();
    let reach = sensitivity.reach(5000, 70_000, 10).unwrap();
    // Ten authors have √10 times the noise of one: 10 · 70,000 · 3.16228.
    assert_eq!(reach.most(), 5000 * 50_500 + 2_213_595);
    assert_eq!(
        Sensitivity::new(1).unwrap().reach(3, 1, 1).unwrap().most(),
        3 * 1024 + 10
    );
    assert_eq!(
        Sensitivity::new(14).unwrap().reach(1, 0, 0).unwrap().most(),
        1025
    );
    assert!(sensitivity.reach(u64::MAX, 1 << 31, 200).is_err());
    assert!(sensitivity.reach(1 << 40, 1 << 31, 200).is_ok());
}

#[test]
fn numbers_out_of_range_are_refused_with_a_sentence() {
    for bad in [0, MOST_COORDINATES + 1, u64::MAX] {
        let error = Sensitivity::new(bad).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("vectors of {bad} coordinates: they must have between 1 and 4294967296")
        );
    }
    let sensitivity = Sensitivity::new(2).unwrap();
    for bad in [0.0, -1.0, 1e101, 1e-101, f64::NAN, f64::INFINITY] {
        let error = Clip::new(bad, sensitivity).unwrap_err().to_string();
        assert!(error.starts_with(&format!("vectors clipped to norm {bad}: the norm must")));
    }
    for (unit, sum) in [(1, 2), (2, 1), (3, 3), (0, 0)] {
        let error = clip(sensitivity).add(&vec![0.0; unit], &mut vec![0; sum]);
        let expected = LengthError {
            unit,
            sum,
            expected: 2,
        };
        assert_eq!(error, Err(expected));
    }
}

#[test]
fn numbers_that_repeat_are_rounded_finely_for_questions() {
    for dimension in [1_u64, 7, 14, 1000, 20_000, MOST_COORDINATES] {
        let sensitivity = Sensitivity::fine(dimension).unwrap();
        assert_eq!(sensitivity.steps(), (1_u64 << 20) as f64);
        // (2Δ)² = 4·L² + d + 4·L·√d, in integers.
        let (steps, dimension) = (1_u128 << 20, u128::from(dimension));
        let most = (4 * steps * steps + dimension + (16 * steps * steps * dimension).isqrt()) / 4;
        assert!(
            sensitivity.holds(most) && !sensitivity.holds(most + 1),
            "{dimension}"
        );
        let (upper, bits) = sensitivity.four_squares();
        assert!(
            upper >> bits > 4 * most && upper >> bits <= 4 * most + 5,
            "{dimension}"
        );
    }
    // A third of the norm in 100,000 rows: 1024 steps are off by more than 30, 2^20 by less than 0.05.
    let off = |sensitivity: Sensitivity| {
        let mut sum = [0];
        let clip = clip(sensitivity);
        (0..100_000).for_each(|_| {
            clip.add(&[1.0 / 3.0], &mut sum).unwrap();
        });
        (sum[0] as f64 * clip.step() - 100_000.0 / 3.0).abs()
    };
    assert!(off(Sensitivity::new(1).unwrap()) > 30.0);
    assert!(off(Sensitivity::fine(1).unwrap()) < 0.05);
    assert!(Sensitivity::fine(0).is_err());
}

proptest! {
    #[test]
    fn no_unit_exceeds_delta_in_fine_steps(seed: u64, dimension in 1_usize..40, scale in 0.0..3.0_f64) {
        let sensitivity = Sensitivity::fine(dimension as u64).unwrap();
        let mut random = TestRandom(seed);
        let unit: Vec<f64> = (0..dimension).map(|_| random.number() * scale).collect();
        let squares = change(RoundingRule::EachByItself, clip(sensitivity), &[unit]);
        prop_assert!(sensitivity.holds(squares));
    }
}
