//! Preparations of a node before its silo runs: its admission, its rows and equipment, the model to start from, its
//! logs, and what part it can take.

pub(super) mod ability;
pub(super) mod admission;
pub(super) mod announce;
pub(super) mod audit_log;
mod equipment;
pub(super) mod former_rounds;
pub(super) mod role;
pub(super) mod rows_fit;
pub(super) mod signed_rows;
pub(super) mod start_model;
