//! JSON Schemas of the TOML files, and the pages of the reference that are made from them.

mod page;
mod read;

use serde_json::Value;

/// A document with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaDocument {
    /// A scenario, for `rota simulate`.
    Scenario,
    /// An experiment, for `rota compare`.
    Experiment,
    /// `federation.toml`, the agreement.
    Federation,
    /// `node.toml`, the configuration of a node.
    Silo,
    /// The status of a node, as JSON.
    Status,
    /// The status of all nodes of a federation, as JSON.
    Nodes,
    /// A line of `rota run --json`.
    Events,
}

impl SchemaDocument {
    /// The TOML files that people write.
    pub const ALL: [Self; 4] = [
        Self::Scenario,
        Self::Experiment,
        Self::Federation,
        Self::Silo,
    ];

    /// Returns what the document is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::Experiment => "experiment",
            Self::Federation => "federation.toml",
            Self::Silo => "node.toml",
            Self::Status => "the status of a node",
            Self::Nodes => "the status of all nodes",
            Self::Events => "an event of a node",
        }
    }

    /// JSON Schema of the document, draft 7.
    pub fn schema(self) -> Value {
        match self {
            Self::Scenario => simulations::scenario::schema(),
            Self::Experiment => lab::compare::schema(),
            Self::Federation => agreement::federation_schema(),
            Self::Silo => node::institution::config::schema(),
            Self::Status => node::status::document::schema(),
            Self::Nodes => node::status::all::schema(),
            Self::Events => node::events::schema(),
        }
    }
}

/// The pages of the reference as Markdown, every key of the files: of each its path below the book's
/// folder, and its text. The first leads to the others.
pub fn reference() -> Vec<(String, String)> {
    page::reference(&SchemaDocument::ALL.map(|document| (document.title(), document.schema())))
}

#[cfg(test)]
mod tests {
    use node::draft::{FederationPlan, PlanError};
    use simulations::scenario::BUILT_IN;

    use super::SchemaDocument;

    /// The draft of an agreement does not know the simulator, and yet takes every scenario.
    #[test]
    fn a_draft_knows_every_key_of_a_scenario() {
        for (name, text) in BUILT_IN {
            let plan = FederationPlan::parse(name, text);
            assert_eq!(plan.map(|plan| plan.name), Ok((*name).to_owned()));
        }
        let schema = SchemaDocument::Scenario.schema();
        let keys = schema["properties"].as_object();
        for key in keys.into_iter().flat_map(|keys| keys.keys()) {
            // A list, which no table, number or text is.
            let wrong = FederationPlan::parse("s.toml", &format!("{key} = [[[]]]\n"));
            let Err(PlanError::At(error)) = wrong else {
                panic!("{key} alone is no scenario");
            };
            assert!(!error.what.contains("there is no key"), "{error}");
        }
        let unknown = FederationPlan::parse("s.toml", "round = 3\n");
        assert!(unknown.is_err_and(|error| error.to_string().contains("there is no key `round`")));
    }
}
