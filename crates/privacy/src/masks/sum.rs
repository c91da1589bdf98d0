//! Authors of a sum: those whose masked vectors are added.

use super::ready::ReadyList;

/// Reason for which members do not make a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SumError {
    /// Fewer than two authors: the sum would be one member's update.
    #[error("a sum over {0} authors would show one member's update: at least two are needed")]
    Alone(usize),
    /// Not ascending, or one author twice.
    #[error("position {0} does not come after the one before it: the authors must ascend")]
    Order(u16),
    /// An author that is not on the list.
    #[error("position {0} is an author of the sum and not on the list")]
    Author(u16),
}

/// The authors of one sum, ascending. In a round there may be several sums without common authors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SumAuthors(Vec<u16>);

impl SumAuthors {
    /// A sum over the members at these positions of the roster.
    ///
    /// # Errors
    ///
    /// If there are fewer than two, they do not ascend, or one is not on the list.
    pub fn new(ready: &ReadyList, authors: &[u16]) -> Result<Self, SumError> {
        if authors.len() < 2 {
            return Err(SumError::Alone(authors.len()));
        }
        if let Some(pair) = authors.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(SumError::Order(pair[1]));
        }
        let absent = authors
            .iter()
            .find(|author| ready.index(**author).is_none());
        if let Some(absent) = absent {
            return Err(SumError::Author(*absent));
        }
        Ok(Self(authors.to_vec()))
    }

    /// The authors, ascending.
    pub fn authors(&self) -> &[u16] {
        &self.0
    }
}
