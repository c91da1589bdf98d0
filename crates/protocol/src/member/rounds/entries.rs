//! The entries that a round may have: how many, of which form, and when they are enough (R1).

use crate::member::Config;
use crate::member::consensus::links::Presence;
use crate::member::rounds::absences::Absences;
use crate::member::rounds::round::Round;
use crate::message::Entry;
use crate::refusal::Refusal;
use crate::roster::{MemberIndex, Roster};
use crate::time::Time;

impl Round {
    /// Checks the number, the order and the fields of a round's entries.
    ///
    /// # Errors
    /// The first rule that they break. None before the plan is known.
    pub(in crate::member) fn check_entries(
        &self,
        config: &Config,
        entries: &[Entry],
    ) -> Result<(), Refusal> {
        let Some(plan) = self.plan() else {
            return Ok(());
        };
        let (listed, participants) = (entries.len(), self.participants().len());
        let fewest = self.fewest(config);
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
        check_rows(&config.epoch.roster, entries, self.participants())
    }

    /// The fewest entries that the round may have.
    pub(in crate::member) fn fewest(&self, config: &Config) -> usize {
        config.epoch.fewest(self.participants().len())
    }
}

/// Checks that entries of these authors claim no more rows than the authors declared. Entries with
/// names are checked one by one. Which entry without a name is whose is not known: some order of
/// the authors must fit, and it does exactly if the largest claim is at most the largest number
/// that one of them declared, the next at most the next, and so on.
///
/// # Errors
/// [`Refusal::TooManyRows`], [`Refusal::ImpossibleRows`].
pub(in crate::member) fn check_rows(
    roster: &Roster,
    entries: &[Entry],
    authors: &[MemberIndex],
) -> Result<(), Refusal> {
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

/// Whom a round waits for, and until when its entries are enough. Borrows what that depends on.
#[derive(Clone, Copy)]
pub(in crate::member) struct EntriesAwaited<'a> {
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) now: Time,
    pub(in crate::member) round: &'a Round,
    pub(in crate::member) presence: &'a Presence,
    pub(in crate::member) absences: &'a Absences,
}

impl EntriesAwaited<'_> {
    /// Returns true once the straggler timeout has passed: slow participants are not waited for any more.
    pub(in crate::member) fn patience_over(&self) -> bool {
        self.now >= self.round.started + self.config.epoch.patience()
    }

    /// Returns true if nobody waits for a member: it stated that it contributes nothing to this round.
    pub(in crate::member) fn sits_out(&self, member: MemberIndex) -> bool {
        self.round.inbox.has_nothing_of(member)
    }

    /// Returns true if a lead waits for a member at most for D: it sits this round out; or the last round that waited
    /// for it became final without it, and either it cannot be reached or this round is not its next chance.
    pub(in crate::member) fn marked_absent(&self, member: MemberIndex) -> bool {
        let reachable = self.presence.reaches(member);
        self.sits_out(member) || self.absences.excuse(member, reachable, self.round.number)
    }

    /// Returns true if the entries of these members, ascending, are enough (R1): at least the fewest, and few others
    /// that have to be waited for.
    pub(in crate::member) fn enough(&self, authors: &[MemberIndex]) -> bool {
        let k = authors.len();
        if k == self.round.participants().len() {
            return true;
        }
        if k < self.round.fewest(self.config) {
            return false;
        }
        // If the plan names fewer members than the minimum, only members that are marked absent may be missing.
        let roster = &self.config.epoch.roster;
        let all = self.round.participants().len()
            >= usize::from(self.config.epoch.protocol.min_contributions);
        let slack = if all { roster.faulty() } else { 0 };
        let waited_for = |member: &&MemberIndex| {
            authors.binary_search(member).is_err() && !self.marked_absent(**member)
        };
        let missing = self.round.participants().iter().filter(waited_for).count();
        k > 0 && missing <= slack || self.patience_over()
    }
}
