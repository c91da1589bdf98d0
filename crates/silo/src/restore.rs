//! Where a silo goes on from, read back from its journal and blobs.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use methods::Params;
use methods::params::Gate;
use protocol::Hash;
use protocol::member::Start;

use crate::actors::worker::{Ground, Left, Own, Personal, outcome_gate};
use crate::config::SiloConfig;
use crate::needed::needed;
use crate::notice::Gone;
use crate::outcome::{Document, DocumentError, Settled, genesis};
use crate::record::{Adopted, Record};
use crate::spawn::SpawnError;
use crate::surroundings::{Blobs, Journal};

/// Where a silo goes on from.
pub(crate) struct Restored {
    pub(crate) start: Start,
    pub(crate) ground: Arc<Ground>,
    pub(crate) own: Own,
    pub(crate) trained: Option<Left>,
    pub(crate) kept: VecDeque<Vec<Hash>>,
    /// The block whose outcome was adopted and is not here any more, so that the silo stands on an
    /// earlier one until it has fetched it again.
    pub(crate) again: Option<Hash>,
    /// What is gone.
    pub(crate) gone: Vec<Gone>,
    /// The journal is empty.
    pub(crate) begins: bool,
}

/// What a journal says.
#[derive(Default)]
struct Said {
    records: Vec<protocol::Record>,
    adopted: Vec<Adopted>,
    /// Round, contribution, personal state.
    trained: Option<(u64, Hash, [u8; 32])>,
    /// It is not empty.
    any: bool,
    /// It began anew after a loss, and the silo has not acted since: then it says nothing else.
    lost: bool,
}

/// Reads the journal; begins it anew if it is lost.
pub(crate) fn restore(
    config: &SiloConfig,
    journal: &mut dyn Journal,
    blobs: &dyn Blobs,
) -> Result<Restored, SpawnError> {
    let genesis = genesis(&*config.learner, config.initial_seed);
    let agreed = config.member.epoch.charter.start;
    if genesis.hash != agreed {
        return Err(SpawnError::Start {
            agreed,
            ours: genesis.hash,
        });
    }
    let said = read(load(config, journal)?);
    let store = Store { config, blobs };
    let keep = config.member.epoch.charter.keep as usize;
    let kept = said.adopted.iter().rev().take(keep).rev();
    let kept = kept
        .map(|adopted| adopted.blobs.iter().copied().map(Hash).collect())
        .collect();
    let last = said.adopted.last();
    let mut gone = Vec::new();
    let ground = store.ground(&said, &mut gone)?.unwrap_or(genesis);
    let standing = ground.document.round;
    let own = store.own(last, &mut gone)?;
    let models = ground.state.models.len();
    if own.round == standing && own.coalition as usize >= models {
        return Err(SpawnError::Damaged {
            round: own.round,
            why: format!("coalition {} of {models}", own.coalition),
        });
    }
    let trained = said.trained.filter(|(round, ..)| *round > own.round);
    let trained = trained
        .map(|trained| store.left(trained, &own, &mut gone))
        .transpose()?;
    let again = last.filter(|last| last.round > standing);
    let again = again.map(|last| Hash(last.block));
    let fresh = said.records.is_empty() && said.adopted.is_empty();
    let mut records = said.records;
    if again.is_some() {
        // The member is told where the silo stands, and so lets it apply the rest again. What it
        // signed and what is final stays as it is.
        records.retain(|record| !matches!(record, protocol::Record::Applied { .. }));
        records.push(protocol::Record::Applied { round: standing });
    }
    let start = match (said.lost, fresh) {
        (true, _) => Start::Lost,
        (false, true) => Start::New,
        (false, false) => Start::Kept(records),
    };
    let ground = Arc::new(Ground::new(config, &ground));
    Ok(Restored {
        start,
        ground,
        own,
        trained,
        kept,
        again,
        gone,
        begins: !said.any,
    })
}

/// What of the journal is needed. The rest is dropped from it when there is more of that; and for a
/// silo whose journal is lost at once, because it is told everything from the beginning on.
fn load(config: &SiloConfig, journal: &mut dyn Journal) -> Result<Vec<Record>, SpawnError> {
    let mut records = journal.load()?;
    let before = records.len();
    if config.journal_lost {
        records.push(Record::Lost);
    }
    let charter = &config.member.epoch.charter;
    let needed = needed(records, charter.keep as usize, charter.rounds);
    let anew = matches!(needed[..], [Record::Lost | Record::Begun]);
    if before > 2 * needed.len() || (anew && before != 1) {
        journal.replace(needed.clone())?;
    }
    Ok(needed)
}

fn read(records: Vec<Record>) -> Said {
    let mut said = Said {
        any: !records.is_empty(),
        ..Said::default()
    };
    for record in records {
        match record {
            Record::Lost => said.lost = true,
            Record::Begun => {}
            Record::Adopted(adopted) => said.adopted.push(adopted),
            Record::Trained {
                round,
                blob,
                personal,
            } => {
                said.trained = Some((round, Hash(blob), personal));
            }
            Record::Protocol(record) => said.records.push(record),
        }
    }
    said
}

/// Whether a block made this outcome final.
fn finalises(record: &protocol::Record, adopted: &Adopted) -> bool {
    let protocol::Record::Final { blocks, .. } = record else {
        return false;
    };
    blocks.iter().any(|block| {
        block.learning().is_some_and(|learning| {
            (learning.round, learning.outcome.0) == (adopted.round, adopted.outcome)
        }) && block.hash().0 == adopted.block
    })
}

struct Store<'a> {
    config: &'a SiloConfig,
    blobs: &'a dyn Blobs,
}

impl Store<'_> {
    fn get(&self, round: u64, hash: Hash) -> Result<Bytes, SpawnError> {
        self.blobs
            .get(&hash)
            .ok_or(SpawnError::Missing { round, hash })
    }

    /// The newest outcome that was adopted and is here whole; `None`: none is. What is missing of
    /// newer ones can be had from the others, who all adopted the same.
    fn ground(&self, said: &Said, gone: &mut Vec<Gone>) -> Result<Option<Settled>, SpawnError> {
        let mut missing = None;
        let mut ground = None;
        for adopted in said.adopted.iter().rev() {
            if !said.records.iter().any(|record| finalises(record, adopted)) {
                return Err(SpawnError::Damaged {
                    round: adopted.round,
                    why: "no final block of the journal has this outcome".into(),
                });
            }
            match self.outcome(adopted) {
                Ok(settled) => {
                    ground = Some(settled);
                    break;
                }
                // Nobody else has it.
                Err(error) if self.config.member.epoch.roster.len() == 1 => return Err(error),
                Err(SpawnError::Missing { .. }) => {
                    missing.get_or_insert(adopted.round);
                }
                Err(other) => return Err(other),
            }
        }
        if let Some(round) = missing {
            let standing = ground.as_ref().map_or(0, |settled| settled.document.round);
            gone.push(Gone::Outcome { round, standing });
        }
        Ok(ground)
    }

    /// What is the silo's own after its last adoption.
    fn own(&self, last: Option<&Adopted>, gone: &mut Vec<Gone>) -> Result<Own, SpawnError> {
        let Some(last) = last else {
            return Ok(Own {
                round: 0,
                coalition: 0,
                personal: self.initial(),
            });
        };
        let round = last.round;
        let personal = match self.personal(round, last.personal) {
            Err(SpawnError::Missing { .. }) => {
                gone.push(Gone::Personal { round });
                self.initial()
            }
            personal => personal?,
        };
        Ok(Own {
            round,
            coalition: last.coalition,
            personal,
        })
    }

    /// What a training left behind. Its personal state may be gone; its model too, and then the
    /// signed contribution stands and cannot be served.
    fn left(
        &self,
        (round, blob, personal): (u64, Hash, [u8; 32]),
        own: &Own,
        gone: &mut Vec<Gone>,
    ) -> Result<Left, SpawnError> {
        if self.blobs.get(&blob).is_none() {
            gone.push(Gone::Contribution { round });
        }
        let personal = match self.personal(round, personal) {
            Err(SpawnError::Missing { .. }) => {
                gone.push(Gone::Trained { round });
                own.personal.clone()
            }
            personal => personal?,
        };
        Ok(Left {
            round,
            blob,
            personal,
        })
    }

    fn outcome(&self, adopted: &Adopted) -> Result<Settled, SpawnError> {
        let round = adopted.round;
        let damaged = |why| SpawnError::Damaged { round, why };
        let blob = self.get(round, Hash(adopted.outcome))?;
        let document = Document::read(&blob).map_err(|error| match error {
            DocumentError::Newer(found) => SpawnError::Newer { round, found },
            DocumentError::Malformed(_) => damaged(error.to_string()),
        })?;
        let gate = outcome_gate(self.config);
        let models = document
            .all_models()
            .map(|hash| self.model(round, hash, &gate))
            .collect::<Result<_, _>>()?;
        let settled = Settled::assemble(blob, document, models);
        if settled.hash.0 != adopted.outcome || settled.document.round != round {
            return Err(damaged("its document is another one".into()));
        }
        Ok(settled)
    }

    fn model(&self, round: u64, hash: Hash, gate: &Gate) -> Result<Params, SpawnError> {
        let damaged = |why: String| SpawnError::Damaged { round, why };
        let model = gate
            .admit(self.get(round, hash)?)
            .map_err(|e| damaged(e.to_string()))?;
        if model.hash() != hash.0 {
            return Err(damaged(format!(
                "blob {hash} has other bytes than it was kept with"
            )));
        }
        Ok(model)
    }

    fn initial(&self) -> Personal {
        Personal::new(
            self.config
                .learner
                .initial_personal(self.config.initial_seed),
        )
    }

    fn personal(&self, round: u64, hash: [u8; 32]) -> Result<Personal, SpawnError> {
        let initial = self.initial();
        if initial.hash.0 == hash {
            return Ok(initial);
        }
        let gate = Gate {
            layout: initial.params.layout().clone(),
            norm: f64::INFINITY,
        };
        Ok(Personal::new(self.model(round, Hash(hash), &gate)?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use methods::State;

    use super::*;
    use crate::testing::*;

    #[test]
    fn an_outcome_is_read_back_with_the_models_that_its_strategy_remembers() {
        let state = State {
            models: vec![Towards::model(1.0), Towards::model(2.0)],
            tables: BTreeMap::from([("velocity".into(), vec![Towards::model(0.5)])]),
            memory: BTreeMap::from([("rounds".into(), vec![3.0])]),
        };
        let settled = Settled::new(3, Vec::new(), Vec::new(), state);
        let blobs = MemoryBlobs::default();
        blobs.put_all(settled.blobs().collect()).unwrap();
        let adopted = Adopted {
            round: 3,
            block: [0; 32],
            outcome: settled.hash.0,
            coalition: 0,
            personal: [0; 32],
            blobs: Vec::new(),
        };
        let (config, blobs) = (&config(&epoch(4, 3), 0), &blobs);
        let read = Store { config, blobs }.outcome(&adopted).unwrap();
        assert_eq!(read.state, settled.state);
    }
}
