//! P3: no honest member masks two vectors for one list.
//!
//! Two vectors under one mask would show their difference. It holds because vector and secret are
//! durable before the keys are sent, and everything else follows from them (M1).

use std::collections::BTreeMap;

use protocol::message::{Body, MaskedVector};
use protocol::{Hash, MemberIndex};

use super::Property;
use super::ledger::{Fact, Ledger};

/// The vector of each member for each list.
#[derive(Default)]
pub(super) struct OneVector(BTreeMap<(MemberIndex, Hash), MaskedVector>);

impl Property for OneVector {
    fn name(&self) -> &'static str {
        "P3 (one vector for a list)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let Fact::Signed(message) = fact else {
            return Ok(());
        };
        let Body::MaskedVector(vector) = message.body else {
            return Ok(());
        };
        let by = message.sender;
        let first = *self.0.entry((by, vector.list)).or_insert(vector);
        if first == vector || !ledger.honest(by) {
            Ok(())
        } else {
            Err(format!(
                "{} masked two vectors for one list",
                ledger.name(by)
            ))
        }
    }
}
