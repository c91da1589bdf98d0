//! Sorting networks: sort many short columns side by side with the same comparisons.
//!
//! The coordinate median of a hundred models is a million medians of a hundred numbers. A sorting
//! network compares the same positions whatever the numbers are, so one vector instruction serves
//! as many columns as a register holds. Sorting every column separately is about twenty times
//! slower.

use std::ops::Range;

use multiversion::multiversion;

/// Columns sorted side by side: a row is a few vector registers, and the rows of a hundred models
/// fit into the level-1 cache.
pub(super) const LANES: usize = 32;

/// One value of every column.
pub(super) type LaneRow<T> = [T; LANES];

/// An element of a column: an integer that sorts as the value does. Integers have a total order, so
/// the result does not depend on the order of the models, even between zeros of different sign.
pub(super) trait SortableCell: Ord + Copy + Default + Send {
    /// The cell for a value of model number `model`.
    fn of(value: f32, model: usize) -> Self;
}

/// The value alone.
impl SortableCell for i32 {
    fn of(value: f32, _: usize) -> Self {
        key(value)
    }
}

/// The value in the upper half, the number of the model in the lower half.
impl SortableCell for i64 {
    fn of(value: f32, model: usize) -> Self {
        Self::from(key(value)) << 32 | model as Self
    }
}

/// An integer that sorts as the value does (IEEE 754 total order: −0 before +0).
fn key(value: f32) -> i32 {
    flip(value.to_bits().cast_signed())
}

/// The value of a cell.
pub(super) fn value(key: i32) -> f32 {
    f32::from_bits(flip(key).cast_unsigned())
}

/// Value and model of a cell.
pub(super) fn value_and_model(cell: i64) -> (f32, usize) {
    (value((cell >> 32) as i32), cell as u32 as usize)
}

/// As integers, the bits of negative floats sort in the wrong direction: inverts all but the sign.
fn flip(bits: i32) -> i32 {
    bits ^ ((bits >> 31) & i32::MAX)
}

/// A sequence of compare-exchange steps that sorts the wanted positions of a column.
pub(super) struct SortingNetwork {
    pairs: Vec<(u32, u32)>,
}

impl SortingNetwork {
    /// A network for columns of `len` values: the positions `wanted` end with the values that they
    /// would have in the sorted column.
    ///
    /// Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, Algorithm M),
    /// without the comparisons that the wanted positions do not depend on.
    pub(super) fn new(len: usize, wanted: Range<usize>) -> Self {
        let mut pairs = merge_exchange(len);
        let mut needed: Vec<bool> = (0..len)
            .map(|position| wanted.contains(&position))
            .collect();
        // Backwards from the last comparison: keep those that a wanted position depends on.
        let mut kept: Vec<_> = pairs
            .drain(..)
            .rev()
            .filter(|&(low, high)| {
                let (low, high) = (low as usize, high as usize);
                let keep = needed[low] || needed[high];
                needed[low] |= keep;
                needed[high] |= keep;
                keep
            })
            .collect();
        kept.reverse();
        Self { pairs: kept }
    }

    /// Applies all compare-exchange steps to all columns.
    pub(super) fn sort<T: SortableCell>(&self, rows: &mut [LaneRow<T>]) {
        exchange_all(rows, &self.pairs);
    }
}

/// All comparisons that sort `len` values.
fn merge_exchange(len: usize) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    let top = len.next_power_of_two() / 2;
    let mut p = top;
    while p > 0 {
        let (mut q, mut r, mut distance) = (top, 0, p);
        loop {
            let firsts = (0..len.saturating_sub(distance)).filter(|first| first & p == r);
            pairs.extend(firsts.map(|first| (first as u32, (first + distance) as u32)));
            if q == p {
                break;
            }
            distance = q - p;
            q /= 2;
            r = p;
        }
        p /= 2;
    }
    pairs
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn exchange_all<T: SortableCell>(rows: &mut [LaneRow<T>], pairs: &[(u32, u32)]) {
    for &(low, high) in pairs {
        let (before, from) = rows.split_at_mut(high as usize);
        exchange(&mut before[low as usize], &mut from[0]);
    }
}

/// In every column, moves the smaller of two values to `low` and the larger to `high`.
#[inline(always)]
fn exchange<T: SortableCell>(low: &mut LaneRow<T>, high: &mut LaneRow<T>) {
    for (low, high) in low.iter_mut().zip(high) {
        (*low, *high) = ((*low).min(*high), (*low).max(*high));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A network that sorts all columns of zeros and ones sorts everything (Knuth, Theorem Z).
    #[test]
    fn wanted_positions_hold_what_sorting_puts_there() {
        for len in 0..=14usize {
            let halves = [
                0..len,
                len / 2..len,
                len.saturating_sub(1) / 2..len / 2 + usize::from(len > 0),
            ];
            for wanted in halves {
                let network = SortingNetwork::new(len, wanted.clone());
                for pattern in 0..1u32 << len {
                    let bit = |position: usize| (pattern >> position & 1) as i32;
                    let mut rows: Vec<LaneRow<i32>> = (0..len).map(|p| [bit(p); LANES]).collect();
                    network.sort(&mut rows);
                    let zeros = len - pattern.count_ones() as usize;
                    for position in wanted.clone() {
                        assert_eq!(rows[position], [i32::from(position >= zeros); LANES]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_median_needs_fewer_comparisons_than_a_sort() {
        let count = |wanted| SortingNetwork::new(100, wanted).pairs.len();
        assert_eq!(count(0..0), 0);
        assert!(
            count(49..51) < count(0..100) * 9 / 10,
            "{} of {}",
            count(49..51),
            count(0..100)
        );
    }

    fn cells<T: SortableCell>(columns: &[Vec<f32>]) -> Vec<LaneRow<T>> {
        (0..columns[0].len())
            .map(|row| std::array::from_fn(|lane| T::of(columns[lane][row], row)))
            .collect()
    }

    proptest! {
        #[test]
        fn columns_of_any_length_are_sorted(
            columns in (1..200usize).prop_flat_map(|len| {
                prop::collection::vec(prop::collection::vec(any::<f32>(), len), LANES)
            }),
        ) {
            let len = columns[0].len();
            let network = SortingNetwork::new(len, 0..len);
            let mut keys: Vec<LaneRow<i32>> = cells(&columns);
            let mut pairs: Vec<LaneRow<i64>> = cells(&columns);
            network.sort(&mut keys);
            network.sort(&mut pairs);
            for (lane, column) in columns.iter().enumerate() {
                let mut sorted = column.clone();
                sorted.sort_by(f32::total_cmp);
                for (row, expected) in sorted.iter().enumerate() {
                    prop_assert_eq!(value(keys[row][lane]).to_bits(), expected.to_bits());
                    let (got, model) = value_and_model(pairs[row][lane]);
                    prop_assert_eq!(got.to_bits(), expected.to_bits());
                    prop_assert_eq!(got.to_bits(), column[model].to_bits());
                }
            }
        }
    }
}
