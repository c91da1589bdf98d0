//! The text of a cell: without what a program has put around it, and with each letter written in one way.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The text that a cell means: without blanks around it, and without the formula by which spreadsheets keep it a
/// text, as in `="007"`; letters with accents as one letter each, where macOS writes two.
pub(super) fn tidy(cell: &str) -> Cow<'_, str> {
    plain(cell.trim_matches(is_blank))
}

/// The same, with the blanks around it.
pub(super) fn plain(cell: &str) -> Cow<'_, str> {
    composed(unwrapped(cell))
}

/// The text within a formula that is nothing but a text.
fn unwrapped(cell: &str) -> &str {
    let inner = cell
        .strip_prefix("=\"")
        .and_then(|rest| rest.strip_suffix('"'));
    inner.map_or(cell, |inner| inner.trim_matches(is_blank))
}

/// Returns whether a letter around a cell means nothing: blanks, and marks that nobody sees.
pub(in crate::data) fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || is_invisible(letter)
}

/// Returns whether nobody sees it.
pub(super) fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{FEFF}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{AD}'
    )
}

/// A text in Unicode's normalisation form C.
pub(crate) fn composed(text: &str) -> Cow<'_, str> {
    match text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        true => Cow::Borrowed(text),
        false => text.nfc().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_the_text_that_it_means() {
        for (cell, text) in [
            (" a ", "a"),
            ("=\"2.55\"", "2.55"),
            ("=\"007\"", "007"),
            (" =\" x \" ", "x"),
            ("=A1", "=A1"),
            ("=\"", "=\""),
            ("Su\u{308}d", "S\u{FC}d"),
            ("Ge\u{301}ne\u{301}ral", "G\u{E9}n\u{E9}ral"),
            ("A\u{30A}se", "\u{C5}se"),
            ("\u{1112}\u{1161}\u{11AB}", "\u{D55C}"),
            ("S\u{FC}d", "S\u{FC}d"),
        ] {
            assert_eq!(tidy(cell), text, "{cell:?}");
        }
    }
}
