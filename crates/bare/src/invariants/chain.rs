//! S3: the final blocks form one chain.
//!
//! This is the agreement property. It holds because a proposal must prove that every view between
//! its parent's and its own is nullified (R1), so it cannot skip a block that is or may become
//! final (S2).

use protocol::Hash;

use super::Property;
use super::ledger::{Fact, Ledger};

/// The chain from the epoch to the newest final block.
#[derive(Default)]
pub(super) struct OneChain(Vec<Hash>);

impl Property for OneChain {
    fn name(&self) -> &'static str {
        "S3 (one chain of final blocks)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let &Fact::Final { view, block } = fact else {
            return Ok(());
        };
        let epoch = ledger.epoch.id;
        let tip = self.0.last().copied().unwrap_or(epoch);
        if self.0.contains(&block) {
            return Ok(());
        }
        let mut fresh = vec![block];
        loop {
            let at = fresh[fresh.len() - 1];
            let Some(known) = ledger.blocks.get(&at) else {
                return Err(format!(
                    "block {block} of view {view} is final, its ancestor {at} was never proposed"
                ));
            };
            if known.parent == tip {
                break;
            }
            if known.parent == epoch || self.0.contains(&known.parent) {
                return Err(format!(
                    "block {block} of view {view} is final and does not descend from {tip}, \
                     which is final too: they part at {}",
                    known.parent
                ));
            }
            fresh.push(known.parent);
        }
        self.0.extend(fresh.iter().rev());
        Ok(())
    }
}
