//! What an institution's own settings make of a silo's rounds.

use std::sync::Arc;

use ledger::{Contribution, Cost, CostError, Ledger, Place};
use protocol::{Epoch, Hash, MemberIndex, Record};

use crate::surroundings::Site;

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
}

impl SiteRules {
    /// The rules of a silo that starts with these records of its journal. Where they know of a
    /// contribution that has no line, the ledger is an older copy.
    pub(crate) fn new(site: Site, epoch: &Epoch, me: MemberIndex, records: &[Record]) -> Self {
        let refused = site.ledger.as_ref().and_then(|ledger| {
            let rounds = records.iter().flat_map(|record| contributed(me, record));
            let places: Vec<_> = rounds.map(|round| place(epoch, round)).collect();
            ledger.expect(&places).err()
        });
        let refused = refused.map(|why| why.to_string());
        Self { site, refused }
    }

    /// What others may still show the silo of its contributions; `None` where the institution has no ledger.
    pub(crate) fn reminders(&self, epoch: &Arc<Epoch>, me: MemberIndex) -> Option<LedgerReminders> {
        Some(LedgerReminders {
            ledger: Arc::clone(self.site.ledger.as_ref()?),
            epoch: epoch.clone(),
            me,
            rounds: Vec::new(),
        })
    }

    /// Whether the silo may train for a round.
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
        let contribution = Cost::of(&epoch.charter.privacy).map(|cost| Contribution {
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
    epoch: Arc<Epoch>,
    me: MemberIndex,
    /// Rounds of blocks that became known and were not compared yet.
    rounds: Vec<u64>,
}

impl LedgerReminders {
    /// Takes note of a record that the silo makes durable.
    pub(crate) fn observe(&mut self, record: &Record) {
        if let Record::Final { .. } = record {
            self.rounds.extend(contributed(self.me, record));
        }
    }

    /// Compares what became known with the ledger. Rounds without a line stay, so that every later
    /// contribution is refused as well.
    ///
    /// # Errors
    /// Why nothing may be contributed.
    pub(crate) fn compare(&mut self) -> Result<(), String> {
        let places = self.rounds.iter().map(|round| place(&self.epoch, *round));
        let places: Vec<_> = places.collect();
        self.ledger.expect(&places).map_err(|why| why.to_string())?;
        self.rounds.clear();
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

/// The rounds to which a member contributed, as a record of its journal or the final blocks in it say.
fn contributed(me: MemberIndex, record: &Record) -> Vec<u64> {
    match record {
        Record::Contributed(message) => vec![message.round],
        Record::Final { blocks, .. } => {
            let own = blocks.iter().filter_map(|block| block.round());
            let own = own.filter(|block| block.inclusions.iter().any(|(author, _)| *author == me));
            own.map(|block| block.round).collect()
        }
        _ => Vec::new(),
    }
}
