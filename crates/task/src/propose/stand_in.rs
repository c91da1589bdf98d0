//! Numbers that usually stand for a missing value.

/// What usually stands for a missing value among numbers that are not negative.
const NEGATIVE: [f64; 14] = [
    -1.0, -2.0, -7.0, -8.0, -9.0, -77.0, -88.0, -98.0, -99.0, -777.0, -888.0, -998.0, -999.0,
    -9999.0,
];
/// What usually stands for one at the upper end.
const UPPER: [f64; 14] = [
    88.0,
    98.0,
    99.0,
    777.0,
    888.0,
    998.0,
    999.0,
    8888.0,
    9998.0,
    9999.0,
    99_999.0,
    999_999.0,
    9_999_999.0,
    99_999_999.0,
];

/// The numbers of a column, ascending, each with its rows, that may stand for a missing value: negative
/// ones where all others are not, and those of nines far above all others.
pub(super) fn stand_ins(numbers: &[(f64, usize)]) -> Vec<(f64, usize)> {
    let is = |known: &[f64], value: f64| known.contains(&value);
    let negative = numbers.iter().take_while(|(value, _)| *value < 0.0);
    let negative: Vec<(f64, usize)> = negative.copied().collect();
    let others: usize = numbers[negative.len()..].iter().map(|(_, rows)| rows).sum();
    let few =
        negative.len() <= 3 && others > 3 * negative.iter().map(|(_, rows)| rows).sum::<usize>();
    let coded = negative
        .iter()
        .all(|(value, _)| is(&NEGATIVE, *value) || is(&UPPER, -value));
    let mut found = if few && coded { negative } else { Vec::new() };
    // From the top as long as there is nothing but such numbers, far above what is below them.
    let mut rest = numbers;
    let mut upper = Vec::new();
    while let [below @ .., last] = rest {
        if !is(&UPPER, last.0) || upper.len() == 3 {
            break;
        }
        upper.push(*last);
        rest = below;
    }
    let far = |(value, _): &&(f64, usize)| {
        rest.last()
            .is_some_and(|(below, _)| *value > 2.0 * below.abs())
    };
    found.extend(upper.iter().filter(far).rev());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Vec<f64> {
        let mut numbers: Vec<(f64, usize)> = (20..60).map(|value| (f64::from(value), 2)).collect();
        numbers.extend(values.iter().map(|value| (*value, 1)));
        numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        stand_ins(&numbers)
            .into_iter()
            .map(|(value, _)| value)
            .collect()
    }

    #[test]
    fn codes_for_missing_values_are_found_and_ordinary_numbers_are_not() {
        assert_eq!(of(&[-1.0]), [-1.0]);
        assert_eq!(of(&[-999.0, -99.0]), [-999.0, -99.0]);
        assert_eq!(of(&[999.0]), [999.0]);
        assert_eq!(of(&[998.0, 999.0, -9.0]), [-9.0, 998.0, 999.0]);
        // Not coded, too near, or one of many.
        for none in [&[-3.5][..], &[99.0], &[150.0], &[-1.0, -2.0, -7.0, -8.0]] {
            assert!(of(none).is_empty(), "{none:?}");
        }
        assert!(of(&[-4.0, -1.0]).is_empty());
    }
}
