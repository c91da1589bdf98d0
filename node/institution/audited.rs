//! Opens the audit log of a node, and says what is wrong with it.

use std::time::SystemTime;

use serde_json::json;

use super::config::Institution;
use super::health::Health;
use super::output::Output;
use crate::audit::{AuditLog, LogError, Sizes};
use crate::store::LogNote;

/// Opens the log, which is one through all epochs. An older copy that was put back, or another log, is
/// a warning.
///
/// # Errors
/// [`LogError`].
pub(super) fn open(
    institution: &Institution,
    note: LogNote,
    (output, health): (&Output, &Health),
) -> Result<AuditLog, LogError> {
    let log = AuditLog::open(
        &institution.state,
        institution.agreement.epoch.federation,
        &institution.key,
        Sizes::default(),
        Some(note),
    )?;
    for found in log.findings() {
        let document = json!({ "event": "state", "at": 0.0, "what": "audit-log", "why": found });
        output.print(SystemTime::now(), document, &format!("warning: {found}"));
        health.warning(SystemTime::now(), found);
    }
    Ok(log)
}
