//! Governance: changes of the agreement, recovery without members that are gone for good, and the end of an
//! epoch.
//!
//! | file | holds |
//! |---|---|
//! | `amendments` | `Amending`: changes of the agreement |
//! | `approvals` | what members say of amendments: the last word of each counts |
//! | `ending` | the end of the epoch |
//! | `recovery` | `Recovering`: going on without members that are gone for good |
//! | `recoveries` | members that have signed and confirmed a recovery, and when one may sign another |

pub(in crate::member) mod amendments;
pub(in crate::member) mod approvals;
pub(in crate::member) mod ending;
pub(in crate::member) mod recoveries;
pub(in crate::member) mod recovery;

use amendments::Amendments;
use recoveries::Recoveries;

/// State of changes of the agreement and of recoveries.
pub(in crate::member) struct Governance {
    pub(in crate::member) amendments: Amendments,
    pub(in crate::member) recoveries: Recoveries,
    /// The institution has not signed the agreement in force: this member contributes and scores nothing.
    pub(in crate::member) paused: bool,
}

impl Governance {
    /// The beginning of an epoch, in which this member may contribute or not.
    pub(in crate::member) fn new(paused: bool) -> Self {
        Self {
            amendments: Amendments::default(),
            recoveries: Recoveries::default(),
            paused,
        }
    }
}
