//! The entries that a round may have: how many, of which form, and when they are enough (R1).

use super::Member;
use crate::message::Entry;
use crate::refusal::Refusal;
use crate::roster::MemberIndex;

impl Member {
    /// Checks the number, the order and the fields of a round's entries.
    ///
    /// # Errors
    /// The first rule that they break. None before the plan is known.
    pub(super) fn check_entries(&self, entries: &[Entry]) -> Result<(), Refusal> {
        let Some(plan) = self.round.plan() else {
            return Ok(());
        };
        let (listed, participants) = (entries.len(), self.participants());
        let fewest = self.fewest();
        if listed > participants || listed < fewest {
            return Err(Refusal::EntryCount {
                listed,
                fewest,
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
        self.round.participants().len()
    }

    /// The fewest entries that the round may have. Of the members that the plan names, as many may
    /// be missing as the charter's `min_contributions` allows of all. So a round of a plan that names few
    /// members may have none, and then leaves the models as they are.
    pub(super) fn fewest(&self) -> usize {
        let missing = self.config.epoch.roster.len()
            - usize::from(self.config.epoch.charter.min_contributions);
        self.participants().saturating_sub(missing)
    }

    /// Whether the entries of these members, ascending, are enough (R1): at least the fewest, and
    /// few others that have to be waited for.
    pub(super) fn enough(&self, authors: &[MemberIndex]) -> bool {
        let k = authors.len();
        if k == self.participants() {
            return true;
        }
        if k < self.fewest() {
            return false;
        }
        // If the plan names fewer members than the minimum, only excused members may be missing.
        let roster = &self.config.epoch.roster;
        let all = self.participants() >= usize::from(self.config.epoch.charter.min_contributions);
        let slack = if all { roster.faulty() } else { 0 };
        let waited_for = |member: &&MemberIndex| {
            authors.binary_search(member).is_err() && !self.excused(**member)
        };
        let missing = self.round.participants().iter().filter(waited_for).count();
        k > 0 && missing <= slack || self.patience_over()
    }
}
