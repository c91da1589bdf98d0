//! S7: evidence never names an honest member.
//!
//! Evidence is what people act on. It is two signed messages that the rules never let stand beside
//! each other, so an honest member cannot have signed both (S4).

use super::Property;
use super::ledger::{Fact, Ledger};

/// Looks at every accusation of an honest member.
pub(super) struct OnlyTheGuilty;

impl Property for OnlyTheGuilty {
    fn name(&self) -> &'static str {
        "S7 (evidence never names an honest member)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Accused(evidence) if ledger.honest(evidence.member) => Err(format!(
                "{}, honest, is accused of {}",
                ledger.name(evidence.member),
                evidence.charge()
            )),
            _ => Ok(()),
        }
    }
}
