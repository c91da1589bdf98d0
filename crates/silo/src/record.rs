//! Records of a silo's journal, and the check that no block is adopted twice.

use std::collections::BTreeMap;

use protocol::Hash;
use serde::{Deserialize, Serialize};

/// One record of a silo's journal. Its bytes on disk are pinned by `crates/silo/golden/records.hex`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum JournalRecord {
    /// A record of the agreement: a vote, a certificate, a final block.
    Protocol(protocol::Record),
    /// The silo's own state after the last final round, from which it continues.
    Adopted(Adopted),
    /// The journal began anew after the one before it was lost.
    Lost,
    /// The result of a training, until its round is final.
    Trained {
        /// The round.
        round: u64,
        /// Hash of the contributed model; kept as a blob.
        blob: [u8; 32],
        /// Hash of the personal state after the training; kept as a blob.
        personal: [u8; 32],
    },
    /// The silo is new. It may take part only after other members have answered that they know
    /// nothing signed with its key.
    Begun,
    /// Secret state of the silo for a secure-aggregation round, until that round is adopted. Behind the
    /// adoption of its round: the silo's sum was void, and its secret stays until the agreement changes.
    Prepared {
        /// The round.
        round: u64,
        /// Hash of the trained model with the secret; kept as a blob.
        blob: [u8; 32],
        /// Hash of the personal state after the training; kept as a blob.
        personal: [u8; 32],
    },
}

/// A silo's own state after a final round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adopted {
    /// The round.
    pub round: u64,
    /// Hash of the final block that agreed on the outcome.
    pub block: [u8; 32],
    /// Hash of the outcome; its document and models are kept as blobs.
    pub outcome: [u8; 32],
    /// The silo's coalition in it.
    pub coalition: u32,
    /// Hash of the silo's personal state; kept as a blob.
    pub personal: [u8; 32],
    /// Every blob of the round: entries, outcome, models; ascending.
    pub blobs: Vec<[u8; 32]>,
}

/// The final blocks whose outcomes are adopted in a journal. Each may be adopted once (R4), which
/// every implementation of [`Journal`](crate::Journal) has to refuse a second time.
#[derive(Debug, Clone, Default)]
pub struct Adoptions {
    /// The position in the journal at which each is adopted.
    blocks: BTreeMap<[u8; 32], u64>,
    /// Number of records of the journal.
    records: u64,
}

impl Adoptions {
    /// The first block that `records`, one transaction, would adopt a second time.
    pub fn again(&self, records: &[JournalRecord]) -> Option<Hash> {
        let mut with = Self::default();
        let mut before = Some(self);
        for record in records {
            match record {
                JournalRecord::Lost => before = None,
                JournalRecord::Adopted(Adopted { block, .. }) => {
                    let known = before.is_some_and(|before| before.blocks.contains_key(block));
                    if known || with.blocks.contains_key(block) {
                        return Some(Hash(*block));
                    }
                }
                _ => {}
            }
            with.take(std::slice::from_ref(record));
        }
        None
    }

    /// Adds the blocks that `records` adopt. [`JournalRecord::Lost`] removes all blocks before it.
    pub fn take(&mut self, records: &[JournalRecord]) {
        for record in records {
            match record {
                JournalRecord::Lost => self.blocks.clear(),
                JournalRecord::Adopted(adopted) => {
                    self.blocks.insert(adopted.block, self.records);
                }
                _ => {}
            }
            self.records += 1;
        }
    }

    /// Without the records from position `from` on.
    pub fn before(&self, from: u64) -> Self {
        let early = self.blocks.iter().filter(|(_, at)| **at < from);
        Self {
            blocks: early.map(|(block, at)| (*block, *at)).collect(),
            records: from.min(self.records),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{adopted, applied};

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
        let lost = [JournalRecord::Lost, adopted(1)];
        assert_eq!(adoptions.again(&lost), None);
        adoptions.take(&lost);
        assert_eq!(adoptions.again(&[adopted(1)]), block(1));
        // A block may be adopted again once its adoption is removed: it is the fifth record.
        assert_eq!(adoptions.before(4).again(&[adopted(1)]), block(1));
        assert_eq!(adoptions.before(3).again(&[adopted(1)]), None);
    }
}
