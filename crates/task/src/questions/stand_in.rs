//! Numbers that stand for a missing value, by how they lie among the others of their column.
//!
//! Whoever has no value writes a number that nobody measures: one far outside of the others, of nines or other
//! repeated digits, or the smallest or largest that the type of the column holds. It stands at an end of the
//! column, mostly more than once.

/// Most such numbers at one end.
const MOST: usize = 3;
/// Fewest rows of one for which less distance is enough, and of one that is remarkable by its distance alone.
const REPEATED: usize = 3;
/// Fewest rows of one that is remarkable because its neighbours are rare.
const SPIKE: usize = 5;
/// Fewest different numbers among the others before distance or rows alone are remarkable.
const LEVELS: usize = 10;

/// The numbers of a column, ascending, each with its rows, that may stand for a missing value.
pub(crate) fn stand_ins(numbers: &[(f64, usize)]) -> Vec<(f64, usize)> {
    let below_zero = negative(numbers);
    let rest = &numbers[below_zero.len()..];
    // The lower end is the upper one with other signs.
    let turned: Vec<(f64, usize)> = rest.iter().rev().map(|(v, rows)| (-v, *rows)).collect();
    let low = upper(&turned, |value| value > 0.0);
    let low = low.into_iter().rev().map(|(value, rows)| (-value, rows));
    let high = upper(rest, |_| true);
    below_zero.iter().copied().chain(low).chain(high).collect()
}

/// The few negative numbers of a column whose others are none, if all have repeated digits or one digit.
fn negative(numbers: &[(f64, usize)]) -> &[(f64, usize)] {
    let count = numbers.partition_point(|(value, _)| *value < 0.0);
    let (own, others) = numbers.split_at(count);
    let rows = |of: &[(f64, usize)]| of.iter().map(|(_, rows)| rows).sum::<usize>();
    let coded = |(value, _): &(f64, usize)| one_digit(*value) || is_coded(*value);
    let few = count <= MOST && rows(others) > 3 * rows(own);
    if few && own.iter().all(coded) {
        own
    } else {
        &[]
    }
}

/// Those at the upper end; a number counts as coded only where `may` says so.
fn upper(numbers: &[(f64, usize)], may: fn(f64) -> bool) -> Vec<(f64, usize)> {
    let is_coded = |value: f64| may(value) && is_coded(value);
    // From the top as long as there is nothing but such numbers; or the largest alone, whatever it is.
    let top = numbers.iter().rev().take(MOST);
    let coded = top.take_while(|(value, _)| is_coded(*value)).count();
    let (rest, ends) = numbers.split_at(numbers.len().saturating_sub(coded.max(1)));
    let (Some((first, _)), Some((last, _))) = (rest.first(), rest.last()) else {
        return Vec::new();
    };
    let span = last - first;
    let near = rest.iter().rev().take(5).map(|(_, rows)| *rows).max();
    let near = near.unwrap_or_default();
    let varied = rest.len() >= LEVELS;
    let stands_in = |(value, rows): &&(f64, usize)| {
        let (gap, repeated) = (value - last, *rows >= REPEATED);
        if !is_coded(*value) {
            return repeated && varied && gap > 3.0 * span;
        }
        if is_extreme(*value) || !may(-value) {
            return gap > span / 2.0;
        }
        if one_digit(*value) {
            return gap >= 2.0 * span;
        }
        let spike = varied && *rows >= SPIKE.max(5 * near);
        gap > 1.5 * span || repeated && gap > span / 2.0 || spike
    };
    ends.iter().filter(stands_in).copied().collect()
}

/// Returns whether a number is one that people or programs write where they have none.
fn is_coded(value: f64) -> bool {
    is_extreme(value) || repeats_digits(value)
}

/// Returns whether a number has one digit, as -1 and 9 do.
fn one_digit(value: f64) -> bool {
    value.fract() == 0.0 && (1.0..10.0).contains(&value.abs())
}

/// Returns true if the digits of a number are repeated: sevens, eights or nines (9, 99, 999.9, 77), four or
/// more other ones (5555), or nines up to the last, as in 998.
fn repeats_digits(value: f64) -> bool {
    let text = value.abs().to_string();
    let digits = text.bytes().filter(u8::is_ascii_digit);
    let digits: Vec<u8> = digits.skip_while(|digit| *digit == b'0').collect();
    let [begin @ .., last] = digits.as_slice() else {
        return false;
    };
    let all = |digit: u8| begin.iter().all(|own| *own == digit);
    let same = all(*last) && (*last >= b'7' || digits.len() >= 4 && *last > b'0');
    same || !begin.is_empty() && all(b'9') && *last >= b'6'
}

/// Returns true if a number is the smallest or the largest that a type of numbers holds, or next to it, or of a
/// size that nobody measures.
fn is_extreme(value: f64) -> bool {
    let size = value.abs();
    let of_bits = |bits: i32| (0..3).any(|less| size == 2_f64.powi(bits) - f64::from(less));
    size >= 1e30 || [15, 16, 31, 32, 53, 63, 64].into_iter().any(of_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that are found among these numbers of a column, where `values` stand in so many rows each.
    fn among(column: impl IntoIterator<Item = f64>, values: &[(f64, usize)]) -> Vec<f64> {
        let mut numbers: Vec<(f64, usize)> = column.into_iter().map(|value| (value, 2)).collect();
        numbers.extend(values);
        numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
        stand_ins(&numbers)
            .into_iter()
            .map(|(value, _)| value)
            .collect()
    }

    fn ages() -> impl Iterator<Item = f64> {
        (20..60).map(f64::from)
    }

    #[test]
    fn stand_in_numbers_are_found_however_they_are_spelt() {
        for value in [
            -1.0,
            -9.0,
            -99.0,
            -999.0,
            999.0,
            998.0,
            999.9,
            9999.99,
            777.0,
            8888.0,
            5555.0,
            -6666.0,
            32767.0,
            -32768.0,
            65535.0,
            -2_147_483_648.0,
            2_147_483_647.0,
            4_294_967_295.0,
            -9_223_372_036_854_775_808.0,
            1e37,
            f64::MAX,
            -3.402_823_466e38,
            9998.0,
            -77.7,
            88_888.0,
            65_534.0,
            4_294_967_294.0,
            -9e30,
            99_997.0,
        ] {
            assert_eq!(among(ages(), &[(value, 1)]), [value]);
        }
        assert_eq!(among(ages(), &[(-999.0, 1), (-99.0, 1)]), [-999.0, -99.0]);
        let several = [(998.0, 1), (999.0, 4), (-9.0, 1)];
        assert_eq!(among(ages(), &several), [-9.0, 998.0, 999.0]);
        // Whatever its digits, if it is far and repeated; and a near one of which there are many.
        assert_eq!(among(ages(), &[(500.0, 3)]), [500.0]);
        assert_eq!(among(ages(), &[(-1000.0, 4)]), [-1000.0]);
        assert_eq!(among(ages(), &[(99.0, 12)]), [99.0]);
        // Where others are negative, or few.
        let degrees = || (-20..40).map(f64::from);
        assert_eq!(among(degrees(), &[(-99.0, 2)]), [-99.0]);
        assert_eq!(among(degrees(), &[(-888.8, 1)]), [-888.8]);
        assert_eq!(among([0.0, 1.0], &[(9.0, 2)]), [9.0]);
        assert_eq!(among([0.0, 1.0], &[(8.0, 1), (9.0, 2)]), [8.0, 9.0]);
    }

    #[test]
    fn ordinary_numbers_are_not() {
        for values in [
            &[(-3.5, 1)][..],
            &[(99.0, 1)],
            &[(150.0, 1)],
            &[(500.0, 2)],
            &[(77.0, 1)],
            &[(66.0, 9)],
            &[(-1.0, 1), (-2.0, 1), (-7.0, 1), (-8.0, 1)],
            &[(-4.5, 1), (-1.0, 1)],
        ] {
            assert!(among(ages(), values).is_empty(), "{values:?}");
        }
        let sizes = (0..1000).map(f64::from);
        assert!(among(sizes, &[]).is_empty());
        // A skewed column, codes from 1 to 9, shares, saturation, two values.
        let skewed = (0..40).map(|at| 1.2_f64.powi(at));
        assert!(among(skewed, &[(2222.0, 1)]).is_empty());
        assert!(among((1..10).map(f64::from), &[]).is_empty());
        assert!(among((0..100).map(|at| f64::from(at) / 100.0), &[]).is_empty());
        let rising = (80..100).map(|at| (f64::from(at), (at - 79) as usize));
        assert!(stand_ins(&rising.collect::<Vec<_>>()).is_empty());
        assert!(among([0.0, 1.0], &[]).is_empty());
        assert!(among([7.0], &[]).is_empty() && among([], &[]).is_empty());
    }
}
