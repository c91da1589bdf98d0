//! How a text file writes its cells: separator, decimal mark, encoding, missing values.

use std::path::Path;

use encoding_rs::Encoding;
use serde::{Deserialize, Serialize};

use super::DataError;

/// How the cells of a CSV file are written. Parquet files need `missing` only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Format {
    /// Names of the columns, for files without a first line of names. `[]` names them by
    /// position: `"1"`, `"2"`, and so on. By default the first line has the names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// What separates cells, one ASCII character; `","` by default.
    pub delimiter: char,
    /// The mark before the decimals of a number, `"."` (the default) or `","`.
    pub decimal: char,
    /// The encoding of the text, by its name in the WHATWG standard, such as `"windows-1252"` or
    /// `"latin1"`; `"utf-8"` by default.
    pub encoding: String,
    /// Texts that mean a missing value; `["", "?", "NA", "N/A", "NaN", "nan", "NULL", "null"]` by
    /// default.
    pub missing: Vec<String>,
}

/// Texts that usually mean a missing value.
pub(crate) const MISSING: [&str; 8] = ["", "?", "NA", "N/A", "NaN", "nan", "NULL", "null"];

impl Default for Format {
    fn default() -> Self {
        Self {
            columns: None,
            delimiter: ',',
            decimal: '.',
            encoding: "utf-8".into(),
            missing: MISSING.map(String::from).to_vec(),
        }
    }
}

impl Format {
    pub(crate) fn check(&self) -> Result<(), DataError> {
        let fail = |text: String| Err(DataError::Config(format!("`format`: {text}")));
        if !self.delimiter.is_ascii() {
            return fail("`delimiter` must be one ASCII character".into());
        }
        if !matches!(self.decimal, '.' | ',') {
            return fail("`decimal` must be \".\" or \",\"".into());
        }
        if Encoding::for_label(self.encoding.as_bytes()).is_none() {
            return fail(format!(
                "there is no encoding {:?}; usual ones are \"utf-8\", \"windows-1252\", \"latin1\", \"utf-16le\"",
                self.encoding
            ));
        }
        Ok(())
    }

    /// A finite number, if the text is one.
    pub(crate) fn number(&self, text: &str) -> Option<f64> {
        match self.decimal {
            ',' if text.contains('.') => None,
            ',' => super::number(&text.replacen(',', ".", 1)),
            _ => super::number(text),
        }
    }

    /// What is expected of a text that is no number.
    pub(crate) fn needed(&self, text: &str) -> String {
        let comma = self.decimal == '.' && super::number(&text.replacen(',', ".", 1)).is_some();
        let point = self.decimal == ',' && super::number(text).is_some();
        let is = |mark, name| {
            format!(
                "a number is needed; is the {name} a decimal {name}? Then say so in `format`: \
                 decimal = \"{mark}\""
            )
        };
        match (comma, point) {
            (true, _) => is(',', "comma"),
            (_, true) => is('.', "point"),
            _ => "a number is needed".into(),
        }
    }

    /// A number in one notation, so that `1` and `1.0` are equal; any other text unchanged.
    pub(crate) fn plain(&self, text: &str) -> String {
        let number = self.number(text);
        number.map_or_else(|| text.to_owned(), |number| number.to_string())
    }

    /// Whether a cell means that the value is missing.
    pub(crate) fn is_missing(&self, text: &str) -> bool {
        self.missing.iter().any(|missing| missing == text)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// [`DataError::File`]: bytes that are no text in this encoding, with what to try.
    pub(crate) fn decode(&self, path: &Path, bytes: Vec<u8>) -> Result<String, DataError> {
        let encoding = Encoding::for_label(self.encoding.as_bytes());
        let encoding = encoding.unwrap_or(encoding_rs::UTF_8);
        let (text, used, broken) = encoding.decode(&bytes);
        if !broken {
            return Ok(text.into_owned());
        }
        let line = bytes
            .utf8_chunks()
            .next()
            .map_or(0, |chunk| chunk.valid().matches('\n').count());
        Err(DataError::File {
            path: path.to_owned(),
            reason: format!("line {} is no {} text", line + 1, used.name()),
            hint: ": say in `format` which `encoding` it has, for example \"windows-1252\"".into(),
        })
    }
}
