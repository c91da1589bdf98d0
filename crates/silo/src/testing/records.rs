//! Journal records of a round, for tests.

use protocol::Hash;

use crate::JournalRecord;
use crate::record::Adopted;

/// The adoption of the outcome of this round.
pub(crate) fn adopted(round: u64) -> JournalRecord {
    JournalRecord::Adopted(Adopted {
        round,
        block: Hash::of(&round.to_le_bytes()).0,
        outcome: [0; 32],
        coalition: 0,
        personal: [0; 32],
        blobs: Vec::new(),
    })
}

/// Returns what the protocol notes of this round after it was applied.
pub(crate) fn applied(round: u64) -> JournalRecord {
    JournalRecord::Protocol(protocol::Record::Applied { round })
}
