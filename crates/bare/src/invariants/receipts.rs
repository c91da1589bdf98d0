//! S8: no honest member votes Notarize for a block that lacks its own entry although it holds the
//! lead's Receipt of that view for it.
//!
//! With a Receipt the lead promises not to drop a contribution silently. It names the view, so that
//! a lead is not held to the promise of another. Receipts are kept in memory only, so a crash loses
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::message::Body;
use protocol::rotation::Turns;
use protocol::{Hash, MemberIndex, Time};

use super::Property;
use super::ledger::{Fact, Ledger};

/// The lead that gave a Receipt, the round of the entry, its id, and when the Receipt arrived.
type HeldReceipt = (MemberIndex, u64, Hash, Time);

/// Receipts that members hold.
pub(super) struct ReceiptsKept {
    reading: Duration,
    held: BTreeMap<(MemberIndex, u64), Vec<HeldReceipt>>,
    /// Votes are sent repeatedly; the Receipts held at the first vote count.
    voted: BTreeSet<(MemberIndex, u64)>,
    /// Who leads after each block that a learning block stood on.
    turns: BTreeMap<Hash, Turns>,
}

impl ReceiptsKept {
    /// A Receipt counts as held once `reading` has passed since it arrived.
    pub(super) fn new(reading: Duration) -> Self {
        Self {
            reading,
            held: BTreeMap::new(),
            voted: BTreeSet::new(),
            turns: BTreeMap::new(),
        }
    }

    /// Returns who leads after `block`, which is final or the epoch.
    fn turns(&mut self, block: Hash, ledger: &Ledger) -> Turns {
        let (mut at, mut path) = (block, Vec::new());
        let mut turns = loop {
            if let Some(known) = self.turns.get(&at) {
                break known.clone();
            }
            let Some(block) = ledger.blocks.get(&at) else {
                break ledger.epoch.turns();
            };
            path.push(block);
            at = block.parent;
        };
        for block in path.into_iter().rev() {
            if let Some(of) = block.round() {
                turns.advance(&ledger.epoch, block.view, &of.members());
            }
        }
        self.turns.insert(block, turns.clone());
        turns
    }
}

impl Property for ReceiptsKept {
    fn name(&self) -> &'static str {
        "S8 (no vote for a block without one's receipted entry)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match *fact {
            Fact::Crashed { member } => self.held.retain(|(of, _), _| *of != member),
            Fact::Receipted {
                member,
                lead,
                view,
                entry,
            } => {
                if let Some(&(author, round)) = ledger.authors.get(&entry)
                    && author == member
                {
                    let held = self.held.entry((member, view)).or_default();
                    held.push((lead, round, entry, ledger.now));
                }
            }
            Fact::Signed(message) if ledger.honest(message.sender) => {
                let Body::Notarize { block, .. } = &message.body else {
                    return Ok(());
                };
                if !self.voted.insert((message.sender, message.view)) {
                    return Ok(());
                }
                let held = self.held.get(&(message.sender, message.view)).cloned();
                let (Some(block), Some(held)) = (ledger.blocks.get(block), held) else {
                    return Ok(());
                };
                let Some(learning) = block.round() else {
                    return Ok(());
                };
                let lead = if ledger.epoch.protocol.rotation.follows_rounds() {
                    self.turns(block.parent, ledger)
                        .lead(&ledger.epoch, block.view)
                } else {
                    ledger.epoch.lead(block.view)
                };
                let manifest = ledger.manifests.get(&learning.manifest);
                // A view may begin in one round and end in the next.
                let of = |held: &&HeldReceipt| (held.0, held.1) == (lead, learning.round);
                for (_, _, entry, since) in held.iter().filter(of) {
                    let read = *since + self.reading <= ledger.now;
                    let lacks = match block.masked() {
                        Some(masked) => !masked.ready.contains(&message.sender),
                        None => {
                            manifest.is_none_or(|(manifest, _)| manifest.position(entry).is_none())
                        }
                    };
                    if read && lacks {
                        return Err(format!(
                            "{} voted in view {} for a block without its entry {entry}, for which \
                             it holds a Receipt",
                            ledger.name(message.sender),
                            message.view
                        ));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
