//! One line of a node, as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::NodeEvent;

/// One line of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Event.
    #[serde(flatten)]
    pub event: NodeEvent,
    /// Seconds since the node began, or since it began under the agreement in force. Absent where nobody
    /// counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<f64>,
    /// Time of the event, in UTC, as RFC 3339 has it.
    pub time: String,
}

/// The JSON Schema of a line.
pub fn schema() -> Value {
    agreement::schema_of::<Line>("an event of a node")
}
