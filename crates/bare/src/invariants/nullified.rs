//! S2: no view is both nullified and finalised.
//!
//! A nullification permits later leads to build without the view's block. If that block could be
//! final too, a later lead would fork the chain with valid signatures only. It holds because no
//! honest member signs Finalize after Nullify, or Nullify after Finalize, of one view.

use std::collections::BTreeMap;

use protocol::Hash;

use super::Property;
use super::ledger::{Fact, Ledger};

/// The final block of every view that has one.
#[derive(Default)]
pub(super) struct NullifiedOrFinal(BTreeMap<u64, Hash>);

impl Property for NullifiedOrFinal {
    fn name(&self) -> &'static str {
        "S2 (no view both nullified and finalised)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let view = match *fact {
            Fact::Final { view, block } => {
                self.0.insert(view, block);
                view
            }
            Fact::Nullified { view } => view,
            _ => return Ok(()),
        };
        match self.0.get(&view) {
            Some(block) if ledger.is_nullified(view) => Err(format!(
                "view {view} is nullified, and its block {block} is final"
            )),
            _ => Ok(()),
        }
    }
}
