//! Errors about a TOML file that name the file, the line and the key.

use std::ops::Range;

use methods::nearest;
use toml::de::{DeTable, DeValue};

use crate::renamed;

/// An error in a TOML file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {what}")]
pub struct FileError {
    /// The file, or the name of a built-in scenario.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The error, with the key and what is allowed.
    pub what: String,
}

/// The text of a TOML file, to make errors about it.
#[derive(Debug, Clone, Copy)]
pub struct TomlText<'a> {
    /// The file, as errors name it.
    pub file: &'a str,
    /// Text of the file.
    pub text: &'a str,
}

impl TomlText<'_> {
    /// An error at a position of the text.
    pub fn at(self, span: Range<usize>, what: impl Into<String>) -> FileError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        FileError {
            file: self.file.into(),
            line,
            what: what.into(),
        }
    }

    /// An error of the TOML parser.
    pub fn toml(self, error: &toml::de::Error) -> FileError {
        let span = error.span().unwrap_or(0..0);
        let what = plain(error.message());
        let what = match self.key(&span) {
            Some(key) if what.starts_with("is ") => format!("{key} {what}"),
            Some(key) => format!("{key}: {what}"),
            None => what,
        };
        self.at(span, what)
    }

    /// An error about the key at a path of keys and list positions, such as `fault.0.kill`.
    pub fn key_of(self, path: &str, what: impl std::fmt::Display) -> FileError {
        let key = path.rsplit('.').next().unwrap_or(path);
        self.at(self.span(path), format!("`{key}` {what}"))
    }

    /// Checks that nothing is wrong with a file.
    ///
    /// # Errors
    /// All of these faults, each with the path of its key: at the first, and with a line for each other one.
    pub fn keys_of(self, faults: &[(&'static str, String)]) -> Result<(), FileError> {
        let errors = faults.iter().map(|(path, what)| self.key_of(path, what));
        let together = errors.reduce(|mut first, next| {
            first.what += &format!("\n{next}");
            first
        });
        together.map_or(Ok(()), Err)
    }

    /// Checks that the file's key `format`, if it has one, is at most `newest`, and that no key has an old
    /// name. Called before the rest of the file is read, because a newer format may have other keys.
    ///
    /// # Errors
    /// [`FileError`]: a newer format, or one that never existed; or the old names.
    pub fn check_format(self, newest: u32) -> Result<(), FileError> {
        self.is_format(newest)?;
        let old = renamed::old_names(self.text).into_iter();
        let errors = old.map(|(span, what)| self.at(span, what));
        let together = errors.reduce(|mut first, next| {
            first.what += &format!("\n{next}");
            first
        });
        together.map_or(Ok(()), Err)
    }

    fn is_format(self, newest: u32) -> Result<(), FileError> {
        let Ok(document) = DeTable::parse(self.text) else {
            return Ok(());
        };
        let format = document.get_ref().get("format");
        let format = format.and_then(|value| value.get_ref().as_integer());
        let Some(format) =
            format.and_then(|format| i128::from_str_radix(format.as_str(), format.radix()).ok())
        else {
            return Ok(());
        };
        match format {
            0 => Err(self.key_of("format", format!("is 0, it must be between 1 and {newest}"))),
            format if format > newest.into() => Err(self.key_of(
                "format",
                format!(
                    "is {format}, but this program reads formats up to {newest}: use a newer \
                     version of Rota"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The position of the key at this path, or of the deepest table on the way to it.
    pub fn span(self, path: &str) -> Range<usize> {
        let mut found = 0..0;
        let Ok(document) = DeTable::parse(self.text) else {
            return found;
        };
        let mut table = Some(document.get_ref());
        let mut parts = path.split('.');
        while let (Some(inside), Some(part)) = (table, parts.next()) {
            let Some((key, value)) = inside.get_key_value(part) else {
                break;
            };
            found = key.span();
            table = match value.get_ref() {
                DeValue::Table(table) => Some(table),
                DeValue::Array(values) => {
                    let place = parts.next().and_then(|place| place.parse::<usize>().ok());
                    let value = place.and_then(|place| values.get(place));
                    found = value.map_or(found, |value| value.span());
                    value.and_then(|value| value.get_ref().as_table())
                }
                _ => None,
            };
        }
        found
    }

    /// The key of the line that contains a value.
    fn key(self, span: &Range<usize>) -> Option<String> {
        let start = self
            .text
            .get(..span.start)?
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let line = self.text.get(start..)?.lines().next()?;
        let (key, _) = line.split_once('=')?;
        let inside = span.start >= start + key.len();
        inside.then(|| format!("`{}`", key.trim()))
    }
}

/// Message for a word where a table is needed, as in `model = "linear"`.
const WITH_SETTINGS: &str =
    "a word alone, but this one takes a value or settings: write { word = … } in its place";

/// A message of the parser in the words of the file: keys and values instead of fields and
/// variants, "a whole number" for `u64` and so on, with the most similar key or value for one that
/// is unknown.
fn plain(message: &str) -> String {
    if let Some(text) = unknown(message) {
        return text;
    }
    let words = [
        ("missing field", "missing key"),
        ("duplicate field", "the key is there twice:"),
        ("unit variant, expected struct variant", WITH_SETTINGS),
        ("unit variant, expected newtype variant", WITH_SETTINGS),
        ("unit variant, expected tuple variant", WITH_SETTINGS),
        (
            "expected unit variant",
            "expected the word alone, in quotes",
        ),
        ("expected struct", "expected a table for"),
        ("expected tuple struct", "expected a list for"),
        ("invalid type: ", "is "),
        ("invalid value: ", "is "),
        ("invalid length ", "has the length "),
        ("a borrowed string", "a text"),
        ("a string", "a text"),
        ("string ", "the text "),
        ("integer ", "the number "),
        ("floating point ", "the number "),
        ("boolean ", "the value "),
        ("a boolean", "true or false"),
        ("a sequence", "a list"),
        ("sequence", "a list"),
        ("a map", "a table"),
        ("map", "a table"),
    ];
    let whole = ["u64", "u32", "u16", "u8", "usize", "i64"];
    let whole = whole.map(|name| (name, "a whole number"));
    let numbers = whole
        .into_iter()
        .chain([("f64", "a number"), ("f32", "a number")]);
    let expected: Vec<(String, String)> = numbers
        .map(|(name, plain)| (format!("expected {name}"), format!("expected {plain}")))
        .collect();
    let text = expected
        .iter()
        .fold(message.to_owned(), |text, (from, to)| {
            text.replace(from, to)
        });
    words
        .into_iter()
        .fold(text, |text, (from, to)| replace_words(&text, from, to))
}

/// Replaces whole words only.
fn replace_words(text: &str, from: &str, to: &str) -> String {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        let before = inside(rest[..at].chars().next_back());
        let ends_in_word = from.ends_with(char::is_alphanumeric);
        let after = ends_in_word && inside(rest[at + from.len()..].chars().next());
        parts.push(&rest[..at]);
        parts.push(if before || after { from } else { to });
        rest = &rest[at + from.len()..];
    }
    parts.push(rest);
    parts.concat()
}

/// Returns what is said about a key or value that is not known.
fn unknown(message: &str) -> Option<String> {
    let (what, rest) = [
        ("key", message.strip_prefix("unknown field `")),
        ("value", message.strip_prefix("unknown variant `")),
    ]
    .into_iter()
    .find_map(|(what, rest)| Some((what, rest?)))?;
    let (name, expected) = rest.split_once('`')?;
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let near = nearest(name, known.iter().copied());
    let list = match known.as_slice() {
        [] => "none is allowed here".to_owned(),
        [one] => format!("there is only `{one}`"),
        several => format!("there are `{}`", several.join("`, `")),
    };
    Some(format!("there is no {what} `{name}`{near}; {list}").replace("?; there", "? There"))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn messages_of_the_parser_speak_of_keys_and_values() {
        let cases = [
            (
                "unknown field `tarjet`, expected one of `target`, `unit`",
                "there is no key `tarjet`; did you mean \"target\"? There are `target`, `unit`",
            ),
            (
                "unknown variant `logistik`, expected `logistic` or `linear`",
                "there is no value `logistik`; did you mean \"logistic\"? There are `logistic`, \
                 `linear`",
            ),
            (
                "unknown field `x`, expected `name`",
                "there is no key `x`; there is only `name`",
            ),
            ("missing field `rounds`", "missing key `rounds`"),
            (
                "invalid type: string \"seven\", expected u64",
                "is the text \"seven\", expected a whole number",
            ),
            (
                "invalid type: integer `7`, expected a string",
                "is the number `7`, expected a text",
            ),
            (
                "invalid type: unit variant, expected struct variant",
                "is a word alone, but this one takes a value or settings: write { word = … } in its place",
            ),
            (
                "invalid type: map, expected unit variant",
                "is a table, expected the word alone, in quotes",
            ),
            (
                "invalid type: sequence, expected a boolean",
                "is a list, expected true or false",
            ),
            (
                "invalid type: string \"age\", expected a sequence",
                "is the text \"age\", expected a list",
            ),
        ];
        for (message, expected) in cases {
            assert_eq!(plain(message), expected);
        }
    }
}
