//! That a lead left out what it had signed to have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A round that was over without this silo's model, although its lead had signed that it has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub struct UnkeptReceipt {
    /// The round.
    pub round: u64,
    /// The lead.
    pub lead: String,
    /// The view of the round.
    pub view: u64,
    /// True if this silo had signed for the round's list of models, with its own in it.
    pub signed: bool,
    /// The file with the lead's receipt; null where it could not be written.
    pub evidence: Option<String>,
}
