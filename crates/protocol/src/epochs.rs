//! The epochs of a federation so far, as a member's journal shows them.

use std::sync::Arc;

use bytes::Bytes;

use crate::change::ChangeError;
use crate::effects::Record;
use crate::envelope;
use crate::hash::Hash;
use crate::message::Passage;
use crate::parameters::Epoch;

/// The epochs of a federation so far, from the records of a journal.
#[derive(Debug, Clone)]
pub struct Epochs {
    /// The epochs that are over, oldest first, each with the proof of its end.
    pub former: Vec<(Arc<Epoch>, Passage)>,
    /// The epoch in force.
    pub now: Arc<Epoch>,
    /// The records that a member of this epoch restarts with.
    pub records: Vec<Record>,
}

impl Epochs {
    /// Follows the final blocks of a journal, whose records are trusted.
    ///
    /// # Errors
    /// [`ChangeError`]: a change that no member would have voted for.
    pub fn replay(
        first: Arc<Epoch>,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<Self, ChangeError> {
        let mut epochs = Self {
            former: Vec::new(),
            now: first,
            records: Vec::new(),
        };
        for record in records {
            let passage = match &record {
                Record::Final { blocks, proof } => Passage::among(blocks, proof),
                _ => None,
            };
            match passage {
                Some(passage) => epochs.pass(passage)?,
                None => epochs.records.push(record),
            }
        }
        Ok(epochs)
    }

    /// The epoch in force is over. Of its records the last adoption still counts, and the only sum that the
    /// member answers.
    fn pass(&mut self, passage: Passage) -> Result<(), ChangeError> {
        let first = passage.blocks.first().ok_or(ChangeError::NoChange)?;
        let next = Arc::new(self.now.next(first)?);
        let over = std::mem::replace(&mut self.now, next);
        self.former.push((over, passage));
        let records = std::mem::take(&mut self.records);
        self.records = lasting(records);
        Ok(())
    }

    /// What a member of a former epoch is answered: for each, its id and the sealed
    /// [`Passage`] to the next.
    pub fn answers(&self) -> Vec<(Hash, Bytes)> {
        let former = self.former.iter();
        former
            .map(|(epoch, passage)| (epoch.id, envelope::sign_passage(epoch, passage)))
            .collect()
    }
}

/// The records among these that count in later epochs, too: the last adoption, and the only sum that
/// the member answers.
fn lasting(mut records: Vec<Record>) -> Vec<Record> {
    let last = records.iter().rposition(Record::is_adoption);
    let adoption = last.map(|at| records.swap_remove(at));
    let circle = records
        .into_iter()
        .rfind(|record| matches!(record, Record::Circle(_)));
    adoption.into_iter().chain(circle).collect()
}

/// The records of a journal that count in the epoch that it has reached: those after the end of the
/// one before, and of those before what outlives an epoch.
pub fn of_present(mut records: Vec<Record>) -> Vec<Record> {
    let Some(end) = records.iter().rposition(Record::ends_epoch) else {
        return records;
    };
    let present = records.split_off(end + 1);
    lasting(records).into_iter().chain(present).collect()
}
