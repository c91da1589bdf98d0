//! The rotation of leads in TOML files: the name of a policy.

use std::borrow::Cow;

use protocol::parameters::Rotation;
use serde::{Deserialize, Serialize};

/// The name of a rotation, such as `"every-round"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RotationName(pub Rotation);

impl Default for RotationName {
    fn default() -> Self {
        Self(Rotation::EveryRound)
    }
}

impl From<RotationName> for String {
    fn from(name: RotationName) -> Self {
        name.0.to_string()
    }
}

impl TryFrom<String> for RotationName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let found = text.parse::<Rotation>();
        found.map(Self).map_err(|error| error.to_string())
    }
}

impl schemars::JsonSchema for RotationName {
    fn schema_name() -> Cow<'static, str> {
        "RotationName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Who leads when. Except under \"fixed\", any n views after a final round have n leads.",
            "anyOf": [
                {
                    "const": "every-round",
                    "description": "A new lead in every view; each member leads once per cycle."
                },
                {
                    "type": "string",
                    "pattern": "^every-([2-9]|[1-9][0-9]+)-rounds$",
                    "x-type": "`\"every-K-rounds\"` with K at least 2",
                    "description": "A lead leads K rounds in a row, unless a view fails: then the next member leads."
                },
                {
                    "const": "on-failure",
                    "description": "The same member leads until a view fails: then the next member leads."
                },
                {
                    "const": "reliability",
                    "description": "Drawn for every round; members that lost views or did not contribute seldom lead first."
                },
                {
                    "const": "fixed",
                    "description": "The first silo leads every round, as a server does. Without it no round becomes final."
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_rotation_is_read_and_written_by_its_name() {
        let read = |text: &str| RotationName::try_from(text.to_owned());
        for policy in Rotation::ALL {
            let text = String::from(RotationName(policy));
            assert_eq!(read(&text), Ok(RotationName(policy)));
        }
        let error = read("often").unwrap_err();
        assert!(
            error.starts_with("\"often\" is no rotation: expected every-round"),
            "{error}"
        );
    }
}
