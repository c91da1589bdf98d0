//! The entries that a round may have: how many, of which form, and when they are enough (R1).

use super::{Member, Mutation};
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
        match self.check_rows(entries, self.round.participants()) {
            Err(why) if !self.config.broken(Mutation::BundleOfAnyRows) => Err(why),
            _ => Ok(()),
        }
    }

    /// Checks that entries of these authors claim no more rows than the authors declared. Entries with
    /// names are checked one by one. Which entry without a name is whose is not known: some order of
    /// the authors must fit, and it does exactly if the largest claim is at most the largest number
    /// that one of them declared, the next at most the next, and so on.
    ///
    /// # Errors
    /// [`Refusal::TooManyRows`], [`Refusal::ImpossibleRows`].
    pub(super) fn check_rows(
        &self,
        entries: &[Entry],
        authors: &[MemberIndex],
    ) -> Result<(), Refusal> {
        let roster = &self.config.epoch.roster;
        for entry in entries {
            let (weight, member) = (entry.fields.weight, entry.fields.member);
            if let (Some(got), Some(member)) = (weight, member)
                && got > roster.rows(member)
            {
                let most = roster.rows(member);
                return Err(Refusal::TooManyRows { got, most });
            }
        }
        let mut claims: Vec<_> = entries.iter().filter_map(|e| e.fields.weight).collect();
        let mut declared: Vec<_> = authors.iter().map(|by| roster.rows(*by)).collect();
        claims.sort_unstable_by(|a, b| b.cmp(a));
        declared.sort_unstable_by(|a, b| b.cmp(a));
        let mut pairs = claims.into_iter().zip(declared);
        match pairs.find(|(got, most)| got > most) {
            Some((got, most)) => Err(Refusal::ImpossibleRows { got, most }),
            None => Ok(()),
        }
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
