//! P1: of an epoch and round at most one list is unmasked, and only once its block is final.
//!
//! Two lists that differ by one member would show that member's vector. It holds because honest members
//! give their shares of masks away only for a block that is final (M5), and at most one block of a round
//! is (S3).

use std::collections::BTreeMap;

use protocol::Hash;
use protocol::message::{Block, Body};

use super::Property;
use super::ledger::{Fact, Ledger};

/// The list of every round for which an honest member gave shares away.
#[derive(Default)]
pub(super) struct OneListUnmasked(BTreeMap<u64, Hash>);

impl Property for OneListUnmasked {
    fn name(&self) -> &'static str {
        "P1 (one list of a round is unmasked)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let Fact::Signed(message) = fact else {
            return Ok(());
        };
        let Body::Unmasking(unmasking) = &message.body else {
            return Ok(());
        };
        if !ledger.honest(message.sender) {
            return Ok(());
        }
        let (round, block, name) = (message.round, unmasking.block, ledger.name(message.sender));
        if !ledger.has_settled(&block) {
            return Err(format!(
                "{name} gave shares of round {round} away before it was final"
            ));
        }
        let Some(masked) = ledger.blocks.get(&block).and_then(Block::masked) else {
            return Err(format!(
                "{name} gave shares away for {block}, which is no secure-aggregation round"
            ));
        };
        if *self.0.entry(round).or_insert(masked.list) == masked.list {
            Ok(())
        } else {
            Err(format!(
                "{name} gave shares of a second list of round {round} away"
            ))
        }
    }
}
