//! Reading rows one by one, for sums with noise.

use crate::data::DataError;

/// Influence of rows on each other when they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// The files as a whole have to fit; how their cells are written is told by many of them.
    Whole,
    /// Every row by itself. One that cannot be read counts as nothing, and a silo may have no rows.
    RowByRow,
}

/// Most rows of a file that cannot be read and are named one by one.
const NAMED: usize = 5;

/// The rows of a file that cannot be read and count as nothing.
#[derive(Default)]
pub(super) struct UnreadableRows {
    /// Fault of the first of them.
    named: Vec<String>,
    more: usize,
}

impl UnreadableRows {
    pub(super) fn add(&mut self, error: &DataError) {
        match self.named.len() {
            NAMED.. => self.more += 1,
            _ => self.named.push(format!(
                "a row cannot be read and counts as nothing: {error}"
            )),
        }
    }

    /// In sentences without a full stop.
    pub(super) fn lines(self) -> impl Iterator<Item = String> {
        let more = match self.more {
            0 => None,
            1 => Some("1 more row cannot be read and counts as nothing".to_owned()),
            more => Some(format!(
                "{more} more rows cannot be read and count as nothing"
            )),
        };
        self.named.into_iter().chain(more)
    }
}
