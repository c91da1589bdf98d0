//! The level of verification in TOML files: its name.

use std::borrow::Cow;

use protocol::parameters::Verification;
use serde::{Deserialize, Serialize};

/// The name of a level of verification, such as `"full"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VerificationName(pub Verification);

impl Default for VerificationName {
    fn default() -> Self {
        Self(Verification::Full)
    }
}

impl From<VerificationName> for String {
    fn from(name: VerificationName) -> Self {
        name.0.to_string()
    }
}

impl TryFrom<String> for VerificationName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let found = text.parse::<Verification>();
        found.map(Self).map_err(|error| error.to_string())
    }
}

impl schemars::JsonSchema for VerificationName {
    fn schema_name() -> Cow<'static, str> {
        "VerificationName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Who checks the lead's decision and computes the models again before they count.",
            "anyOf": [
                {
                    "const": "full",
                    "description": "Every member, with every contributed model."
                },
                {
                    "type": "string",
                    "pattern": "^committee-([1-9][0-9]{0,2}|1000)$",
                    "x-type": "`\"committee-C\"` with C between 1 and 1000",
                    "description": "C members, drawn anew for every attempt at a round; two thirds of them have to agree."
                },
                {
                    "const": "inclusion",
                    "description": "Nobody: the lead is believed. Members check only that contributions are in the round unchanged."
                },
            ],
        })
    }
}
