//! The rounds to which an institution contributed, as its journal shows them.

use std::collections::{BTreeMap, BTreeSet};

use ledger::Cost;
use protocol::message::Block;
use protocol::{Epoch, Epochs, Hash, MemberIndex, PublicKey, Record};
use silo::JournalRecord;

/// The number of an epoch, and a round that was done in it. A round that is done again has another epoch.
pub(super) type EpochRound = (u64, u64);

/// The rounds to which an institution contributed in a federation, under all agreements so far.
///
/// What a silo prepared for a round counts, whether its sum was opened or not: so does a round that was given
/// up, or that a recovery does again.
#[derive(Debug, Clone)]
pub struct ContributionHistory {
    pub(super) federation: Hash,
    /// What a contribution costs, by the number of the epoch.
    pub(super) costs: BTreeMap<u64, Cost>,
    /// The present epoch.
    pub(super) now: u64,
    /// The round after which it began.
    began: u64,
    /// The last round that is over.
    pub(super) over: u64,
    /// Its agreed rounds.
    agreed: u64,
    /// Contributions that final blocks or signed messages show.
    pub(super) shown: BTreeSet<EpochRound>,
    /// Contributions that were prepared, and that nobody else may know of.
    pub(super) prepared: BTreeSet<EpochRound>,
    /// Rounds whose blocks are not in the journal: the institution may have contributed.
    pub(super) unseen: BTreeSet<EpochRound>,
    /// Rounds that were under way when their epoch ended: the institution may have prepared them.
    pub(super) under_way: BTreeSet<EpochRound>,
}

impl ContributionHistory {
    /// Of an institution that contributed nothing so far, in this epoch.
    pub fn none(epoch: &Epoch) -> Self {
        Self {
            federation: epoch.federation,
            costs: BTreeMap::from([(epoch.number, cost(epoch))]),
            now: epoch.number,
            began: epoch.began.round,
            over: epoch.began.round,
            agreed: epoch.protocol.rounds,
            shown: BTreeSet::new(),
            prepared: BTreeSet::new(),
            unseen: BTreeSet::new(),
            under_way: BTreeSet::new(),
        }
    }

    /// Of the member with this key, from the records of its journal, whose epochs these are. In an epoch
    /// before it may have had another key, and then is known by its name.
    pub fn of(epochs: &Epochs, records: &[JournalRecord], key: &PublicKey) -> Self {
        let now = &epochs.now;
        let place = |epoch: &Epoch| epoch.roster.position_of(key, &now.roster);
        let mut rounds = rounds(records);
        let former = epochs.former.iter().map(|(epoch, _)| &**epoch);
        let mut all = former.chain([&**now]);
        let mut history = Self::none(all.next().unwrap_or(now));
        let mut epoch = epochs.former.first().map_or(&**now, |(first, _)| first);
        for next in all {
            history.takes(epoch, place(epoch), rounds.remove(&epoch.id), Some(next));
            history.passes_to(next);
            epoch = next;
        }
        history.takes(now, place(now), rounds.remove(&now.id), None);
        let over = records.iter().rposition(ends_epoch).map_or(0, |at| at + 1);
        for record in &records[over..] {
            match record {
                JournalRecord::Protocol(Record::Contributed(message)) => {
                    history.shown.insert((now.number, message.round));
                }
                JournalRecord::Prepared { round, .. } => history.prepares(*round),
                _ => {}
            }
        }
        history
    }

    /// Takes the rounds of an epoch, in which the institution had this place, with the members that took part.
    /// Up to the `next` epoch all of its rounds were done, whether their blocks are known or not.
    fn takes(
        &mut self,
        epoch: &Epoch,
        place: Option<MemberIndex>,
        rounds: Option<BTreeMap<u64, Vec<MemberIndex>>>,
        next: Option<&Epoch>,
    ) {
        let rounds = rounds.unwrap_or_default();
        let last = rounds.keys().next_back().copied().unwrap_or(0);
        let until = next.map_or(0, |next| next.began.round);
        self.over = self.over.max(last).max(until);
        let Some(place) = place else { return };
        for round in self.began + 1..=self.over {
            let at = (epoch.number, round);
            match rounds.get(&round) {
                Some(members) if members.contains(&place) => drop(self.shown.insert(at)),
                Some(_) => {}
                None => drop(self.unseen.insert(at)),
            }
        }
        if next.is_some() {
            self.ends();
        }
    }

    /// The epoch is over: the institution may have prepared the round under way, also where it took part in no
    /// round before.
    fn ends(&mut self) {
        if self.over < self.agreed {
            self.under_way.insert((self.now, self.over + 1));
        }
    }

    fn passes_to(&mut self, next: &Epoch) {
        self.costs.insert(next.number, cost(next));
        self.now = next.number;
        (self.began, self.over) = (next.began.round, next.began.round);
        self.agreed = next.protocol.rounds;
    }

    /// Returns what it is once a change of the agreement has come into force that is only proposed.
    #[must_use]
    pub fn after_change(&self, epoch: &Epoch) -> Self {
        let mut after = self.clone();
        after.ends();
        (after.now, after.began) = (self.now + 1, self.over);
        after.costs.insert(after.now, cost(epoch));
        after.agreed = epoch.protocol.rounds;
        after
    }

    /// The silo has prepared a contribution to a round of the present epoch.
    pub fn prepares(&mut self, round: u64) {
        self.prepared.insert((self.now, round));
    }

    /// A round of the present epoch is final, with or without a contribution of the institution.
    pub fn is_final(&mut self, round: u64, own: bool) {
        self.over = self.over.max(round);
        if own {
            self.shown.insert((self.now, round));
        }
    }
}

/// Returns what a contribution in an epoch costs. No parameter set has noise that bounds nothing; one that had it would
/// have no bound.
fn cost(epoch: &Epoch) -> Cost {
    Cost::of(&epoch.protocol.privacy).unwrap_or(Cost::NoBound)
}

fn ends_epoch(record: &JournalRecord) -> bool {
    matches!(record, JournalRecord::Protocol(record) if record.ends_epoch())
}

/// The final rounds in a journal by the epoch's id, with the members that took part.
fn rounds(records: &[JournalRecord]) -> BTreeMap<Hash, BTreeMap<u64, Vec<MemberIndex>>> {
    let finals = records.iter().filter_map(|record| match record {
        JournalRecord::Protocol(Record::Final { blocks, .. }) => Some(blocks),
        _ => None,
    });
    let mut rounds = BTreeMap::<_, BTreeMap<_, _>>::new();
    for block in finals.flatten() {
        // A recovery holds the last blocks of the epoch that it ended.
        let head = block.recovery().map_or(&[][..], |recovery| &recovery.head);
        for block in head.iter().chain([block]) {
            if let Some(of) = Block::round(block) {
                let of_epoch = rounds.entry(block.epoch).or_default();
                of_epoch.insert(of.round, of.members());
            }
        }
    }
    rounds
}
