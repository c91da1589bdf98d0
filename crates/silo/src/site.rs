//! What an institution's own settings make of a silo's rounds.

use std::iter;
use std::sync::Arc;

use ledger::{Contribution, Cost, CostError, Ledger, LedgerError, Place};
use protocol::message::Block;
use protocol::{Epoch, Hash, PublicKey, Record};

use crate::config::SiloConfig;
use crate::environment::Site;
use crate::needed::ends_epoch;
use crate::record::JournalRecord;

/// A contribution that needs its line in the ledger before it is signed.
pub(crate) struct LedgerLine {
    ledger: Arc<dyn Ledger>,
    contribution: Result<Contribution, CostError>,
}

impl LedgerLine {
    /// Makes the line durable.
    ///
    /// # Errors
    /// Why nothing may be contributed.
    pub(crate) fn record(&self) -> Result<(), String> {
        let contribution = self.contribution.as_ref().map_err(CostError::to_string)?;
        let recorded = self.ledger.record(contribution);
        recorded.map(drop).map_err(|why| why.to_string())
    }
}

/// The settings of the institution, and what was wrong with its ledger at the start.
pub(crate) struct SiteRules {
    site: Site,
    /// Why the silo takes part in no round.
    refused: Option<String>,
    /// Contributions that were not compared with the ledger, because another process had it.
    places: Vec<Place>,
}

impl SiteRules {
    /// The rules of a silo that starts with these records of its journal. Where they know of a
    /// contribution that has no line, the ledger is an older copy.
    pub(crate) fn new(site: Site, own: &OwnContributions, records: &[JournalRecord]) -> Self {
        let all = own.all(records);
        let expected = site.ledger.as_ref().map(|ledger| ledger.expect(&all));
        let (refused, places) = match expected {
            // It may be free before the next contribution.
            Some(Err(LedgerError::InUse { .. })) => (None, all),
            Some(Err(why)) => (Some(why.to_string()), Vec::new()),
            Some(Ok(())) | None => (None, Vec::new()),
        };
        Self {
            site,
            refused,
            places,
        }
    }

    /// Returns what others may still show the silo of its contributions; `None` where the institution has no ledger.
    pub(crate) fn reminders(&self, own: OwnContributions) -> Option<LedgerReminders> {
        Some(LedgerReminders {
            ledger: Arc::clone(self.site.ledger.as_ref()?),
            own,
            places: self.places.clone(),
        })
    }

    /// Returns whether the silo may train for a round.
    ///
    /// # Errors
    /// Why it sits the round out.
    pub(crate) fn allow(&self, round: u64, bytes: u64) -> Result<(), String> {
        if let Some(why) = &self.refused {
            return Err(why.clone());
        }
        let rounds = self.site.rounds.as_ref();
        rounds.map_or(Ok(()), |rounds| rounds.allows(round, bytes))
    }

    /// The line of a contribution; `None` where the institution has no ledger.
    pub(crate) fn line(&self, epoch: &Epoch, round: u64, commitment: Hash) -> Option<LedgerLine> {
        let ledger = Arc::clone(self.site.ledger.as_ref()?);
        let contribution = Cost::of(&epoch.protocol.privacy).map(|cost| Contribution {
            place: place(epoch, round),
            commitment,
            cost,
        });
        Some(LedgerLine {
            ledger,
            contribution,
        })
    }
}

/// Final blocks that name the silo as an author, compared with the ledger before the next contribution. A
/// journal and a ledger that were put back together are older copies of the same moment, and agree; the
/// blocks that the other members hand out are newer.
pub(crate) struct LedgerReminders {
    ledger: Arc<dyn Ledger>,
    own: OwnContributions,
    /// Contributions that became known and were not compared yet.
    places: Vec<Place>,
}

impl LedgerReminders {
    /// Takes note of a record that the silo makes durable.
    pub(crate) fn observe(&mut self, record: &Record) {
        if let Record::Final { .. } = record {
            self.places.extend(self.own.places(record));
        }
    }

    /// Compares what became known with the ledger. Contributions without a line stay, so that every later
    /// one is refused as well.
    ///
    /// # Errors
    /// Why nothing may be contributed.
    pub(crate) fn compare(&mut self) -> Result<(), String> {
        let lines = self.ledger.expect(&self.places);
        lines.map_err(|why| why.to_string())?;
        self.places.clear();
        Ok(())
    }
}

fn place(epoch: &Epoch, round: u64) -> Place {
    Place {
        federation: epoch.federation,
        epoch: epoch.number,
        round,
    }
}

/// Which contributions of an institution records show that need a line in its ledger: all of the present epoch, and those to
/// rounds with noise of the epochs before. An institution may begin its ledger when a federation goes on with
/// noise, so rounds without noise before that are not looked for.
#[derive(Clone)]
pub struct OwnContributions {
    now: Arc<Epoch>,
    /// The epochs before that had noise.
    noised: Vec<Arc<Epoch>>,
    /// The silo's key: its place may be another one in every epoch, where it may have had another key.
    key: PublicKey,
}

impl OwnContributions {
    /// Those of the institution with this key, in the epoch in force and those before.
    pub fn new(now: Arc<Epoch>, past: &[Arc<Epoch>], key: PublicKey) -> Self {
        let has_noise = |epoch: &&Arc<Epoch>| epoch.protocol.privacy.is_noised();
        Self {
            now,
            noised: past.iter().filter(has_noise).cloned().collect(),
            key,
        }
    }

    /// Those of a silo.
    pub(crate) fn of(config: &SiloConfig) -> Self {
        let member = &config.member;
        Self::new(member.epoch.clone(), &config.past, member.key.public())
    }

    /// Returns what all records of the institution's journal show. Some may be there twice. What was signed before the
    /// present epoch began is not of it: final blocks show it.
    pub fn all(&self, records: &[JournalRecord]) -> Vec<Place> {
        let over = records.iter().rposition(ends_epoch).map_or(0, |at| at + 1);
        let records = records.iter().enumerate();
        let records = records.filter_map(|(at, record)| match record {
            JournalRecord::Protocol(Record::Contributed(_)) if at < over => None,
            JournalRecord::Protocol(record) => Some(record),
            _ => None,
        });
        records.flat_map(|record| self.places(record)).collect()
    }

    /// Returns what a record of the present epoch in the silo's journal, or the final blocks in it, show.
    pub fn places(&self, record: &Record) -> Vec<Place> {
        match record {
            Record::Contributed(message) => vec![place(&self.now, message.round)],
            Record::Final { blocks, .. } => {
                // The first block of a recovery holds the last ones of the epoch that it ended.
                let heads = blocks.iter().filter_map(Block::recovery);
                let heads = heads.flat_map(|recovery| &recovery.head);
                let blocks = blocks.iter().chain(heads);
                blocks.filter_map(|block| self.in_block(block)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The contribution that a final block shows. Whoever is ready in a secure-aggregation round has drawn its noise,
    /// also where its vector is in no sum.
    fn in_block(&self, block: &Block) -> Option<Place> {
        let mut epochs = iter::once(&self.now).chain(&self.noised);
        let epoch = epochs.find(|epoch| epoch.id == block.epoch)?;
        let own = epoch.roster.position_of(&self.key, &self.now.roster)?;
        let of = block.round()?;
        of.members().contains(&own).then(|| place(epoch, of.round))
    }
}
