//! The names of institutions and federations: which characters they may have.
//!
//! Names are read from files and shown on terminals and pages, so nothing in them may be invisible
//! or steer a terminal.

/// Most characters in a name.
pub const LONGEST: usize = 64;

/// Reason for which a text is no valid name. The messages continue a sentence such as "the name of member 2".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No characters, or blanks only.
    #[error("is empty")]
    Empty,
    /// More than [`LONGEST`] characters.
    #[error("has {0} characters, at most {LONGEST} are allowed")]
    Long(usize),
    /// Blanks at the beginning or the end.
    #[error("begins or ends with a space")]
    Untrimmed,
    /// A character that is invisible or changes how others are shown.
    #[error(
        "contains the character U+{0:04X}, which is invisible or changes how the rest is shown: use \
         letters, digits, punctuation and single spaces"
    )]
    Unprintable(u32),
}

/// Checks that a text is a valid name: 1 to [`LONGEST`] printable characters without blanks at the
/// beginning or the end.
///
/// # Errors
/// [`NameError`]: the first rule that the text breaks.
pub fn check(name: &str) -> Result<(), NameError> {
    if name.trim().is_empty() {
        return Err(NameError::Empty);
    }
    // First, so that a very long text is only counted.
    let length = name.chars().count();
    if length > LONGEST {
        return Err(NameError::Long(length));
    }
    if let Some(odd) = name.chars().find(|&c| !printable(c)) {
        return Err(NameError::Unprintable(odd.into()));
    }
    if name != name.trim() {
        return Err(NameError::Untrimmed);
    }
    Ok(())
}

/// A name with letters in lower case and single spaces. Names that people would confuse become
/// equal.
pub(crate) fn folded(name: &str) -> String {
    let words: Vec<_> = name.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Returns true if a character is visible and leaves others as they are. False for control and format characters (such
/// as overrides of the writing direction), blanks other than the space, and letters without a shape.
pub fn printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let shapeless = matches!(c,
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}'
        | '\u{e0100}'..='\u{e01ef}');
    if shapeless {
        return false;
    }
    // The standard library escapes unassigned, private, control, format and separator characters.
    // The `a` in front is there because it also escapes combining marks without a base.
    let mut text = [b'a', 0, 0, 0, 0];
    let length = 1 + c.encode_utf8(&mut text[1..]).len();
    str::from_utf8(&text[..length]).is_ok_and(|text| text.escape_debug().count() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_of_any_script_are_valid() {
        for name in [
            "silo 1",
            "age Q1 · sex A",
            "Charité – Berlin",
            "St. Mary's \"North\" \\ South",
            "東京大学医学部附属病院",
            "مستشفى",
            "Ελλάδα",
            "a\u{301}b",
            "🏥 4",
        ] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        assert_eq!(check(&"x".repeat(LONGEST)), Ok(()));
    }

    #[test]
    fn invisible_and_terminal_steering_characters_are_refused() {
        let odd = [
            '\u{1b}',
            '\n',
            '\r',
            '\t',
            '\0',
            '\u{7f}',
            '\u{85}',
            '\u{9b}', // control
            '\u{202a}',
            '\u{202e}',
            '\u{2066}',
            '\u{2069}',
            '\u{200e}',
            '\u{61c}', // direction
            '\u{200b}',
            '\u{200d}',
            '\u{2060}',
            '\u{feff}',
            '\u{ad}',
            '\u{e0041}', // nothing to see
            '\u{a0}',
            '\u{2003}',
            '\u{3000}',
            '\u{2028}',
            '\u{2029}', // other blanks
            '\u{e000}',
            '\u{ffff}',
            '\u{3164}',
            '\u{2800}',
            '\u{fe0f}',
            '\u{34f}',
        ];
        for c in odd {
            let expected = Err(NameError::Unprintable(c.into()));
            assert_eq!(check(&format!("a{c}b")), expected, "U+{:04X}", u32::from(c));
        }
        assert_eq!(
            check("\u{1b}[2Jround 9 final"),
            Err(NameError::Unprintable(0x1b))
        );
        assert_eq!(
            [check(""), check(" \n ")],
            [Err(NameError::Empty), Err(NameError::Empty)]
        );
        assert_eq!(
            [check(" a"), check("a ")],
            [Err(NameError::Untrimmed), Err(NameError::Untrimmed)]
        );
        assert_eq!(check(&"x".repeat(200_000)), Err(NameError::Long(200_000)));
    }

    #[test]
    fn names_that_differ_in_case_or_blanks_fold_to_the_same_text() {
        assert_eq!(folded("Silo  A"), folded("silo a"));
        assert_ne!(folded("silo a"), folded("silo b"));
    }
}
