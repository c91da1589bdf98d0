//! Rounds of a node before this start, from its journal: those that it adopted last, and the model from which it
//! resumes.
//!
//! A restart is no loss, so what a node says of itself begins with these rounds. The journal notes what a
//! silo adopted for the rounds whose models are kept (`keep-rounds`), so older ones are not among them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use protocol::message::Block;
use protocol::{Epoch, Epochs, Hash, MemberIndex};
use silo::JournalRecord;

use crate::chain::{Leads, authors};
use crate::model::HeldRounds;
use crate::status::document::{RoundStatus, time};

/// The journal of a node as it was when the node started.
pub(in crate::institution) struct FormerJournal {
    /// The final blocks, oldest first.
    blocks: Vec<Final>,
    /// The rounds whose models are here; `None` before the first.
    pub(in crate::institution) held: Option<HeldRounds>,
}

/// Fields of a final block about its round.
struct Final {
    epoch: Hash,
    /// True if the block is the first of its epoch.
    first: bool,
    view: u64,
    /// The round; `None` for other blocks.
    round: Option<u64>,
    /// The members whose contributions are in it; `None` for other blocks.
    authors: Option<Vec<MemberIndex>>,
}

impl Final {
    fn of(block: &Block) -> Self {
        Self {
            epoch: block.epoch,
            first: block.parent == block.epoch,
            view: block.view,
            round: block.round().map(|of| of.round),
            authors: authors(block),
        }
    }
}

/// Agreed facts about a round.
struct AgreedRound {
    view: u64,
    lead: Option<String>,
    authors: Vec<String>,
}

impl FormerJournal {
    /// Returns what `records`, the journal in the folder `state`, say of at most `rounds` rounds.
    pub(in crate::institution) fn of(
        state: &Path,
        records: &[JournalRecord],
        rounds: usize,
    ) -> Self {
        let finals = records.iter().filter_map(|record| match record {
            JournalRecord::Protocol(protocol::Record::Final { blocks, .. }) => Some(blocks),
            _ => None,
        });
        Self {
            blocks: finals.flatten().map(Final::of).collect(),
            held: HeldRounds::among(state, records, rounds),
        }
    }

    /// The adopted rounds, oldest first. They are not measured, and have no training loss.
    pub(in crate::institution) fn rounds(&self, epochs: &Epochs) -> Vec<RoundStatus> {
        let Some(held) = &self.held else {
            return Vec::new();
        };
        let mut agreed = self.agreed(epochs);
        let rounds = held.rounds.iter().filter_map(|held_round| {
            // A newcomer was given the model of a round that it has no block of.
            let (view, lead, authors) = match agreed.remove(&held_round.round) {
                Some(agreed) => (Some(agreed.view), agreed.lead, Some(agreed.authors)),
                None => (None, None, None),
            };
            Some(RoundStatus {
                round: held_round.round,
                time: time(held.since(held_round)?),
                view,
                lead,
                models: authors.as_ref().map(|authors| authors.len() as u64),
                authors: authors.unwrap_or_default(),
                coalition: held_round.coalition,
                coalitions: held_round.models.len() as u64,
                outcome: format!("{:#}", held_round.outcome),
                loss: None,
                held_out: None,
                spent: None,
            })
        });
        rounds.collect()
    }

    /// Returns what is agreed on, by round.
    fn agreed(&self, epochs: &Epochs) -> BTreeMap<u64, AgreedRound> {
        let former = epochs.former.iter().map(|(epoch, _)| epoch.clone());
        let all = former.chain([epochs.now.clone()]);
        let all: BTreeMap<Hash, Arc<Epoch>> = all.map(|epoch| (epoch.id, epoch)).collect();
        let mut leads: Option<Leads> = None;
        let mut rounds = BTreeMap::new();
        for block in &self.blocks {
            let Some(epoch) = all.get(&block.epoch) else {
                continue;
            };
            if block.first {
                leads = Some(Leads::new(epoch.clone()));
            }
            // Without the first blocks of an epoch it is not known whose turn it was.
            let turns = leads.as_mut().filter(|leads| leads.epoch.id == epoch.id);
            let lead = turns.and_then(|turns| turns.of(block.view, block.authors.as_deref()));
            let (Some(round), Some(authors)) = (block.round, &block.authors) else {
                continue;
            };
            let name = |member: MemberIndex| epoch.roster.name(member).to_owned();
            let agreed = AgreedRound {
                view: block.view,
                lead: lead.map(name),
                authors: authors.iter().map(|by| name(*by)).collect(),
            };
            rounds.insert(round, agreed);
        }
        rounds
    }
}
