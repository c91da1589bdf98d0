//! Texts in the options that a question names: what is printed can be typed into a shell as it is.

/// A text as one word of a command line, in quotation marks.
pub(crate) fn typed(text: &str) -> String {
    // A shell takes these otherwise, or ends the mark at them.
    let special = |letter: char| "$`\\\"!".contains(letter) || letter.is_control();
    match text.chars().any(special) {
        true => format!("'{}'", text.replace('\'', r"'\''")),
        false => format!("\"{text}\""),
    }
}

/// The answer `COLUMN=TEXT` as one word of a command line.
pub(crate) fn typed_pair(column: &str, text: impl std::fmt::Display) -> String {
    typed(&format!("{column}={text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_what_was_meant() {
        for (text, word) in [
            ("lab", "\"lab\""),
            ("l'âge (a b)", "\"l'âge (a b)\""),
            ("US$", "'US$'"),
            ("a`b", "'a`b'"),
            ("say \"no\"", "'say \"no\"'"),
            ("don't \\ $x", r"'don'\''t \ $x'"),
            ("!", "'!'"),
        ] {
            assert_eq!(typed(text), word);
        }
        assert_eq!(typed_pair("x>=5", -9.5), "\"x>=5=-9.5\"");
    }
}
