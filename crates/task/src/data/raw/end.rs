//! The end of a text that may have been cut off.

use super::RawFile;
use crate::data::number;

/// Fewest rows that are enough to tell how the values of a column look.
const ROWS: usize = 5;

/// A note, if the last value of a text without an end of its last line looks as if more had followed: it is
/// empty, has fewer decimals or digits than all others of its column, or is the beginning of another one.
pub(super) fn broken_off(file: &RawFile) -> Option<String> {
    let before = file.rows.len().checked_sub(1)?;
    let last = file.rows.row(before);
    let place = file.header.len().checked_sub(1)?;
    let text = last.cells.get(place)?;
    let others: Vec<&str> = file
        .rows
        .iter()
        .take(before)
        .filter_map(|row| row.cells.get(place))
        .collect();
    if others.len() < ROWS || others.contains(&text) || !is_short(text, &others) {
        return None;
    }
    Some(format!(
        "{} has no end of line, and column {:?} ends with {text:?} there, which looks like a part of a value: \
         was the file cut off? Then copy it again",
        last.at, file.header[place]
    ))
}

/// Returns whether a value is shorter than all others of its column.
fn is_short(text: &str, others: &[&str]) -> bool {
    if text.is_empty() {
        return true;
    }
    let plain = |text: &str| number(&text.replacen(',', ".", 1));
    let numbers = others
        .iter()
        .copied()
        .filter(|other| plain(other).is_some());
    let numbers: Vec<&str> = numbers.collect();
    if 10 * numbers.len() < 9 * others.iter().filter(|other| !other.is_empty()).count() {
        return others.iter().any(|other| other.starts_with(text));
    }
    let Some(value) = plain(text) else {
        // A sign, or an exponent without its digits.
        return true;
    };
    let parts = |text: &str| {
        let digits = text.trim_start_matches(['-', '+']);
        let (whole, part) = digits.split_once(['.', ',']).unwrap_or((digits, ""));
        (whole.len(), part.len())
    };
    let (whole, part) = parts(text);
    let least = |of: &dyn Fn(&str) -> usize| numbers.iter().map(|other| of(other)).min();
    let decimals = least(&|other| parts(other).1).is_some_and(|least| part < least);
    let digits = least(&|other| parts(other).0).is_some_and(|least| whole < least);
    let sizes = numbers
        .iter()
        .filter_map(|other| plain(other))
        .map(f64::abs);
    let smallest = sizes.fold(f64::INFINITY, f64::min);
    decimals
        || digits
        || text.ends_with(['.', ','])
        || (smallest > 1.0 && 2.0 * value.abs() < smallest)
}

#[cfg(test)]
mod tests {
    use crate::data::{Format, RawFile};

    fn notes(text: &str) -> Vec<String> {
        let file = RawFile::of_text("a.csv".into(), text, &Format::default());
        file.expect("a table").notes
    }

    /// Seven rows with these values in the last column, and a last one.
    fn cut(values: [&str; 2], last: &str) -> bool {
        let rows: String = (0..7)
            .map(|row| format!("{row},{}\n", values[row % 2]))
            .collect();
        let notes = notes(&format!("a,b\n{rows}7,{last}"));
        assert!(notes.len() < 2, "{notes:?}");
        notes
            .iter()
            .any(|note| note.contains("was the file cut off?"))
    }

    #[test]
    fn a_value_that_breaks_off_at_the_end_is_reported() {
        for (values, last) in [
            (["2.55", "9.37"], "9.3"),
            (["2.55", "9.37"], "9."),
            (["120", "85"], "1"),
            (["1204", "1399"], "12"),
            (["250.125", "310.500"], "25"),
            (["died", "home"], "ho"),
            (["2.55", "9.37"], ""),
            (["-2.5", "-9.3"], "-"),
        ] {
            assert!(cut(values, last), "{values:?} {last:?}");
        }
        let said = notes("a,b\n1,22\n1,23\n1,24\n1,25\n1,26\n1,2");
        assert_eq!(
            said,
            [
                "line 7 has no end of line, and column \"b\" ends with \"2\" there, which looks like a part of \
                 a value: was the file cut off? Then copy it again"
            ]
        );
    }

    #[test]
    fn a_whole_value_without_an_end_of_line_is_not() {
        for (values, last) in [
            (["2.55", "9.37"], "9.31"),
            (["120", "85"], "85"),
            (["120", "85"], "99"),
            (["0", "1"], "1"),
            (["2.5", "2.55"], "2.5"),
            (["2.5", "2.55"], "3.7"),
            (["died", "home"], "home"),
            (["died", "home"], "unknown"),
            (["1", ""], ""),
        ] {
            assert!(!cut(values, last), "{values:?} {last:?}");
        }
        assert!(notes("a,b\n1,22\n1,23\n1,24\n1,25\n1,26\n1,2\n").is_empty());
    }
}
