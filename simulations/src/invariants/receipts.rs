//! S8: no honest member votes Notarize for a block that lacks its own entry although it holds the
//! lead's Receipt of that view for it.
//!
//! With a Receipt the lead promises not to drop a contribution silently. It names the view, so that
//! a lead is not held to the promise of another. Receipts are kept in memory only, so a crash loses
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::message::Body;
use protocol::{Hash, MemberIndex, Time};

use super::Property;
use super::ledger::{Fact, Ledger};

/// The round of an entry, its id, and when its Receipt arrived.
type Held = (u64, Hash, Time);

/// Receipts that members hold.
pub(super) struct ReceiptsKept {
    reading: Duration,
    held: BTreeMap<(MemberIndex, u64), Vec<Held>>,
    /// Votes are sent repeatedly; the Receipts held at the first vote count.
    voted: BTreeSet<(MemberIndex, u64)>,
}

impl ReceiptsKept {
    /// A Receipt counts as held once `reading` has passed since it arrived.
    pub(super) fn new(reading: Duration) -> Self {
        Self {
            reading,
            held: BTreeMap::new(),
            voted: BTreeSet::new(),
        }
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
                let right = ledger.epoch.lead(view) == lead;
                if let (true, Some(&(author, round))) = (right, ledger.authors.get(&entry))
                    && author == member
                {
                    self.held
                        .entry((member, view))
                        .or_default()
                        .push((round, entry, ledger.now));
                }
            }
            Fact::Signed(message) if ledger.honest(message.sender) => {
                let Body::Notarize { block, .. } = &message.body else {
                    return Ok(());
                };
                if !self.voted.insert((message.sender, message.view)) {
                    return Ok(());
                }
                let learning = ledger.blocks.get(block).and_then(|block| block.learning());
                let held = self.held.get(&(message.sender, message.view));
                let (Some(learning), Some(held)) = (learning, held) else {
                    return Ok(());
                };
                let sheet = ledger.sheets.get(&learning.sheet);
                // A view may begin in one round and end in the next.
                for (_, entry, since) in held.iter().filter(|(of, ..)| *of == learning.round) {
                    let read = *since + self.reading <= ledger.now;
                    let lacks = sheet.is_none_or(|(sheet, _)| sheet.position(entry).is_none());
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
