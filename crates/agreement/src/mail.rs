//! Finds a token in what a mail program makes of a mail: behind marks of quotation, in wrapped lines, between a
//! handshake and a signature.

/// Places at which a token may begin that are looked at.
const BEGINNINGS: usize = 8;
/// Words behind a token that are taken for its parts at first.
const WORDS: usize = 64;

/// The texts that may be the token, the likeliest first: whether one is whole, its checksum tells.
pub(crate) fn tokens<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = String> + 'a {
    let beginnings = text.match_indices(mark).take(BEGINNINGS);
    beginnings.flat_map(|(at, _)| {
        let parts = parts(&text[at..]);
        let least = parts.len().saturating_sub(WORDS).max(1);
        (least..=parts.len())
            .rev()
            .map(move |count| parts[..count].concat())
    })
}

/// The words from here on, as far as all of their letters may be those of a token.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for word in text.split(is_blank) {
        // Marks of quotation before it, and the sign with which a mail breaks a line off.
        let word = word.trim_start_matches(['>', '|']);
        let word = word.strip_suffix('=').unwrap_or(word);
        let end = word
            .find(|letter| !is_of_token(letter))
            .unwrap_or(word.len());
        if end > 0 {
            parts.push(&word[..end]);
        }
        if end < word.len() {
            break;
        }
    }
    parts
}

fn is_of_token(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')
}

/// True for white space, and for marks that nobody sees.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace()
        || matches!(
            letter,
            '\u{FEFF}' | '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{AD}'
        )
}
