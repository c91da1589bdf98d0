//! Whether ε holds for how institutions hold out rows.

use protocol::parameters::{RoundMode, Unit};
use task::TaskConfig;

use crate::agreement::Agreement;
use crate::privacy;

impl Agreement {
    /// Why the bound of differentially private rounds does not hold for how institutions hold out rows under this agreement:
    /// the path of a key, and what to write. An agreement that was made when this was not known stays
    /// readable; nobody makes, signs or changes to such a one any more.
    pub fn split_fault(&self) -> Option<(&'static str, String)> {
        let TaskConfig::Table(task) = &self.task else {
            return None;
        };
        match self.epoch.protocol.privacy.mode() {
            RoundMode::Noised(_, noise) => {
                privacy::split_fault(task, task.split.is_by_unit(), noise.unit == Unit::Row)
            }
            RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => None,
        }
    }
}
