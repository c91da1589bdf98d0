//! What is wrong with a scenario, and where.

use std::ops::Range;

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

/// Makes errors about one source text.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// An error at a place of the text.
    pub(super) fn at(self, span: Range<usize>, what: impl Into<String>) -> ScenarioError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        ScenarioError::At { file: self.file.into(), line, what: what.into() }
    }

    /// An error of the reader of the format.
    pub(super) fn toml(self, error: &toml::de::Error) -> ScenarioError {
        let span = error.span().unwrap_or(0..0);
        let key = self.key(&span).map_or(String::new(), |key| format!("{key}: "));
        self.at(span, format!("{key}{}", error.message()))
    }

    /// An error about a key of a table (`""`: above all tables); `nth` of tables of that name.
    pub(super) fn key_of(self, table: &str, nth: usize, key: &str, what: String) -> ScenarioError {
        let (mut current, mut seen) = ("", 0);
        let (mut offset, mut found) = (0, None);
        for line in self.text.split_inclusive('\n') {
            let trimmed = line.trim();
            if let Some(name) = trimmed.strip_prefix('[') {
                current = name.trim_start_matches('[').split(']').next().unwrap_or("").trim();
                seen += usize::from(current == table);
            }
            let here = current == table && (table.is_empty() || seen == nth + 1);
            let names = trimmed.split('=').next().is_some_and(|name| name.trim() == key);
            if here && found.is_none() && trimmed.starts_with('[') {
                found = Some((offset, false));
            }
            if here && names && !matches!(found, Some((_, true))) {
                found = Some((offset, true));
            }
            offset += line.len();
        }
        let start = found.map_or(0, |(offset, _)| offset);
        self.at(start..start, format!("`{key}` {what}"))
    }

    /// The key of the line in which a value stands.
    fn key(self, span: &Range<usize>) -> Option<String> {
        let start = self.text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
        let line = self.text.get(start..)?.lines().next()?;
        let (key, _) = line.split_once('=')?;
        let inside = span.start >= start + key.len();
        inside.then(|| format!("`{}`", key.trim()))
    }
}
