//! S7: evidence never names an honest member.
//!
//! People act on evidence. It consists of two signed messages of which the rules allow only one, so
//! an honest member cannot have signed both (S4).

use super::Property;
use super::ledger::{Fact, Ledger};

/// Checks every piece of evidence that an honest member reports.
pub(super) struct TrueEvidence;

impl Property for TrueEvidence {
    fn name(&self) -> &'static str {
        "S7 (evidence never names an honest member)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Accused(evidence) if ledger.honest(evidence.member) => Err(format!(
                "the honest member {} is accused of {}",
                ledger.name(evidence.member),
                evidence.charge()
            )),
            _ => Ok(()),
        }
    }
}
