//! A journal that is trimmed while the silo runs.
//!
//! Most records are superseded soon: a vote when a later block is final, an adoption once its round is
//! not kept any more. After a commit that supersedes others, once the end of the journal has doubled, one
//! more transaction removes them. It rewrites the end only: the final blocks in front of it, which stay
//! for ever, are not touched. So its work depends on the rounds that are kept, and not on the age of
//! the federation.

use crate::environment::Journal;
use crate::error::StoreError;
use crate::needed::{current, is_final, retain_current};
use crate::record::JournalRecord;

/// Records by which the end may grow besides doubling.
pub(crate) const ROOM: usize = 64;

/// A journal, and what of it may be superseded.
pub(crate) struct TrimmedJournal {
    journal: Box<dyn Journal>,
    /// Rounds whose adoptions are kept.
    keep: usize,
    /// Number of records at the front that stay.
    settled: u64,
    /// The records after them, as they stand in the journal.
    end: Vec<JournalRecord>,
    /// Length of the end from which on it is trimmed.
    due: usize,
}

impl TrimmedJournal {
    /// A journal that holds `records`.
    pub(crate) fn new(journal: Box<dyn Journal>, records: Vec<JournalRecord>, keep: usize) -> Self {
        let mut trimmed = Self {
            journal,
            keep,
            settled: 0,
            end: records,
            due: 0,
        };
        trimmed.settle();
        trimmed
    }

    /// Makes records durable, all or none; then removes superseded ones, if there are many.
    ///
    /// # Errors
    /// [`StoreError`]: the silo must stop.
    pub(crate) fn commit(&mut self, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        self.journal.commit(records.clone())?;
        let supersedes = |record: &JournalRecord| {
            is_final(record) || matches!(record, JournalRecord::Adopted(_))
        };
        let supersedes = records.iter().any(supersedes);
        self.end.extend(records);
        if supersedes && self.end.len() >= self.due {
            self.trim()
        } else {
            Ok(())
        }
    }

    /// Removes the superseded records.
    fn trim(&mut self) -> Result<(), StoreError> {
        let current = current(&self.end, self.keep);
        let same = current.iter().take_while(|current| **current).count();
        if same < self.end.len() {
            retain_current(&mut self.end, current);
            let changed = self.end[same..].to_vec();
            self.journal.replace(self.settled + same as u64, changed)?;
        }
        self.settle();
        Ok(())
    }

    /// Passes over the final blocks at the front of the end.
    fn settle(&mut self) {
        let staying = self
            .end
            .iter()
            .take_while(|record| is_final(record))
            .count();
        self.end.drain(..staying);
        self.settled += staying as u64;
        self.due = 2 * self.end.len() + ROOM;
    }
}
