//! Ids of amendments and recoveries as people type and read them.
//!
//! Files, messages and decisions use whole hashes. A person may type the beginning of one, if it is long
//! enough that nobody finds two texts with the same beginning: whoever writes both could have one read, and the
//! other approved.

use protocol::Hash;

/// Fewest hexadecimal digits that a person may type, and the number that lines show: 128 bits. Finding a text with
/// the beginning of another one takes 2¹²⁸ attempts, finding any two 2⁶⁴; of half as many digits it would be 2³².
pub const DIGITS: usize = 32;

/// Reason for which a typed text names nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypedError {
    /// Something else than hexadecimal digits, or too many.
    #[error("{0:?} is no id: write the first {DIGITS} to 64 hexadecimal digits of one")]
    Malformed(String),
    /// Too few digits.
    #[error(
        "{0:?} has too few digits, because one person could make two things that begin like this: write at least \
         the first {DIGITS} of the id, or all 64"
    )]
    Short(String),
    /// There is none.
    #[error("{0} is not known here")]
    Unknown(String),
    /// More than one begins like this.
    #[error("{typed} is the beginning of more than one id: write all 64 digits of one of {}", all.join(", "))]
    Several {
        /// Text that was typed.
        typed: String,
        /// The ids that begin like this.
        all: Vec<String>,
    },
}

/// The one of these hashes that begins with what was typed, which may be in groups.
///
/// # Errors
/// [`TypedError`].
pub fn typed(text: &str, known: impl IntoIterator<Item = Hash>) -> Result<Hash, TypedError> {
    let between = |c: char| c == '-' || c.is_ascii_whitespace();
    let digits = text.replace(between, "").to_ascii_lowercase();
    if digits.is_empty() || digits.len() > 64 || !digits.bytes().all(|c| c.is_ascii_hexdigit()) {
        return Err(TypedError::Malformed(text.to_owned()));
    }
    if digits.len() < DIGITS {
        return Err(TypedError::Short(digits));
    }
    let known = known.into_iter();
    let mut found: Vec<_> = known
        .filter(|hash| format!("{hash:#}").starts_with(&digits))
        .collect();
    found.sort();
    found.dedup();
    match found[..] {
        [] => Err(TypedError::Unknown(digits)),
        [one] => Ok(one),
        _ => Err(TypedError::Several {
            typed: digits,
            all: found.iter().map(|hash| format!("{hash:#}")).collect(),
        }),
    }
}

/// The beginning of an id, as lines show it.
pub fn shown(hash: &Hash) -> String {
    let mut digits = format!("{hash:#}");
    digits.truncate(DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hashes with the same first sixteen bytes, and another.
    fn hashes() -> [Hash; 3] {
        let mut all = [[0xab; 32], [0xab; 32], [0x1c; 32]];
        all[1][16] = 0xcd;
        all.map(Hash)
    }

    #[test]
    fn a_beginning_of_32_digits_names_the_only_match() {
        let known = hashes();
        assert_eq!(typed(&shown(&known[2]), known), Ok(known[2]));
        assert_eq!(typed(&format!("{:#}", known[0]), known), Ok(known[0]));
        assert_eq!(
            typed(&format!(" {:#} ", known[1]).to_uppercase(), known),
            Ok(known[1])
        );
        assert_eq!(shown(&known[2]).len(), 32);
        for groups in [
            "1c1c1c1c-1c1c1c1c-1c1c1c1c-1c1c1c1c",
            "1C1C 1C1C 1C1C 1C1C 1C1C 1C1C 1C1C 1C1C",
        ] {
            assert_eq!(typed(groups, known), Ok(known[2]));
        }
    }

    #[test]
    fn fewer_digits_are_refused_even_where_only_one_matches() {
        let known = hashes();
        // The number of digits that lines showed before is among them: two texts whose ids begin so are found in
        // minutes.
        for few in ["1", "1c1c1c1c", &"1c".repeat(8), &"1c".repeat(16)[1..]] {
            let refused = typed(few, known);
            assert_eq!(refused, Err(TypedError::Short(few.into())));
        }
        let why = typed("1c1c1c1c", known).map_err(|why| why.to_string());
        assert!(why.is_err_and(|why| why.contains("at least the first 32")));
        for no in [
            "",
            "rounds",
            "1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1g",
            &"1c".repeat(33),
            "−1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c",
        ] {
            assert!(
                matches!(typed(no, known), Err(TypedError::Malformed(_))),
                "{no}"
            );
        }
        let other = "00".repeat(16);
        assert_eq!(typed(&other, known), Err(TypedError::Unknown(other)));
    }

    #[test]
    fn where_two_match_what_was_typed_both_are_shown_and_none_taken() {
        let known = hashes();
        let why = typed(&shown(&known[0]), known).map_err(|why| why.to_string());
        let why = why.expect_err("two begin like this");
        for hash in &known[..2] {
            assert!(why.contains(&format!("{hash:#}")), "{why}");
        }
        // The same one twice is one.
        let twice = [known[2], known[2]];
        assert_eq!(typed(&shown(&known[2]), twice), Ok(known[2]));
    }
}
