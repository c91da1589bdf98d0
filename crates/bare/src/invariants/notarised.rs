//! S1: at most one block of a view is notarised.
//!
//! Two quorums share an honest member, and an honest member votes Notarize once per view. Two
//! notarised blocks would let two halves of the federation build on different rounds.

use std::collections::BTreeMap;

use protocol::Hash;

use super::Property;
use super::ledger::{Fact, Ledger};

/// The notarised block of every view.
#[derive(Default)]
pub(super) struct OneNotarised(BTreeMap<u64, Hash>);

impl Property for OneNotarised {
    fn name(&self) -> &'static str {
        "S1 (one notarised block per view)"
    }

    fn check(&mut self, fact: &Fact<'_>, _: &Ledger) -> Result<(), String> {
        let &Fact::Notarised { view, block } = fact else {
            return Ok(());
        };
        let first = *self.0.entry(view).or_insert(block);
        if first == block {
            Ok(())
        } else {
            Err(format!(
                "view {view} has two notarised blocks, {first} and {block}"
            ))
        }
    }
}
