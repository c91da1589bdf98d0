//! S9: the parent of a notarised learning block has q Finalize votes.
//!
//! A round trains from the state of its parent. If that could still be replaced, a whole round of
//! training at every silo would be wasted, and two rounds could have the same number.

use super::Property;
use super::ledger::{Fact, Ledger};

/// Checks the parent of every notarised learning block.
pub(super) struct FinalParents;

impl Property for FinalParents {
    fn name(&self) -> &'static str {
        "S9 (rounds start from final blocks)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let Fact::Notarised { view, block } = fact else {
            return Ok(());
        };
        let Some(known) = ledger.blocks.get(block) else {
            return Err(format!(
                "the notarised block of view {view} was never proposed"
            ));
        };
        let Some(learning) = known.round() else {
            return Ok(());
        };
        if ledger.is_final(&known.parent) {
            Ok(())
        } else {
            Err(format!(
                "round {} was notarised in view {view} on block {}, which is not final",
                learning.round, known.parent
            ))
        }
    }
}
