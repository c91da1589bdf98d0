//! Two numbers in each cell, such as a blood pressure of `139/82` or a height of `6'3`.

use std::collections::BTreeSet;

use super::Cells;
use crate::typed::typed;

/// Fewest different pairs of a column that is asked about: of fewer they are degrees or scores.
const PAIRS: usize = 8;
/// Signs between two numbers.
const BETWEEN: [char; 8] = ['/', 'x', '\u{D7}', '*', '\'', '\u{2019}', 'h', '\u{B0}'];
/// Signs that may stand behind the second one, as in 6'3" and 2h05m.
const BEHIND: [char; 7] = [
    '"', '\'', 'm', '\u{2032}', '\u{2033}', '\u{2019}', '\u{201D}',
];

impl Cells<'_> {
    /// Returns what to ask where nearly all cells hold two numbers.
    pub(super) fn pair_question(&self) -> Option<String> {
        let (mut rows, mut both) = (0, Vec::new());
        for (text, times) in &self.values {
            if let Some(pair) = pair(text) {
                rows += times;
                both.push((pair, text));
            }
        }
        let parts = |of: fn(&(&str, &str)) -> String| {
            let parts: BTreeSet<String> = both.iter().map(|(pair, _)| of(pair)).collect();
            parts.len()
        };
        let vary = parts(|pair| pair.0.to_owned()) > 1 && parts(|pair| pair.1.to_owned()) > 1;
        if both.len() < PAIRS || 10 * rows < 9 * self.present() || self.numeric > 0 || !vary {
            return None;
        }
        let (name, typed) = (self.name, typed(self.name));
        Some(format!(
            "column {name:?}: there are two numbers in a cell, such as {:?}: give each a column of its own in the \
             file; if the cells are categories, say --category {typed}; to leave the column out, --drop {typed}",
            both[0].1
        ))
    }
}

/// The two numbers of a text, as they are written.
fn pair(text: &str) -> Option<(&str, &str)> {
    let (one, other) = text.split_once(BETWEEN)?;
    let (one, other) = (one.trim(), other.trim().trim_end_matches(BEHIND));
    let is_number = |text: &str| {
        let mark = |byte: u8| byte.is_ascii_digit() || byte == b'.' || byte == b',';
        text.bytes().all(mark) && text.bytes().any(|byte| byte.is_ascii_digit())
    };
    (is_number(one) && is_number(other)).then_some((one, other))
}

#[cfg(test)]
mod tests {
    use super::pair;

    #[test]
    fn two_numbers_have_a_mark_between_them() {
        for text in [
            "139/82",
            "139 / 82",
            "6'3",
            "6\u{2019}11\u{201D}",
            "8.5x6",
            "12 \u{D7} 9,5",
        ] {
            assert!(pair(text).is_some(), "{text}");
        }
        for text in [
            "139", "a/b", "1/2/2024", "G2/P1", "/", "12/", "12 mmHg", "T1x",
        ] {
            assert_eq!(pair(text), None, "{text}");
        }
    }
}
