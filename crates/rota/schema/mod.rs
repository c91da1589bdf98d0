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
    /// `silo.toml`, the configuration of a node.
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

    /// What the document is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::Experiment => "experiment",
            Self::Federation => "federation.toml",
            Self::Silo => "silo.toml",
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
