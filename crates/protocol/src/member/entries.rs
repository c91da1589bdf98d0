//! Which entries a round may have, and when they are enough.

use super::Member;
use crate::message::Entry;
use crate::refusal::Refusal;
use crate::roster::MemberIndex;

impl Member {
    /// Whether entries can be those of this round: in order, not too many, of the agreed size.
    pub(super) fn plausible(&self, entries: &[Entry]) -> Result<(), Refusal> {
        let Some(plan) = &self.round.plan else {
            return Ok(());
        };
        let (listed, participants) = (entries.len(), self.participants());
        if listed > participants || listed < self.fewest() {
            return Err(Refusal::EntryCount {
                listed,
                participants,
            });
        }
        if !entries.windows(2).all(|pair| pair[0].id < pair[1].id) {
            return Err(Refusal::EntryOrder);
        }
        let needed = plan.blob_size;
        let mut sizes = entries.iter().map(|entry| entry.fields.size);
        if let Some(got) = sizes.find(|&size| size != needed) {
            return Err(Refusal::ModelSize { got, needed });
        }
        let weighed = |entry: &Entry| entry.fields.weight.is_some() == plan.weights;
        if !entries.iter().all(weighed) {
            return Err(Refusal::EntryFields);
        }
        Ok(())
    }

    /// How many members the plan names.
    pub(super) fn participants(&self) -> usize {
        self.round.participants.len()
    }

    /// Fewest entries that a round may have. The charter says how many of all may be missing; of
    /// those that a plan names, as many. So a round of a plan that names few may have none, and
    /// then leaves the models as they are.
    pub(super) fn fewest(&self) -> usize {
        let missing =
            self.config.epoch.roster.len() - usize::from(self.config.epoch.charter.minimum);
        self.participants().saturating_sub(missing)
    }

    /// Whether a round may be closed with the entries of these members, ascending: enough of them,
    /// and nobody is missing that has to be waited for (R1).
    pub(super) fn enough(&self, authors: &[MemberIndex]) -> bool {
        let k = authors.len();
        if k == self.participants() {
            return true;
        }
        if k < self.fewest() {
            return false;
        }
        // Of few, none may be missing without a reason.
        let roster = &self.config.epoch.roster;
        let all = self.participants() >= usize::from(self.config.epoch.charter.minimum);
        let slack = if all { roster.faulty() } else { 0 };
        let waited_for = |member: &&MemberIndex| {
            authors.binary_search(member).is_err() && !self.excused(**member)
        };
        let missing = self.round.participants.iter().filter(waited_for).count();
        k > 0 && missing <= slack || self.patience_over()
    }
}
