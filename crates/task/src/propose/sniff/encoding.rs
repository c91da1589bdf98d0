//! Asks in which encoding a text is written, where it reads well in several.

use std::path::Path;

use crate::data::{DataError, EncodingGuess, encoding_of};

/// The encoding of a text that is no UTF-8, as `format` names it, and a word of it.
///
/// # Errors
/// [`DataError::File`]: it reads well in several, or in none.
pub(super) fn found(path: &Path, bytes: &[u8]) -> Result<(String, Option<String>), DataError> {
    let open = |reason: String, hint: String| DataError::File {
        path: path.to_owned(),
        reason,
        hint,
    };
    match encoding_of(bytes) {
        EncodingGuess::Found(charset, word) => Ok((charset.label(), Some(word))),
        EncodingGuess::Open(each) => {
            let words = each
                .iter()
                .map(|(charset, word)| format!("{word:?} in {}", charset.label()));
            let options = each
                .iter()
                .map(|(charset, _)| format!("--encoding {}", charset.label()));
            Err(open(
                format!(
                    "its text is {}, and nothing in the file decides which",
                    words.collect::<Vec<_>>().join(", ")
                ),
                format!(": say {}", options.collect::<Vec<_>>().join(" or ")),
            ))
        }
        EncodingGuess::Unknown => Err(open(
            "its text is no UTF-8, and has no words in any usual encoding".into(),
            ": say which it has with --encoding NAME, or export it again in UTF-8".into(),
        )),
    }
}
