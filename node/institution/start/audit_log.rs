//! Opens the audit log of a node, and says what is wrong with it.

use std::time::SystemTime;

use crate::audit::{AuditLog, LogError, LogSizes};
use crate::events::NodeEvent;
use crate::institution::config::Institution;
use crate::institution::report::health::Health;
use crate::institution::report::output::OutputLines;
use crate::store::LogNote;

/// Opens the log, which is one through all epochs. An older copy that was put back, or another log, is
/// a warning.
///
/// # Errors
/// [`LogError`].
pub(in crate::institution) fn open(
    institution: &Institution,
    note: LogNote,
    (output, health): (&OutputLines, &Health),
) -> Result<AuditLog, LogError> {
    let log = AuditLog::open(
        &institution.state,
        institution.agreement.epoch.federation,
        &institution.key,
        LogSizes::default(),
        Some(note),
    )?;
    for found in log.findings() {
        let event = NodeEvent::State {
            what: "audit-log".into(),
            why: found.to_string(),
        };
        output.print(SystemTime::now(), 0.0, event, &format!("warning: {found}"));
        health.warning(SystemTime::now(), found);
    }
    Ok(log)
}
