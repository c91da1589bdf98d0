//! Conditions that a row must meet to be used.

use serde::{Deserialize, Serialize};

use crate::data::Rule;

/// A column, an operator (`>`, `>=`, `<`, `<=`, `=`, `!=`) and a value, as in `"age >= 18"` or
/// `"ward = general"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Filter {
    /// The column.
    pub column: String,
    /// What its value must be.
    pub rule: Rule,
}

impl TryFrom<String> for Filter {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let help =
            || format!("{text:?} is not a condition such as \"age >= 18\" or \"ward = general\"");
        let at = text.find(['>', '<', '=', '!']).ok_or_else(help)?;
        let column = text[..at].trim().to_owned();
        let rule = Rule::try_from(text[at..].trim().to_owned()).map_err(|_| help())?;
        if column.is_empty() {
            Err(help())
        } else {
            Ok(Self { column, rule })
        }
    }
}

impl From<Filter> for String {
    fn from(filter: Filter) -> Self {
        format!("{} {}", filter.column, Self::from(filter.rule))
    }
}
