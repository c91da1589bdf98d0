//! Sums over ranges of numbers that change, without ever subtracting.

use std::ops::Range;

/// Numbers whose sums over any range are known in a logarithmic number of additions: a tree of sums. Numbers are only
/// added up, so small sums beside large ones keep their digits.
pub(super) struct RangeSums {
    /// The tree from the root at 1 on; the numbers are its second half.
    sums: Vec<f64>,
}

impl RangeSums {
    /// So many zeros.
    pub(super) fn zeros(count: usize) -> Self {
        Self {
            sums: vec![0.0; 2 * count],
        }
    }

    /// These numbers.
    pub(super) fn of(numbers: &[f64]) -> Self {
        let count = numbers.len();
        let mut sums = vec![0.0; count];
        sums.extend(numbers);
        for at in (1..count).rev() {
            sums[at] = sums[2 * at] + sums[2 * at + 1];
        }
        Self { sums }
    }

    fn count(&self) -> usize {
        self.sums.len() / 2
    }

    /// Adds to one of the numbers.
    ///
    /// # Panics
    /// If there is no such number.
    pub(super) fn add(&mut self, place: usize, number: f64) {
        let mut at = self.count() + place;
        while at > 0 {
            self.sums[at] += number;
            at /= 2;
        }
    }

    /// The sum of the numbers in a range.
    ///
    /// # Panics
    /// If the range goes beyond the numbers.
    pub(super) fn sum(&self, range: Range<usize>) -> f64 {
        let (mut from, mut to) = (self.count() + range.start, self.count() + range.end);
        let mut sum = 0.0;
        while from < to {
            if from % 2 == 1 {
                sum += self.sums[from];
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                sum += self.sums[to];
            }
            from /= 2;
            to /= 2;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_ranges() {
        for count in 0..20 {
            let numbers: Vec<f64> = (0..count).map(|at| f64::from(at * at - 7)).collect();
            let mut one_by_one = RangeSums::zeros(numbers.len());
            for (place, number) in numbers.iter().enumerate() {
                one_by_one.add(place, *number);
            }
            let at_once = RangeSums::of(&numbers);
            for from in 0..=numbers.len() {
                for to in from..=numbers.len() {
                    let expected: f64 = numbers[from..to].iter().sum();
                    assert_eq!(at_once.sum(from..to), expected, "{count}: {from}..{to}");
                    assert_eq!(one_by_one.sum(from..to), expected, "{count}: {from}..{to}");
                }
            }
        }
    }

    #[test]
    fn a_small_sum_beside_a_large_one_keeps_its_digits() {
        let sums = RangeSums::of(&[1e20, 1.0, 2.0, 1e20]);
        assert_eq!(sums.sum(1..3), 3.0);
    }
}
