//! What of a journal a silo still needs to go on.

use std::collections::BTreeSet;

use protocol::{Hash, Record};

use crate::surroundings::{Adopted, Entry};

/// The entries that a restart looks at, in their order; all others are superseded by a later one.
///
/// | kept | because |
/// |---|---|
/// | every `Final` | the chain: others are told it, and it can be verified again |
/// | `Block`, `Certified`, `Vote`, `Proposed` of views above the last final block | a member never goes back to an earlier view |
/// | `Contributed` of the round under way, `Trained` of a round not adopted yet | others ended with their round |
/// | the last `keep` `Adopted`, the last `Applied` | the last says where the silo is, the others which blobs it keeps |
///
/// What stands before the loss of a journal is never looked at again. A silo that lost it, or came as
/// new, and has not acted since, needs to know that alone: it may not have found out yet whether it
/// is safe. One that has adopted the last of all `rounds` has nothing to sign any more.
pub(crate) fn needed(mut entries: Vec<Entry>, keep: usize, rounds: u64) -> Vec<Entry> {
    let began = |entry: &Entry| matches!(entry, Entry::Lost | Entry::Begun);
    if let Some(at) = entries.iter().rposition(began) {
        let since = entries.split_off(at + 1);
        let done = |entry: &Entry| matches!(entry, Entry::Adopted(last) if last.round >= rounds);
        if !since.iter().any(|entry| acts(entry) || done(entry)) {
            return entries.pop().into_iter().collect();
        }
        entries = since;
    }
    let (mut tip, mut learned, mut adopted) = (0, 0, 0);
    let mut adoptions = 0;
    for entry in &entries {
        match entry {
            Entry::Protocol(Record::Final { blocks, proof }) => {
                tip = tip.max(proof.view);
                let rounds = blocks.iter().filter_map(|block| block.learning());
                learned = rounds.fold(learned, |last, learning| last.max(learning.round));
            }
            Entry::Adopted(of) => (adopted, adoptions) = (of.round, adoptions + 1),
            _ => {}
        }
    }
    let applied = entries
        .iter()
        .rposition(|entry| matches!(entry, Entry::Protocol(Record::Applied { .. })));
    let mut passed = 0;
    let mut at = 0;
    entries.retain(|entry| {
        at += 1;
        match entry {
            Entry::Lost | Entry::Begun => false,
            Entry::Trained { round, .. } => *round > adopted,
            Entry::Adopted(_) => {
                passed += 1;
                passed + keep > adoptions
            }
            Entry::Protocol(record) => match record {
                Record::Final { .. } => true,
                Record::Block(block) => block.view > tip,
                Record::Certified(certificate) => certificate.view > tip,
                Record::Vote(message) | Record::Proposed(message) => message.view > tip,
                Record::Contributed(message) => message.round > learned,
                Record::Applied { .. } => Some(at - 1) == applied,
            },
        }
    });
    entries
}

/// Whether a silo took part when it wrote this: whoever does has found out that it is safe.
pub(crate) fn acts(entry: &Entry) -> bool {
    use Record::{Contributed, Proposed, Vote};
    matches!(
        entry,
        Entry::Protocol(Vote(_) | Proposed(_) | Contributed(_))
    )
}

/// The final blocks whose outcomes a journal says were adopted: each may be adopted once (R4). For
/// those who implement a [`Journal`](crate::Journal).
#[derive(Debug, Clone, Default)]
pub struct Adoptions(BTreeSet<[u8; 32]>);

impl Adoptions {
    /// The block that `entries`, one transaction, adopt although it was adopted before.
    pub fn again(&self, entries: &[Entry]) -> Option<Hash> {
        let mut with = Self::default();
        let mut before = Some(self);
        for entry in entries {
            match entry {
                Entry::Lost => (with, before) = (Self::default(), None),
                Entry::Adopted(Adopted { block, .. }) => {
                    let known = before.is_some_and(|before| before.0.contains(block));
                    if known || !with.0.insert(*block) {
                        return Some(Hash(*block));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Remembers what `entries` adopt. A loss begins anew.
    pub fn take(&mut self, entries: &[Entry]) {
        for entry in entries {
            match entry {
                Entry::Lost => self.0.clear(),
                Entry::Adopted(adopted) => drop(self.0.insert(adopted.block)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adopted(round: u64) -> Entry {
        Entry::Adopted(Adopted {
            round,
            block: Hash::of(&round.to_le_bytes()).0,
            outcome: [0; 32],
            coalition: 0,
            personal: [0; 32],
            blobs: Vec::new(),
        })
    }

    fn applied(round: u64) -> Entry {
        Entry::Protocol(Record::Applied { round })
    }

    fn trained(round: u64) -> Entry {
        Entry::Trained {
            round,
            blob: [1; 32],
            personal: [2; 32],
        }
    }

    #[test]
    fn the_last_word_on_everything_is_kept() {
        let rounds = |round| [trained(round), adopted(round), applied(round)];
        let mut all: Vec<_> = (1..=5).flat_map(rounds).collect();
        all.push(trained(6));
        let expected = [adopted(4), adopted(5), applied(5), trained(6)];
        assert_eq!(needed(all.clone(), 2, 9), expected);
        // It stays what it is.
        assert_eq!(needed(expected.to_vec(), 2, 9), expected);
        // Nothing before a loss matters, and nothing after it until the silo acts.
        for began in [Entry::Lost, Entry::Begun] {
            let mut all = all.clone();
            all.push(began.clone());
            all.extend(rounds(1));
            assert_eq!(needed(all.clone(), 2, 9), [began]);
            // Unless there is nothing left to do: then it keeps what it has.
            assert_eq!(needed(all, 2, 1), [adopted(1), applied(1)]);
        }
    }

    #[test]
    fn a_block_is_adopted_once() {
        let block = |round: u64| Some(Hash::of(&round.to_le_bytes()));
        let mut adoptions = Adoptions::default();
        assert_eq!(adoptions.again(&[adopted(1), applied(1)]), None);
        assert_eq!(adoptions.again(&[adopted(1), adopted(1)]), block(1));
        adoptions.take(&[adopted(1), applied(1)]);
        assert_eq!(adoptions.again(&[adopted(2), adopted(1)]), block(1));
        assert_eq!(adoptions.again(&[adopted(2)]), None);
        // After a loss everything is adopted again.
        let lost = [Entry::Lost, adopted(1)];
        assert_eq!(adoptions.again(&lost), None);
        adoptions.take(&lost);
        assert_eq!(adoptions.again(&[adopted(1)]), block(1));
    }
}
