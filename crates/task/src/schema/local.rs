//! Names that columns and codes have in an institution's own files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How an institution's files differ from the schema in names only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LocalNames {
    /// Columns with another name in the file: `agreed = "local"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, String>,
    /// For each column, by its agreed name, the codes of the file and the agreed values that they
    /// mean: `local = "agreed"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub codes: BTreeMap<String, BTreeMap<String, String>>,
    /// For each column, by its agreed name, texts that mean a missing value in it, beside those of `format`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, Vec<String>>,
    /// Columns of the file that are in no agreement and are not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
}

impl LocalNames {
    /// The name of an agreed column in the file.
    pub fn column<'a>(&'a self, agreed: &'a str) -> &'a str {
        self.columns.get(agreed).map_or(agreed, String::as_str)
    }

    /// The agreed value for what a cell of this column holds.
    pub fn value<'a>(&'a self, column: &str, text: &'a str) -> &'a str {
        let codes = self.codes.get(column);
        codes
            .and_then(|codes| codes.get(text))
            .map_or(text, String::as_str)
    }
}
