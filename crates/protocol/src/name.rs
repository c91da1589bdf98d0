//! What a name may be: of an institution, or of a federation. Names are read from files and shown to
//! people on terminals and pages, so nothing in them may be invisible or steer a terminal.

/// Most characters of a name.
pub const LONGEST: usize = 64;

/// Why a text is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing.
    #[error("is empty")]
    Empty,
    /// Too long.
    #[error("has {0} characters, and {LONGEST} are the most")]
    Long(usize),
    /// Blanks around it.
    #[error("begins or ends with a space")]
    Untrimmed,
    /// A character that cannot be seen, or that changes how others are shown.
    #[error(
        "holds the character U+{0:04X}, which is invisible or changes how the rest is shown: use \
         letters, digits, punctuation and single spaces"
    )]
    Unprintable(u32),
}

/// Whether a text may be a name: 1 to [`LONGEST`] printable characters, without spaces around them.
///
/// # Errors
/// [`NameError`]: the first thing that is wrong.
pub fn check(name: &str) -> Result<(), NameError> {
    if name.trim().is_empty() {
        return Err(NameError::Empty);
    }
    // First, so that a text of any size costs no more than counting it.
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

/// What two names have in common that people would take for one: letters regardless of their case,
/// any blank for any other.
pub(crate) fn folded(name: &str) -> String {
    let words: Vec<_> = name.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

/// Whether a character is seen as itself wherever it stands. Control and format characters
/// (overrides of the writing direction among them), blanks other than the space, and letters without
/// a shape are not.
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
    // The standard library knows what is unassigned, private, a control, a format or a separator:
    // that is what it escapes. Behind another character, where marks stand.
    let mut text = [b'a', 0, 0, 0, 0];
    let length = 1 + c.encode_utf8(&mut text[1..]).len();
    str::from_utf8(&text[..length]).is_ok_and(|text| text.escape_debug().count() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_of_any_script_are_names() {
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
    fn what_steers_a_terminal_or_cannot_be_seen_is_no_name() {
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
    fn names_that_people_would_confuse_are_folded_into_one() {
        assert_eq!(folded("Silo  A"), folded("silo a"));
        assert_ne!(folded("silo a"), folded("silo b"));
    }
}
