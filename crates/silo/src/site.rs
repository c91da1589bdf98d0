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
            let mut places = contributed(epoch, me, records);
            places.find_map(|place| ledger.expect(&place).err())
        });
        let refused = refused.map(|why| why.to_string());
        Self { site, refused }
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

fn place(epoch: &Epoch, round: u64) -> Place {
    Place {
        federation: epoch.federation,
        epoch: epoch.number,
        round,
    }
}

/// The rounds of an epoch to which a member contributed, as its journal and the final blocks say.
fn contributed<'a>(
    epoch: &'a Epoch,
    me: MemberIndex,
    records: &'a [Record],
) -> impl Iterator<Item = Place> + 'a {
    let rounds = records.iter().flat_map(move |record| match record {
        Record::Contributed(message) => vec![message.round],
        Record::Final { blocks, .. } => {
            let own = blocks.iter().filter_map(|block| block.round());
            let own = own.filter(|block| block.inclusions.iter().any(|(author, _)| *author == me));
            own.map(|block| block.round).collect()
        }
        _ => Vec::new(),
    });
    rounds.map(|round| place(epoch, round))
}
