//! What is wrong with a scenario, and where.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// Why a scenario cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// A place in the file.
    #[error("{file}, line {line}: {what}")]
    At {
        /// The file, or the name of the built-in scenario.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong there, with the key, and what would be right.
        what: String,
    },
    /// An option of the command line.
    #[error("{0}")]
    Override(String),
    /// A file that cannot be read.
    #[error("cannot read the scenario {file}: {why}; built in are {built_in}")]
    File {
        /// The file.
        file: String,
        /// What the system says.
        why: String,
        /// Names of the built-in scenarios.
        built_in: String,
    },
}

/// Makes errors about one source text, of a scenario or of any other TOML file.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The file, as errors name it.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
}

impl Source<'_> {
    /// An error at a place of the text.
    pub fn at(self, span: Range<usize>, what: impl Into<String>) -> ScenarioError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        ScenarioError::At {
            file: self.file.into(),
            line,
            what: what.into(),
        }
    }

    /// An error of the reader of the format.
    pub fn toml(self, error: &toml::de::Error) -> ScenarioError {
        let span = error.span().unwrap_or(0..0);
        let key = self
            .key(&span)
            .map_or(String::new(), |key| format!("{key}: "));
        self.at(span, format!("{key}{}", plain(error.message())))
    }

    /// An error about the key to which this path of keys and places leads, such as `fault.0.kill`.
    pub fn key_of(self, path: &str, what: impl std::fmt::Display) -> ScenarioError {
        let key = path.rsplit('.').next().unwrap_or(path);
        self.at(self.span(path), format!("`{key}` {what}"))
    }

    /// Where the key of this path stands, or the deepest table on the way to it.
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

    /// The key of the line in which a value stands.
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

/// What the reader says, without the names that numbers have in this program.
fn plain(message: &str) -> String {
    let whole = ["u64", "u32", "u16", "u8", "usize"].map(|name| (name, "a whole number"));
    let numbers = whole.into_iter().chain([("f64", "a number")]);
    numbers.fold(message.to_owned(), |text, (name, plain)| {
        text.replace(&format!("expected {name}"), &format!("expected {plain}"))
    })
}
